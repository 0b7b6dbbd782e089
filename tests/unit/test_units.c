/* Quantities: what may be written, what it means to the last picosecond, and what is refused. */
#include <math.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "tests/unit/suite_run.h"

START_TEST(times_are_exact)
{
    static const struct {
        const char *text;
        int64_t ps;
    } cases[] = {
        {"0.1 s", 100000000000},
        {"0.1", 100000000000},
        {"1e-12 s", 1},
        {"1e-12", 1},
        {"2 ms", 2000000000},
        {"2ms", 2000000000},
        {" 30 s ", 30 * PS_PER_SECOND},
        {"15_000", 15000 * PS_PER_SECOND},
        {"1.5e3 ms", 1500000000000},
        {"5 min", 300 * PS_PER_SECOND},
        {"24 h", 24 * PS_PER_HOUR},
        {"10 d", 240 * PS_PER_HOUR},
        {"1 day", 24 * PS_PER_HOUR},
        {"7 us", 7000000},
        {"7 µs", 7000000},
        {"7 μs", 7000000},
        {"3 ns", 3000},
        {"3 ps", 3},
        {"0 s", 0},
        {"-0", 0},
        {"-1.5 s", -1500000000000},
        {"+.5 s", 500000000000},
        {"5. s", 5 * PS_PER_SECOND},
        {"0.5 ps", 1},   /* half away from zero */
        {"-0.5 ps", -1}, /* on both sides */
        {"0.49999999999999999999999999999999999 ps", 0},
        {"2.5 ps", 3},
        {"1e-400 s", 0},
        {"0e99999999999", 0},
        {"3600.0000000000004 s", 3600 * PS_PER_SECOND},
        {"863999.999999999999 s", 864000 * PS_PER_SECOND - 1},
        {"9223372.036854775807", INT64_MAX},
        {"0.000000000000000000000000000001e30", PS_PER_SECOND},
        {"1000000000000000000000000000000e-30", PS_PER_SECOND},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ps = -7;
        char why[128] = "";
        ck_assert_msg(units_parse_time(cases[i].text, &ps, why, sizeof(why)), "%s: %s",
                      cases[i].text, why);
        ck_assert_msg(ps == cases[i].ps, "%s: %lld", cases[i].text, (long long)ps);
    }
}
END_TEST

START_TEST(reals_are_scaled_once)
{
    static const struct {
        const char *text;
        enum unit unit;
        double value;
    } cases[] = {
        {"1e6", UNIT_NONE, 1e6},
        {"-3.25", UNIT_NONE, -3.25},
        {"2 ms", UNIT_TIME, 0.002},
        {"173.6 /s", UNIT_RATE, 173.6},
        {"90/min", UNIT_RATE, 1.5},
        {"15e6 /day", UNIT_RATE, 15e6 / 86400},
        {"36 / h", UNIT_RATE, 0.01},
        {"70 %", UNIT_FRACTION, 0.7},
        {"70%", UNIT_FRACTION, 0.7},
        {"0.7", UNIT_FRACTION, 0.7},
        {"7 %", UNIT_FRACTION, 0.07},
        {"8k", UNIT_TOKENS, 8000},
        {"15000 tokens/s", UNIT_TOKENS_PER_S, 15000},
        {"80 GiB", UNIT_BYTES, 85899345920},
        {"640 kB", UNIT_BYTES, 640000},
        {"3.35 TB/s", UNIT_BYTES_PER_S, 3.35e12},
        {"989 TFLOPS", UNIT_FLOPS, 989e12},
        {"1.979 PFLOP/s", UNIT_FLOPS, 1.979e15},
        {"$3", UNIT_USD, 3},
        {"3 $", UNIT_USD, 3},
        {"3 USD", UNIT_USD, 3},
        {"-$3", UNIT_USD, -3},
        {"$2.10/h", UNIT_USD_PER_HOUR, 2.10},
        {"$ 2.10 / h", UNIT_USD_PER_HOUR, 2.10},
        {"2.10 $/h", UNIT_USD_PER_HOUR, 2.10},
        {"2.10", UNIT_USD_PER_HOUR, 2.10},
        {"$0.60/Mtok", UNIT_USD_PER_MTOK, 0.60},
        {"700 W", UNIT_WATTS, 700},
        {"1.2 MW", UNIT_WATTS, 1.2e6},
        {"16 bits", UNIT_BITS, 16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double value = NAN;
        char why[128] = "";
        ck_assert_msg(units_parse_real(cases[i].text, cases[i].unit, &value, why, sizeof(why)),
                      "%s: %s", cases[i].text, why);
        ck_assert_msg(value == cases[i].value, "%s: %.17g", cases[i].text, value);
    }
}
END_TEST

START_TEST(whole_numbers)
{
    static const struct {
        const char *text;
        enum unit unit;
        int64_t value;
    } good[] = {
        {"1e6", UNIT_NONE, 1000000},
        {"15_000", UNIT_TOKENS, 15000},
        {"8k", UNIT_TOKENS, 8000},
        {"8192 tokens", UNIT_TOKENS, 8192},
        {"1.5k", UNIT_TOKENS, 1500},
        {"80 GiB", UNIT_BYTES, 85899345920},
        {"-4", UNIT_NONE, -4},
        {"4.0", UNIT_NONE, 4},
        {"120 /min", UNIT_RATE, 2},
        {"9223372036854775807", UNIT_NONE, INT64_MAX},
        {"9007199254740993", UNIT_NONE, 9007199254740993},
    };
    char why[128];
    int64_t value;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_msg(units_parse_int(good[i].text, good[i].unit, &value, why, sizeof(why)),
                      "%s: %s", good[i].text, why);
        ck_assert_msg(value == good[i].value, "%s: %lld", good[i].text, (long long)value);
    }
    static const char *const bad[] = {
        "1.5", "1e-1", "0.9999999999999999999", "9223372036854775808", "1e19", "1e99999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        value = 42;
        ck_assert_msg(!units_parse_int(bad[i], UNIT_NONE, &value, why, sizeof(why)), "%s", bad[i]);
        ck_assert_int_eq(value, 42);
    }
    ck_assert(!units_parse_int("90 /min", UNIT_RATE, &value, why, sizeof(why)));
    ck_assert_str_eq(why, "not a whole number");
}
END_TEST

