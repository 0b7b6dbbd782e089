/* T02: replicas as the queues of queueing theory, against their formulas. 20 replications of
 * 100,000 requests each, the first 5 % dropped; 99 % Student intervals over the replications.
 * docs/validation-theory.md has the formulas and what was measured. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/theory/support_queue.h"

/* A half-width stated for 100,000 requests. */
static const double WIDTH_MAX = 0.03;

struct outcome {
    struct moments wait, wait_p99, time, time_p99, waiting, in_system;
    int64_t wait_max_ps;
};

static struct outcome simulate(const struct queue_case *c)
{
    struct outcome o = {0};
    struct moments *all[] = {&o.wait, &o.wait_p99, &o.time, &o.time_p99, &o.waiting, &o.in_system};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        moments_init(all[i]);
    }
    for (uint32_t r = 0; r < QUEUE_REPLICATIONS; r++) {
        struct queue_sample s;
        queue_simulate(c, r, QUEUE_REQUESTS / queue_scale(), &s);
        /* Little's law on a run that starts and ends empty, exactly: N̄ = (n/T) · W. */
        ck_assert(s.area_ps == s.sojourn_ps);
        double number = (double)s.area_ps / (double)s.end_ps;
        double rate = (double)s.requests / (double)s.end_ps;
        double time = (double)s.sojourn_ps / (double)s.requests;
        ck_assert_double_le(fabs(number - rate * time), 1e-9 * number);
        moments_add(&o.wait, s.wait_mean_s);
        moments_add(&o.wait_p99, s.wait_p99_s);
        moments_add(&o.time, s.time_mean_s);
        moments_add(&o.time_p99, s.time_p99_s);
        moments_add(&o.waiting, s.share_waiting);
        moments_add(&o.in_system, s.in_system);
        o.wait_max_ps = s.wait_max_ps > o.wait_max_ps ? s.wait_max_ps : o.wait_max_ps;
    }
    return o;
}

/* The interval must hold the theory's value; narrow: and be under 3 % of it on either side (with
 * fewer requests, 3 % times the root of how many times fewer). */
static void expect(const char *name, const char *what, const struct moments *m, double theory,
                   bool narrow)
{
    struct moments_interval i = moments_interval(m, QUEUE_CONFIDENCE);
    double half = (i.high - i.low) / 2 / theory;
    printf("%-22s %-16s theory %-10.6g measured %.6g [%.6g, %.6g] ±%.2f %%\n", name, what, theory,
           i.mid, i.low, i.high, 100 * half);
    fflush(stdout);
    ck_assert_msg(i.low <= theory && theory <= i.high, "%s, %s: %g is not in [%g, %g]", name, what,
                  theory, i.low, i.high);
    double allowed = WIDTH_MAX * sqrt(queue_scale());
    ck_assert_msg(!narrow || half < allowed, "%s, %s: ±%.2f %%", name, what, 100 * half);
}

/* Exponential service of mean 0.1 s: a prompt of 1 µs per token, drawn with mean 100,000 and
 * rounded up (which adds half a token: 5e-6 of the mean). One prompt in 36,000 is longer than the
 * largest token budget and takes two iterations; with no fixed part they take as long as one. */
static const char exponential_prompt[] = "exponential mean=100000";
static const char one_output[] = "constant value=1";
static const char per_token[] = "affine base=0 s,per_token=1 us";

START_TEST(mm1)
{
    const struct queue_case c = {.name = "M/M/1",
                                 .rate = "7 /s",
                                 .prompt = exponential_prompt,
                                 .output = one_output,
                                 .step = per_token,
                                 .router = "least_loaded",
                                 .replicas = 1,
                                 .seats = 1};
    struct outcome o = simulate(&c);
    expect(c.name, "mean wait", &o.wait, 0.7 / 3, true);
    expect(c.name, "mean in system", &o.time, 1.0 / 3, true);
    expect(c.name, "p99 wait", &o.wait_p99, log(70) / 3, false);
    expect(c.name, "p99 in system", &o.time_p99, log(100) / 3, false);
    expect(c.name, "share waiting", &o.waiting, 0.7, true);
    expect(c.name, "number in system", &o.in_system, 7.0 / 3, true);
}
END_TEST

