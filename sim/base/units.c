#include "sim/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/time.h"

/* A way to write a unit: value in the canonical unit = number · times · 10^power / over. The three
 * are apart so that a decimal text is scaled exactly and rounded once, or twice with `over`. */
struct spelling {
    const char *suffix; /* without spaces; a '$' before the number stands in front here */
    uint64_t times;
    int power;
    uint32_t over;
    bool shown; /* may be chosen for output */
};

#define KIBI (UINT64_C(1) << 10)
#define MEBI (UINT64_C(1) << 20)
#define GIBI (UINT64_C(1) << 30)
#define TEBI (UINT64_C(1) << 40)

/* In every table the first shown entry is the canonical unit; a bare number is always allowed. */
static const struct spelling none_spellings[] = {{"", 1, 0, 1, true}, {0}};
static const struct spelling time_spellings[] = {
    {"s", 1, 0, 1, true},
    {"ms", 1, -3, 1, true},
    {"us", 1, -6, 1, true},
    {"ns", 1, -9, 1, true},
    {"ps", 1, -12, 1, true},
    {"min", 60, 0, 1, true},
    {"h", 3600, 0, 1, true},
    {"µs", 1, -6, 1, false},
    {"μs", 1, -6, 1, false},
    {"d", 86400, 0, 1, false},
    {"day", 86400, 0, 1, false},
    {"days", 86400, 0, 1, false},
    {0},
};
static const struct spelling rate_spellings[] = {
    {"/s", 1, 0, 1, true},         {"/min", 1, 0, 60, true},
    {"/h", 1, 0, 3600, true},      {"/day", 1, 0, 86400, true},
    {"/d", 1, 0, 86400, false},    {"1/s", 1, 0, 1, false},
    {"1/min", 1, 0, 60, false},    {"1/h", 1, 0, 3600, false},
    {"1/day", 1, 0, 86400, false}, {0},
};
static const struct spelling fraction_spellings[] = {
    {"", 1, 0, 1, true}, {"%", 1, -2, 1, false}, {0}};
static const struct spelling tokens_spellings[] = {
    {"tokens", 1, 0, 1, true}, {"token", 1, 0, 1, false},   {"k", 1000, 0, 1, false},
    {"K", 1000, 0, 1, false},  {"M", 1000000, 0, 1, false}, {0},
};
static const struct spelling tokens_per_s_spellings[] = {
    {"tokens/s", 1, 0, 1, true}, {"tok/s", 1, 0, 1, false}, {0}};
static const struct spelling bytes_spellings[] = {
    {"B", 1, 0, 1, true},      {"kB", 1, 3, 1, true},
    {"MB", 1, 6, 1, true},     {"GB", 1, 9, 1, true},
    {"TB", 1, 12, 1, true},    {"KiB", KIBI, 0, 1, true},
    {"MiB", MEBI, 0, 1, true}, {"GiB", GIBI, 0, 1, true},
    {"TiB", TEBI, 0, 1, true}, {0},
};
static const struct spelling bytes_per_s_spellings[] = {
    {"B/s", 1, 0, 1, true},      {"kB/s", 1, 3, 1, true},
    {"MB/s", 1, 6, 1, true},     {"GB/s", 1, 9, 1, true},
    {"TB/s", 1, 12, 1, true},    {"KiB/s", KIBI, 0, 1, true},
    {"MiB/s", MEBI, 0, 1, true}, {"GiB/s", GIBI, 0, 1, true},
    {"TiB/s", TEBI, 0, 1, true}, {0},
};
static const struct spelling flops_spellings[] = {
    {"FLOP/s", 1, 0, 1, true},    {"GFLOPS", 1, 9, 1, true},    {"TFLOPS", 1, 12, 1, true},
    {"PFLOPS", 1, 15, 1, true},   {"FLOPS", 1, 0, 1, false},    {"GFLOP/s", 1, 9, 1, false},
    {"TFLOP/s", 1, 12, 1, false}, {"PFLOP/s", 1, 15, 1, false}, {0},
};
static const struct spelling usd_spellings[] = {{"$", 1, 0, 1, true}, {"USD", 1, 0, 1, false}, {0}};
static const struct spelling usd_per_hour_spellings[] = {
    {"$/h", 1, 0, 1, true}, {"USD/h", 1, 0, 1, false}, {0}};
static const struct spelling usd_per_mtok_spellings[] = {
    {"$/Mtok", 1, 0, 1, true}, {"USD/Mtok", 1, 0, 1, false}, {0}};
static const struct spelling watts_spellings[] = {
    {"W", 1, 0, 1, true}, {"kW", 1, 3, 1, true}, {"MW", 1, 6, 1, true}, {0}};