/* Refused, whatever the unit, and the target stays as it was. */
START_TEST(garbage_is_refused_with_a_reason)
{
    static const char *const bad[] = {
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "NaN s",
        "abc",
        "s",
        "$",
        "/s",
        ".",
        "-",
        "--1",
        "+-1",
        "1 s s",
        "1s2",
        "1 2",
        "0x10",
        "1,5",
        "1__0",
        "_1",
        "1_",
        "1e",
        "1e+",
        "1e5.5",
        "e5",
        "1 kb",
        "1 m",
        "1 S",
        "1 sec;",
        "$$3",
        "1 $",
        "1.2.3",
        "²",
        "1 GiBs",
        "1/ss",
        "1e400 parsecs",
        "30 s # comment",
        "1 %%",
        "٣",
        "1 averyveryverylongsuffixthatnobodyuses",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char why[128] = "";
        int64_t ps = 42;
        double value = 42;
        ck_assert_msg(!units_parse_time(bad[i], &ps, why, sizeof(why)), "time '%s'", bad[i]);
        ck_assert_msg(strlen(why) > 5 && why[strlen(why) - 1] != '.', "'%s': '%s'", bad[i], why);
        ck_assert_int_eq(ps, 42);
        ck_assert_msg(!units_parse_real(bad[i], UNIT_TIME, &value, why, sizeof(why)), "real '%s'",
                      bad[i]);
        ck_assert(value == 42);
        ck_assert(!units_parse_int(bad[i], UNIT_TIME, &ps, why, sizeof(why)));
    }
}
END_TEST

START_TEST(reasons_name_what_is_wrong)
{
    char why[128];
    int64_t ps;
    double value;
    ck_assert(!units_parse_time("30 parsecs", &ps, why, sizeof(why)));
    ck_assert_str_eq(why, "unknown unit 'parsecs', not a time such as 30 s, 5 min, 2 h");
    ck_assert(!units_parse_time("soon", &ps, why, sizeof(why)));
    ck_assert_str_eq(why, "not a time such as 30 s, 5 min, 2 h");
    ck_assert(!units_parse_time("9223372.036854775808", &ps, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "106 days"));
    ck_assert(!units_parse_time("1e300 h", &ps, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "106 days"));
    ck_assert(!units_parse_real("1e309", UNIT_NONE, &value, why, sizeof(why)));
    ck_assert_str_eq(why, "too large for a number");
    ck_assert(!units_parse_real("3 s", UNIT_NONE, &value, why, sizeof(why)));
    ck_assert_str_eq(why, "'s' after a number that has no unit");
    ck_assert(!units_parse_real("$2.10", UNIT_USD_PER_HOUR, &value, why, sizeof(why)));
    /* A number of any length is read exactly or refused, never cut. */
    char digits[600];
    memset(digits, '1', sizeof(digits));
    digits[sizeof(digits) - 1] = '\0';
    ck_assert(!units_parse_real(digits, UNIT_NONE, &value, why, sizeof(why)));
    char tiny[4];
    ck_assert(!units_parse_time("x", &ps, tiny, sizeof(tiny)));
    ck_assert_str_eq(tiny, "not");
}
END_TEST

