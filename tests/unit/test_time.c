/* Integer time: long clocks, hour edges, conversions (acceptance T09). */
#include <math.h>

#include "sim/base/event_queue.h"
#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "tests/unit/suite_run.h"

START_TEST(ten_days_of_ticks)
{
    int64_t tick_ps, horizon_ps;
    char why[64];
    ck_assert(units_parse_time("0.1 s", &tick_ps, why, sizeof(why)));
    ck_assert(units_parse_time("10 d", &horizon_ps, why, sizeof(why)));
    int64_t now_ps = 0, ticks = 0, tick_36000_hour = -1;
    while (now_ps < horizon_ps) {
        now_ps = time_add(now_ps, tick_ps);
        ticks++;
        if (ticks == 36000) {
            tick_36000_hour = time_hour(now_ps);
        }
    }
    ck_assert_int_eq(ticks, 8640000);
    ck_assert_int_eq(now_ps, 864000 * PS_PER_SECOND);
    ck_assert_int_eq(tick_36000_hour, 1);
}
END_TEST

START_TEST(hours_by_stamp)
{
    ck_assert_int_eq(time_hour(0), 0);
    ck_assert_int_eq(time_hour(3600 * PS_PER_SECOND - 1), 0);
    ck_assert_int_eq(time_hour(3600 * PS_PER_SECOND), 1);
    ck_assert_int_eq(time_hour(HORIZON_MAX_PS), 2400);

    /* A request from 3,599.9 to 3,600.1 s: started in hour 0, finished in hour 1, 0.1 s in each. */
    int64_t start_ps, end_ps;
    char why[64];
    ck_assert(units_parse_time("3599.9", &start_ps, why, sizeof(why)));
    ck_assert(units_parse_time("3600.1", &end_ps, why, sizeof(why)));
    ck_assert_int_eq(time_hour(start_ps), 0);
    ck_assert_int_eq(time_hour(end_ps), 1);
    int64_t edge_ps = time_hour(end_ps) * PS_PER_HOUR;
    ck_assert_int_eq(edge_ps - start_ps, 100000000000);
    ck_assert_int_eq(end_ps - edge_ps, 100000000000);
}
END_TEST

START_TEST(a_week_of_15_s_timers)
{
    struct event_queue q;
    event_queue_init(&q, 1);
    int64_t interval_ps = 15 * PS_PER_SECOND, horizon_ps = 7 * 24 * PS_PER_HOUR;
    event_queue_push(&q, 0, EVENT_TIMER, 0, 0);
    struct event event;
    int64_t fired = 0, last_ps = -1;
    while (event_queue_pop(&q, &event)) {
        fired++;
        last_ps = event.time_ps;
        int64_t next_ps = time_add(event.time_ps, interval_ps);
        if (next_ps < horizon_ps) {
            event_queue_push(&q, next_ps, EVENT_TIMER, 0, 0);
        }
    }
    ck_assert_int_eq(fired, 40320);
    ck_assert_int_eq(last_ps, horizon_ps - interval_ps);
    event_queue_free(&q);
}
END_TEST

START_TEST(seconds_round_once)
{
    ck_assert_int_eq(time_from_seconds(0), 0);
    ck_assert_int_eq(time_from_seconds(0.1), 100000000000);
    ck_assert_int_eq(time_from_seconds(-0.1), -100000000000);
    ck_assert_int_eq(time_from_seconds(1e-12), 1);
    ck_assert_int_eq(time_from_seconds(4e-13), 0);
    ck_assert_int_eq(time_from_seconds(6e-13), 1);
    ck_assert_int_eq(time_from_seconds(5e-324), 0);
    ck_assert_int_eq(time_from_seconds(0x1p-13), 122070313); /* 122070312.5: half away from 0 */
    ck_assert_int_eq(time_from_seconds(-0x1p-13), -122070313);
    ck_assert_int_eq(time_from_seconds(8640000), HORIZON_MAX_PS);
    ck_assert_int_eq(time_from_seconds(1e7), INT64_MAX);
    ck_assert_int_eq(time_from_seconds(-1e300), -INT64_MAX);
    ck_assert_int_eq(time_from_seconds(INFINITY), INT64_MAX);
    ck_assert_int_eq(time_from_seconds(9223372.036854775807), INT64_MAX);
    ck_assert_int_lt(time_from_seconds(nextafter(9223372.036854775807, 0)), INT64_MAX);
    /* Against long double, whose 64 bits hold the product of these exactly enough to decide. */
    for (uint64_t i = 0; i < 100000; i++) {
        struct rng_pair bits = rng_draw(1, 1, i);
        double seconds = rng_unit(bits.a) * exp2(-(double)(bits.b % 60)) * 1000;
        long double product = (long double)seconds * 1e12L;
        ck_assert_msg(fabsl((long double)time_from_seconds(seconds) - product) <= 0.5001L, "%.17g",
                      seconds);
    }
}
END_TEST

START_TEST(text_is_exact)
{
    static const struct {
        int64_t ps;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "0.000000000001"},
        {PS_PER_SECOND, "1"},
        {12345 * (PS_PER_SECOND / 1000), "12.345"},
        {-PS_PER_SECOND / 2, "-0.5"},
        {100 * PS_PER_SECOND, "100"},
        {INT64_MAX, "9223372.036854775807"},
        {-INT64_MAX, "-9223372.036854775807"},
        {TIME_NONE, ""},
    };
    char text[TIME_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_ptr_eq(time_text(cases[i].ps, text), text);
        ck_assert_str_eq(text, cases[i].text);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        struct rng_pair bits = rng_draw(1, 2, i);
        int64_t ps = (int64_t)(bits.a >> (1 + bits.b % 62)), back;
        char why[64];
        ck_assert(units_parse_time(time_text(ps, text), &back, why, sizeof(why)));
        ck_assert_int_eq(back, ps);
    }
}
END_TEST

static void overflow(void *arg)
{
    int64_t *late = arg;
    *late = time_add(*late, *late);
}

START_TEST(an_overflow_is_a_clear_end)
{
    char message[256];
    int64_t late = INT64_MAX / 2 + 1;
    int status = suite_child(overflow, &late, message, sizeof(message));
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ck_assert_ptr_nonnull(strstr(message, "simulated time passed 106 days"));
    ck_assert_int_eq(time_add(INT64_MAX / 2, INT64_MAX / 2), INT64_MAX - 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ten_days_of_ticks,
                                  hours_by_stamp,
                                  a_week_of_15_s_timers,
                                  seconds_round_once,
                                  text_is_exact,
                                  an_overflow_is_a_clear_end,
                                  NULL};
    return suite_run("time", tests, 60);
}