static const struct spelling bits_spellings[] = {
    {"bits", 1, 0, 1, true}, {"bit", 1, 0, 1, false}, {0}};

static const struct {
    const char *name, *hint;
    const struct spelling *spellings;
} units[UNIT_COUNT] = {
    [UNIT_NONE] = {"1", "a number such as 1, 0.5, 1e6", none_spellings},
    [UNIT_TIME] = {"s", "a time such as 30 s, 5 min, 2 h", time_spellings},
    [UNIT_RATE] = {"1/s", "a rate such as 2 /s, 90 /min, 15e6 /day", rate_spellings},
    [UNIT_FRACTION] = {"1", "a fraction such as 0.7, 70 %", fraction_spellings},
    [UNIT_TOKENS] = {"tokens", "a number of tokens such as 8192, 8k, 1e6", tokens_spellings},
    [UNIT_TOKENS_PER_S] = {"tokens/s", "a token rate such as 15000, 1500 tokens/s",
                           tokens_per_s_spellings},
    [UNIT_BYTES] = {"B", "a size such as 80 GiB, 640 kB", bytes_spellings},
    [UNIT_BYTES_PER_S] = {"B/s", "a bandwidth such as 3.35 TB/s, 20 GiB/s", bytes_per_s_spellings},
    [UNIT_FLOPS] = {"FLOP/s", "a compute rate such as 989 TFLOPS, 1.9 PFLOP/s", flops_spellings},
    [UNIT_USD] = {"$", "an amount such as $3, 3 USD", usd_spellings},
    [UNIT_USD_PER_HOUR] = {"$/h", "a price such as $2.10/h, 2.10 $/h", usd_per_hour_spellings},
    [UNIT_USD_PER_MTOK] = {"$/Mtok", "a token price such as $0.60/Mtok", usd_per_mtok_spellings},
    [UNIT_WATTS] = {"W", "a power such as 700 W, 1.2 MW", watts_spellings},
    [UNIT_BITS] = {"bits", "a number of bits such as 8, 16 bits", bits_spellings},
};

const char *units_name(enum unit unit)
{
    check((unsigned)unit < UNIT_COUNT);
    return units[unit].name;
}

const char *units_hint(enum unit unit)
{
    check((unsigned)unit < UNIT_COUNT);
    return units[unit].hint;
}

enum {
    DIGITS_MAX = 400,       /* written digits of one number; more are refused */
    DIGITS_ROOM = 20,       /* in front of them, for the carry of a product */
    EXPONENT_MAX = 1000000, /* saturates here: far beyond any double */
    SUFFIX_MAX = 24,
};

/* ± 0.d₁d₂d₃… · 10^point, exact. */
struct decimal {
    bool negative;
    int start, end;                                 /* digits in use: [start, end) */
    long point;                                     /* of the first digit */
    unsigned char digits[DIGITS_ROOM + DIGITS_MAX]; /* 0 … 9; first and last are not 0 */
};