/* N outputs of 1 ms, N geometric with mean 100: E[S²] = (2 − p)/p² = 0.0199 s². */
START_TEST(mg1_geometric)
{
    const struct queue_case c = {.name = "M/Geo/1",
                                 .rate = "7 /s",
                                 .prompt = "constant value=1",
                                 .output = "geometric mean=100",
                                 .step = "constant step=1 ms",
                                 .router = "least_loaded",
                                 .replicas = 1,
                                 .seats = 1};
    struct outcome o = simulate(&c);
    expect(c.name, "mean wait", &o.wait, 7 * 0.0199 / (2 * 0.3), true);
    expect(c.name, "share waiting", &o.waiting, 0.7, true);
}
END_TEST

START_TEST(md1)
{
    const struct queue_case c = {.name = "M/D/1",
                                 .rate = "7 /s",
                                 .prompt = "constant value=1",
                                 .output = one_output,
                                 .step = "constant step=100 ms",
                                 .router = "least_loaded",
                                 .replicas = 1,
                                 .seats = 1};
    struct outcome o = simulate(&c);
    expect(c.name, "mean wait", &o.wait, 7 * 0.01 / (2 * 0.3), true);
    expect(c.name, "share waiting", &o.waiting, 0.7, true);
}
END_TEST

/* Four servers and a load of 2.8: Erlang C gives the share that waits. */
START_TEST(four_servers)
{
    struct queue_case c = {.name = "M/M/4 central_queue",
                           .rate = "28 /s",
                           .prompt = exponential_prompt,
                           .output = one_output,
                           .step = per_token,
                           .router = "central_queue",
                           .replicas = 4,
                           .seats = 1};
    struct outcome shared = simulate(&c);
    expect(c.name, "mean wait", &shared.wait, 0.0357212, true);
    expect(c.name, "share waiting", &shared.waiting, 0.428654, true);
    c.name = "4 x M/M/1 random";
    c.router = "random";
    struct outcome split = simulate(&c);
    expect(c.name, "mean wait", &split.wait, 0.7 / 3, true);
    expect(c.name, "share waiting", &split.waiting, 0.7, true);
    c.name = "4 least_loaded";
    c.router = "least_loaded";
    struct outcome least = simulate(&c);
    struct moments_interval low = moments_interval(&shared.wait, QUEUE_CONFIDENCE);
    struct moments_interval mid = moments_interval(&least.wait, QUEUE_CONFIDENCE);
    struct moments_interval high = moments_interval(&split.wait, QUEUE_CONFIDENCE);
    printf("%-22s %-16s between              measured %.6g [%.6g, %.6g]\n", c.name, "mean wait",
           mid.mid, mid.low, mid.high);
    ck_assert_double_lt(low.high, mid.low);
    ck_assert_double_lt(mid.high, high.low);
}
END_TEST

/* Seats for everybody and a constant step of 0.1 s: a request waits for the boundary of the step it
 * meets and for nothing else. With 14 in the system the replica is never idle in practice
 * (e^-14.35), so the residual is uniform on the step: 0.05 s on average. It then stays N steps,
 * N geometric with mean 20. */
START_TEST(unlimited_batch)
{
    const struct queue_case c = {.name = "unlimited batch",
                                 .rate = "7 /s",
                                 .prompt = "constant value=1",
                                 .output = "geometric mean=20",
                                 .step = "constant step=100 ms",
                                 .router = "least_loaded",
                                 .replicas = 1,
                                 .seats = 1048576};
    struct outcome o = simulate(&c);
    expect(c.name, "mean wait", &o.wait, 0.05, true);
    expect(c.name, "mean in system", &o.time, 2.05, true);
    expect(c.name, "number in system", &o.in_system, 7 * 2.05, true);
    ck_assert_int_lt(o.wait_max_ps, PS_PER_SECOND / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("queueing");
    TCase *tests = tcase_create("formulas");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, mm1);
    tcase_add_test(tests, mg1_geometric);
    tcase_add_test(tests, md1);
    tcase_add_test(tests, four_servers);
    tcase_add_test(tests, unlimited_batch);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