START_TEST(text_is_short)
{
    char text[UNITS_TEXT_MAX];
    ck_assert_str_eq(units_text_real(85899345920, UNIT_BYTES, text), "80 GiB");
    ck_assert_str_eq(units_text_real(3.35e12, UNIT_BYTES_PER_S, text), "3350 GB/s");
    ck_assert_str_eq(units_text_real(0.7, UNIT_FRACTION, text), "0.7");
    ck_assert_str_eq(units_text_real(2.1, UNIT_USD_PER_HOUR, text), "$2.1/h");
    ck_assert_str_eq(units_text_real(-3, UNIT_USD, text), "$-3");
    ck_assert_str_eq(units_text_real(173.6, UNIT_RATE, text), "173.6 /s");
    ck_assert_str_eq(units_text_real(15e6, UNIT_NONE, text), "15000000");
    ck_assert_str_eq(units_text_real(-0.0, UNIT_NONE, text), "0");
    ck_assert_str_eq(units_text_real(989e12, UNIT_FLOPS, text), "989 TFLOPS");
    ck_assert_str_eq(units_text_time(30 * PS_PER_SECOND, text), "30 s");
    ck_assert_str_eq(units_text_time(300 * PS_PER_SECOND, text), "300 s");
    ck_assert_str_eq(units_text_time(24 * PS_PER_HOUR, text), "24 h");
    ck_assert_str_eq(units_text_time(30000000000, text), "30 ms");
    ck_assert_str_eq(units_text_time(1, text), "1 ps");
    ck_assert_str_eq(units_text_time(0, text), "0 s");
    ck_assert_str_eq(units_text_time(TIME_NONE, text), "");
    for (int unit = 0; unit < UNIT_COUNT; unit++) {
        ck_assert_int_gt(strlen(units_name(unit)), 0);
        ck_assert_int_eq(units_hint(unit)[0], 'a');
    }
}
END_TEST

START_TEST(text_reads_back_to_the_same_value)
{
    char text[UNITS_TEXT_MAX], why[128];
    for (uint64_t i = 0; i < 20000; i++) {
        struct rng_pair bits = rng_draw(1, 2, i);
        int64_t ps = (int64_t)(bits.a >> (1 + bits.b % 60)), back_ps;
        ps = bits.b & 64 ? -ps : ps;
        ps -= bits.b & 128 ? ps % 1000000 : 0;
        ck_assert_msg(units_parse_time(units_text_time(ps, text), &back_ps, why, sizeof(why)),
                      "%s: %s", text, why);
        ck_assert_msg(back_ps == ps, "%s for %lld", text, (long long)ps);

        double value, back;
        memcpy(&value, &bits.a, sizeof(value));
        if (i % 2 == 0) {
            value = (double)(int64_t)(bits.a >> (bits.b % 64)) / (i % 4 == 0 ? 1000 : 1);
        }
        if (isfinite(value)) {
            enum unit unit = (enum unit)(bits.b % UNIT_COUNT);
            ck_assert_msg(
                units_parse_real(units_text_real(value, unit, text), unit, &back, why, sizeof(why)),
                "%s: %s", text, why);
            ck_assert_msg(back == value, "%s for %.17g", text, value);
        }
    }
    ck_assert(units_parse_time(units_text_time(INT64_MAX, text), &(int64_t){0}, why, sizeof(why)));
}
END_TEST

/* Any bytes: no crash, and what is accepted is a number in range. Mutations of good texts reach
 * deeper than noise. */
START_TEST(noise_is_handled)
{
    static const char alphabet[] = "0123456789._eE+-$%/ smhdkKMGTiB\t\xC2\xB5";
    int accepted = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        char text[24], why[64];
        struct rng_pair bits = rng_draw(3, 4, i);
        size_t length = bits.b % (sizeof(text) - 1);
        for (size_t j = 0; j < length; j++) {
            text[j] = alphabet[rng_draw(5, i, j).a % (sizeof(alphabet) - 1)];
        }
        text[length] = '\0';
        int64_t whole;
        double value;
        for (int unit = 0; unit < UNIT_COUNT; unit++) {
            if (units_parse_real(text, (enum unit)unit, &value, why, sizeof(why))) {
                accepted++;
                ck_assert(isfinite(value));
            }
        }
        if (units_parse_int(text, UNIT_TOKENS, &whole, why, sizeof(why))) {
            ck_assert(units_parse_real(text, UNIT_TOKENS, &value, why, sizeof(why)));
            ck_assert(fabs(value - (double)whole) <= 1e-15 * fabs(value));
        }
    }
    ck_assert_int_gt(accepted, 1000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {times_are_exact,
                                  reals_are_scaled_once,
                                  whole_numbers,
                                  garbage_is_refused_with_a_reason,
                                  reasons_name_what_is_wrong,
                                  text_is_short,
                                  text_reads_back_to_the_same_value,
                                  noise_is_handled,
                                  NULL};
    return suite_run("units", tests, 60);
}