struct quantity {
    struct decimal number;      /* already multiplied by `times` and 10^power of the spelling */
    const struct spelling *how; /* NULL: bare */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_spaces(const char *p)
{
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    return p;
}

static void decimal_trim(struct decimal *d)
{
    while (d->start < d->end && d->digits[d->start] == 0) {
        d->start++;
        d->point--;
    }
    while (d->end > d->start && d->digits[d->end - 1] == 0) {
        d->end--;
    }
    if (d->start == d->end) {
        d->point = 0;
    }
}

/* Exact product; times · 10 must fit 64 bits. */
static void decimal_multiply(struct decimal *d, uint64_t times)
{
    if (times == 1) {
        return;
    }
    unsigned __int128 carry = 0;
    for (int i = d->end - 1; i >= d->start; i--) {
        carry += (unsigned __int128)d->digits[i] * times;
        d->digits[i] = (unsigned char)(carry % 10);
        carry /= 10;
    }
    for (; carry > 0; carry /= 10) {
        check(d->start > 0);
        d->digits[--d->start] = (unsigned char)(carry % 10);
        d->point++;
    }
    decimal_trim(d);
}

/* Nearest integer, half away from zero; *exact says whether nothing was rounded. False: beyond
 * ±INT64_MAX. */
static bool decimal_integer(const struct decimal *d, int64_t *value, bool *exact)
{
    *value = 0;
    *exact = d->end - d->start <= d->point;
    if (d->point > 19) {
        return d->start == d->end;
    }
    uint64_t whole = 0; /* 19 digits fit */
    for (long i = 0; i < d->point; i++) {
        whole = whole * 10 + (d->start + i < d->end ? d->digits[d->start + i] : 0);
    }
    if (d->point >= 0 && d->start + d->point < d->end && d->digits[d->start + d->point] >= 5) {
        whole++;
    }
    if (whole > (uint64_t)INT64_MAX) {
        return false;
    }
    *value = d->negative ? -(int64_t)whole : (int64_t)whole;
    return true;
}

/* The nearest double; infinite when there is none. */
static double decimal_double(const struct decimal *d)
{
    char text[DIGITS_ROOM + DIGITS_MAX + 32];
    int at = 0;
    text[at++] = '0';
    text[at++] = '.';
    for (int i = d->start; i < d->end; i++) {
        text[at++] = (char)('0' + d->digits[i]);
    }
    snprintf(text + at, sizeof(text) - (size_t)at, "e%ld", d->point);
    double size = strtod(text, NULL);
    return d->negative ? -size : size;
}

/* Digits with '_' between them. Returns the end; *seen counts them. */
static const char *read_digits(const char *p, struct decimal *d, int *seen)
{
    for (;; p++) {
        if (is_digit(*p)) {
            if (d->end < (int)sizeof(d->digits)) {
                d->digits[d->end++] = (unsigned char)(*p - '0');
            }
            ++*seen;
        } else if (!(*p == '_' && *seen > 0 && is_digit(p[-1]) && is_digit(p[1]))) {
            return p;
        }
    }
}

/* Reads digits[.digits][e±digits] at p. Returns its end; NULL when there is no number, or it is
 * longer than DIGITS_MAX. */
static const char *read_number(const char *p, struct decimal *d)
{
    int seen = 0, fraction = 0;
    d->start = d->end = DIGITS_ROOM;
    p = read_digits(p, d, &seen);
    if (*p == '.') {
        p = read_digits(p + 1, d, &fraction);
    }
    if (seen + fraction == 0 || seen + fraction > DIGITS_MAX) {
        return NULL;
    }
    d->point = seen;
    const char *sign = p + 1;
    if ((*p == 'e' || *p == 'E') &&
        (is_digit(*sign) || ((*sign == '+' || *sign == '-') && is_digit(sign[1])))) {
        bool down = *sign == '-';
        long exponent = 0;
        for (p = is_digit(*sign) ? sign : sign + 1; is_digit(*p); p++) {
            exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*p - '0') : exponent;
        }
        d->point += down ? -exponent : exponent;
    }
    decimal_trim(d);
    return p;
}

/* Copies the rest of the text without the spaces around '/' and after '$' and at the end. False: it
 * is longer than any suffix. */
static bool read_suffix(const char *p, bool dollar, char *suffix)
{
    size_t n = 0;
    if (dollar) {
        suffix[n++] = '$';
    }
    p = skip_spaces(p);
    while (*p != '\0') {
        const char *next = skip_spaces(p);
        bool inside = n > 0 && suffix[n - 1] != '/' && suffix[n - 1] != '$';
        if (next != p && (*next == '\0' || *next == '/' || !inside)) {
            p = next;
            continue;
        }
        if (n + 1 >= SUFFIX_MAX) {
            return false;
        }
        suffix[n++] = *p++;
    }
    suffix[n] = '\0';
    return true;
}

static bool refuse(char *why, size_t why_size, const char *reason, enum unit unit)
{
    snprintf(why, why_size, "%s %s", reason, units_hint(unit));
    return false;
}

/* The common part of all readers: the number, exactly, in the canonical unit times `over`. */
static bool read_quantity(const char *text, enum unit unit, struct quantity *q, char *why,
                          size_t why_size)
{
    check((unsigned)unit < UNIT_COUNT);
    const char *p = skip_spaces(text);
    if (*p == '\0') {
        return refuse(why, why_size, "empty, not", unit);
    }
    bool negative = false, dollar = false;
    for (bool sign = false;; p++) {
        if (*p == '$' && !dollar) {
            dollar = true;
            p = skip_spaces(p + 1) - 1;
        } else if ((*p == '-' || *p == '+') && !sign) {
            sign = true;
            negative = *p == '-';
        } else {
            break;
        }
    }
    char suffix[SUFFIX_MAX];
    p = read_number(p, &q->number);
    if (p == NULL || !read_suffix(p, dollar, suffix)) {
        return refuse(why, why_size, "not", unit);
    }
    q->number.negative = negative && q->number.start < q->number.end;
    q->how = NULL;
    if (suffix[0] == '\0') {
        return true;
    }
    for (const struct spelling *s = units[unit].spellings; s->suffix != NULL; s++) {
        if (strcmp(s->suffix, suffix) == 0) {
            q->how = s;
            decimal_multiply(&q->number, s->times);
            q->number.point += q->number.start < q->number.end ? s->power : 0;
            return true;
        }
    }
    if (unit == UNIT_NONE) {
        snprintf(why, why_size, "'%s' after a number that has no unit", suffix);
        return false;
    }
    snprintf(why, why_size, "unknown unit '%s', not %s", suffix, units_hint(unit));
    return false;
}

