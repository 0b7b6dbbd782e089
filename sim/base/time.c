#include "sim/base/time.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t time_from_seconds(double seconds)
{
    check_msg(!isnan(seconds), "a time that is not a number");
    double size = fabs(seconds);
    if (size >= 9223372.036854775807) {
        return seconds < 0 ? -INT64_MAX : INT64_MAX;
    }
    if (size < 0x1p-42) {
        return 0; /* below a quarter of a picosecond */
    }
    /* size = mantissa · 2^exponent exactly, so the product below is exact and is rounded once; a
     * product of doubles would round before the rounding. */
    int exponent;
    int128 product = (int128)(int64_t)(frexp(size, &exponent) * 0x1p53) * PS_PER_SECOND;
    int shift = 53 - exponent; /* 29 … 94: size < 2^24 and ≥ 2^-42 */
    int128 half = (int128)1 << (shift - 1);
    int64_t ps = (int64_t)((product + half) >> shift);
    return seconds < 0 ? -ps : ps;
}

char *time_text(int64_t ps, char *buffer)
{
    if (ps == TIME_NONE) {
        buffer[0] = '\0';
        return buffer;
    }
    /* Digits from the back: this runs several times per line of --requests. */
    char digits[TIME_TEXT_MAX];
    char *end = digits + sizeof(digits), *p = end;
    uint64_t size = ps < 0 ? (uint64_t)-ps : (uint64_t)ps;
    uint64_t whole = size / (uint64_t)PS_PER_SECOND, part = size % (uint64_t)PS_PER_SECOND;
    if (part > 0) {
        int decimals = 12;
        for (; part % 10 == 0; part /= 10) {
            decimals--;
        }
        for (; decimals > 0; decimals--, part /= 10) {
            *--p = (char)('0' + part % 10);
        }
        *--p = '.';
    }
    do {
        *--p = (char)('0' + whole % 10);
        whole /= 10;
    } while (whole > 0);
    if (ps < 0) {
        *--p = '-';
    }
    memcpy(buffer, p, (size_t)(end - p));
    buffer[end - p] = '\0';
    return buffer;
}