bool units_parse_real(const char *text, enum unit unit, double *value, char *why, size_t why_size)
{
    struct quantity q;
    if (!read_quantity(text, unit, &q, why, why_size)) {
        return false;
    }
    double number = decimal_double(&q.number);
    if (isinf(number)) {
        snprintf(why, why_size, "too large for a number");
        return false;
    }
    *value = q.how != NULL && q.how->over > 1 ? number / q.how->over : number;
    return true;
}

bool units_parse_time(const char *text, int64_t *value_ps, char *why, size_t why_size)
{
    struct quantity q;
    if (!read_quantity(text, UNIT_TIME, &q, why, why_size)) {
        return false;
    }
    bool exact;
    q.number.point += q.number.start < q.number.end ? 12 : 0;
    int64_t value;
    if (!decimal_integer(&q.number, &value, &exact)) {
        snprintf(why, why_size, "too long: times end at 106 days");
        return false;
    }
    *value_ps = value;
    return true;
}

bool units_parse_int(const char *text, enum unit unit, int64_t *value, char *why, size_t why_size)
{
    struct quantity q;
    if (!read_quantity(text, unit, &q, why, why_size)) {
        return false;
    }
    int64_t whole;
    bool exact;
    if (!decimal_integer(&q.number, &whole, &exact)) {
        snprintf(why, why_size, "too large for a whole number");
        return false;
    }
    uint32_t over = q.how != NULL ? q.how->over : 1;
    if (!exact || whole % over != 0) {
        snprintf(why, why_size, "not a whole number");
        return false;
    }
    *value = whole / over;
    return true;
}

/* Exact for n ≤ 22; pow would depend on the machine's libm. */
static double ten_to(int n)
{
    double power = 1;
    for (; n > 0; n--) {
        power *= 10;
    }
    return power;
}

/* The shortest number text that reads back to value when the spelling's suffix follows; false when
 * 17 digits do not suffice (the scaling may round on its own). */
static bool number_text(double value, const struct spelling *s, enum unit unit, char *text,
                        size_t size)
{
    double number = value * s->over / (double)s->times;
    number = s->power < 0 ? number * ten_to(-s->power) : number / ten_to(s->power);
    number += 0.0; /* no "-0" */
    for (int precision = 1; precision <= 17; precision++) {
        char why[96];
        double back;
        if (number == floor(number) && fabs(number) < 1e15) {
            precision = 17; /* whole numbers in full: 15000000, not 1.5e+07 */
        }
        bool dollar = s->suffix[0] == '$';
        const char *tail = dollar ? s->suffix + 1 : s->suffix;
        const char *gap = dollar || tail[0] == '\0' ? "" : " ";
        snprintf(text, size, "%s%.*g%s%s", dollar ? "$" : "", precision, number, gap, tail);
        if (units_parse_real(text, unit, &back, why, sizeof(why)) && back == value) {
            return true;
        }
    }
    return false;
}

char *units_text_real(double value, enum unit unit, char *buffer)
{
    check((unsigned)unit < UNIT_COUNT);
    check_msg(isfinite(value), "a quantity that is not finite has no text");
    size_t best = SIZE_MAX;
    for (const struct spelling *s = units[unit].spellings; s->suffix != NULL; s++) {
        char text[UNITS_TEXT_MAX];
        if (s->shown && number_text(value, s, unit, text, sizeof(text)) && strlen(text) < best) {
            best = strlen(text);
            memcpy(buffer, text, best + 1);
        }
    }
    check(best < UNITS_TEXT_MAX); /* the canonical unit always reads back with 17 digits */
    return buffer;
}

char *units_text_time(int64_t value_ps, char *buffer)
{
    static const struct {
        const char *suffix;
        int64_t ps;
    } shown[] = {{"s", PS_PER_SECOND}, {"ms", 1000000000}, {"us", 1000000},
                 {"ns", 1000},         {"ps", 1},          {"min", 60 * PS_PER_SECOND},
                 {"h", PS_PER_HOUR}};
    if (value_ps == TIME_NONE) {
        buffer[0] = '\0';
        return buffer;
    }
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        char number[TIME_TEXT_MAX], text[UNITS_TEXT_MAX];
        if (value_ps % shown[i].ps == 0) {
            snprintf(number, sizeof(number), "%lld", (long long)(value_ps / shown[i].ps));
        } else if (i == 0) {
            time_text(value_ps, number); /* seconds take every picosecond */
        } else {
            continue;
        }
        snprintf(text, sizeof(text), "%s %s", number, shown[i].suffix);
        if (strlen(text) < best) {
            best = strlen(text);
            memcpy(buffer, text, best + 1);
        }
    }
    return buffer;
}
