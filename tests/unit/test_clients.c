/* Clients that react: closed loops, patience, priority; against schedules by hand, the interactive
 * response-time law, and stepping one iteration at a time. */
#include <math.h>

#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

#define FLEET(engine)                                                                              \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      engine: {max_num_batched_tokens: 512" engine "}\n"                                      \
    "      step_time: {model: constant, step: 100 ms}\n"                                           \
    "      initial_replicas: 1\n"                                                                  \
    "      capacity: 10\n"                                                                         \
    "      autoscaler: {policy: static, replicas: 1}\n"

#define LENGTHS                                                                                    \
    "    prompt_tokens: {dist: constant, value: 10}\n"                                             \
    "    output_tokens: {dist: constant, value: 5}\n"

/* Runs it both ways; the rows are the same. */
static struct run_text both_ways(const char *yaml, const char *trace)
{
    struct run_text span = run_text_set(yaml, trace, NULL, 0, false);
    struct run_text step = run_text_set(yaml, trace, NULL, 0, true);
    ck_assert_str_eq(span.totals.digest, step.totals.digest);
    ck_assert_str_eq(span.csv, step.csv);
    run_text_free(&step);
    return span;
}

/* Three users, answers of 0.5 s, 1 s to think: a round every 1.5 s. */
START_TEST(rounds_of_a_closed_loop)
{
    struct run_text r = both_ways("name: t\nhorizon: 15 s\nworkload:\n  - name: a\n"
                                  "    arrivals: {process: closed_loop, concurrency: 3, "
                                  "think_time: 1 s}\n" LENGTHS FLEET(""),
                                  NULL);
    ck_assert_uint_eq(r.row_count, 30);
    for (size_t i = 0; i < 30; i++) {
        ck_assert_int_eq(r.rows[i].arrival_ps, MILLIS(1500) * (int64_t)(i / 3));
        ck_assert_int_eq(r.rows[i].end_ps, r.rows[i].arrival_ps + MILLIS(500));
    }
    run_text_free(&r);
}
END_TEST

/* Users come one by one over the ramp, from the class's start, and stop after `count`. */
START_TEST(ramp_and_count)
{
    struct run_text r = both_ways("name: t\nhorizon: 60 s\nworkload:\n  - name: a\n    start: 3 s\n"
                                  "    arrivals: {process: closed_loop, concurrency: 4, "
                                  "ramp: 8 s, count: 6, think_time: 10 s}\n" LENGTHS FLEET(""),
                                  NULL);
    static const int64_t arrivals_ms[] = {3000, 5000, 7000, 9000, 13500, 15500};
    ck_assert_uint_eq(r.row_count, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(r.rows[i].arrival_ps, MILLIS(arrivals_ms[i]));
    run_text_free(&r);
}
END_TEST

/* With no time to think at all, the next request comes 1 ps later: the clock goes on. */
START_TEST(no_think_time)
{
    struct run_text r =
        both_ways("name: t\nhorizon: 10 s\nworkload:\n  - name: a\n"
                  "    arrivals: {process: closed_loop, concurrency: 2}\n" LENGTHS FLEET(""),
                  NULL);
    ck_assert_uint_eq(r.row_count, 40);
    ck_assert_int_eq(r.rows[2].arrival_ps, MILLIS(500) + 1);
    ck_assert_int_eq(r.rows[2].end_ps, MILLIS(1000) + 1);
    run_text_free(&r);
}
END_TEST

#define RANDOM_LOOP(more)                                                                          \
    "name: t\nhorizon: 2000 s\nworkload:\n  - name: a\n"                                           \
    "    arrivals: {process: closed_loop, concurrency: 20, think_time: 2 s, "                      \
    "think_distribution: exponential}\n"                                                           \
    "    prompt_tokens: {dist: lognormal, mean: 50, sigma: 1, max: 400}\n"                         \
    "    output_tokens: {dist: geometric, mean: 10}\n" FLEET(more)

/* Request n is the same whoever asks it and however fast the fleet is; and N = X (R + Z). */
START_TEST(numbers_and_the_response_time_law)
{
    struct run_text fast = both_ways(RANDOM_LOOP(""), NULL);
    struct run_text slow = run_text_do(RANDOM_LOOP(", max_num_seqs: 2"), NULL);
    ck_assert_uint_gt(fast.row_count, 2 * slow.row_count);
    for (size_t i = 0; i < slow.row_count; i++)
        if (fast.rows[i].prompt != slow.rows[i].prompt ||
            fast.rows[i].output != slow.rows[i].output)
            ck_abort_msg("request %zu differs", i);
    const struct run_text *runs[] = {&fast, &slow};
    for (int k = 0; k < 2; k++) {
        double response = 0;
        for (size_t i = 0; i < runs[k]->row_count; i++)
            response += time_seconds(runs[k]->rows[i].end_ps - runs[k]->rows[i].arrival_ps);
        double n = (double)runs[k]->row_count;
        double users = n / 2000 * (response / n + 2);
        ck_assert_double_eq_tol(users, 20, 0.4);
    }
    run_text_free(&fast);
    run_text_free(&slow);
}
END_TEST

/* One seat, no queue: the second user is refused, and tries again a second later each time. */
START_TEST(refused_users_retry)
{
    struct run_text r =
        both_ways("name: t\nhorizon: 10 s\nworkload:\n  - name: a\n"
                  "    arrivals: {process: closed_loop, concurrency: 2, "
                  "think_time: 100 ms}\n" LENGTHS FLEET(", max_num_seqs: 1") "      max_queue: 0\n",
                  NULL);
    ck_assert_str_eq(r.rows[0].outcome, "completed");
    ck_assert_str_eq(r.rows[1].outcome, "refused");
    ck_assert_int_eq(r.rows[1].arrival_ps, 0);
    /* User 0: 0, 0.6, 1.2 …; user 1 comes back at 1.0, in the middle of 0.6 … 1.1, then at 2.0 … */
    ck_assert_int_eq(r.rows[2].arrival_ps, MILLIS(600));
    ck_assert_int_eq(r.rows[3].arrival_ps, MILLIS(1000));
    ck_assert_str_eq(r.rows[3].outcome, "refused");
    ck_assert_int_eq(r.rows[4].arrival_ps, MILLIS(1200));
    run_text_free(&r);
}
END_TEST

#define TRACE_CLASS                                                                                \
    "name: t\nworkload:\n  - name: a\n    arrivals: {process: trace, file: trace.csv}\n"

/* One seat; answers of 1 s. At 0.55 s one client leaves in the middle of its answer, one in the
 * queue; the next is served at once. */
START_TEST(patience_in_queue_and_mid_stream)
{
    struct run_text r = both_ways(TRACE_CLASS "    patience: 550 ms\n" FLEET(", max_num_seqs: 1"),
                                  "0,10,10\n0,10,10\n0.2,10,3\n");
    ck_assert_str_eq(r.rows[0].outcome, "cancelled");
    ck_assert_int_eq(r.rows[0].first_token_ps, MILLIS(100));
    ck_assert_int_eq(r.rows[0].end_ps, MILLIS(550));
    ck_assert_str_eq(r.rows[1].outcome, "cancelled");
    ck_assert_int_eq(r.rows[1].admitted_ps, TIME_NONE);
    ck_assert_int_eq(r.rows[1].end_ps, MILLIS(550));
    ck_assert_int_eq(r.rows[2].admitted_ps, MILLIS(600)); /* when the step in flight has ended */
    ck_assert_str_eq(r.rows[2].outcome, "cancelled");     /* at 0.75, one token short of nothing */
    ck_assert_int_eq(r.rows[2].end_ps, MILLIS(750));
    run_text_free(&r);
}
END_TEST

/* A deadline that never comes to pass changes nothing, not even the end of the run. */
START_TEST(answered_deadlines_leave_no_trace)
{
    const char *trace = "0,10,10\n0.1,10,4\n0.15,10,2\n3,10,1\n";
    struct run_text plain = both_ways(TRACE_CLASS FLEET(""), trace);
    struct run_text patient = both_ways(TRACE_CLASS "    patience: 1 h\n" FLEET(""), trace);
    ck_assert_str_eq(plain.totals.digest, patient.totals.digest);
    ck_assert_str_eq(plain.csv, patient.csv);
    ck_assert_uint_eq(metrics_hour_count(run_metrics(plain.run)),
                      metrics_hour_count(run_metrics(patient.run)));
    ck_assert_uint_eq(plain.totals.events, patient.totals.events);
    run_text_free(&plain);
    run_text_free(&patient);
}
END_TEST

/* Many deadlines at once under load: everyone is answered in time or leaves on time. */
START_TEST(patience_under_load)
{
    struct run_text r =
        both_ways("name: t\nhorizon: 300 s\nworkload:\n  - name: a\n"
                  "    arrivals: {process: gamma, rate: 6 /s, cv: 2}\n"
                  "    patience: 4 s\n"
                  "    prompt_tokens: {dist: uniform, min: 1, max: 300}\n"
                  "    output_tokens: {dist: uniform, min: 0, max: 30}\n"
                  "  - name: b\n"
                  "    arrivals: {process: closed_loop, concurrency: 5}\n"
                  "    patience: 1500 ms\n" LENGTHS FLEET(", max_num_seqs: 8, block_size: 4, "
                                                          "num_gpu_blocks_override: 200"),
                  NULL);
    size_t left = 0, done = 0;
    for (size_t i = 0; i < r.row_count; i++) {
        const struct run_text_row *row = &r.rows[i];
        int64_t patience_ps = row->class[0] == 'a' ? MILLIS(4000) : MILLIS(1500);
        if (strcmp(row->outcome, "cancelled") == 0) {
            ck_assert_int_eq(row->end_ps, row->arrival_ps + patience_ps);
            left++;
        } else {
            ck_assert_str_eq(row->outcome, "completed");
            ck_assert_int_lt(row->end_ps, row->arrival_ps + patience_ps);
            done++;
        }
    }
    ck_assert_uint_gt(left, 200);
    ck_assert_uint_gt(done, 200);
    run_text_free(&r);
}
END_TEST

/* One seat: the urgent class goes first at the same instant and overtakes the queue. */
START_TEST(priority_classes)
{
    struct run_text r =
        both_ways("name: t\nhorizon: 1 s\nworkload:\n"
                  "  - name: bulk\n    arrivals: {process: constant, rate: 3 /s}\n" LENGTHS
                  "  - name: urgent\n    priority: -1\n    start: 400 ms\n"
                  "    arrivals: {process: constant, rate: 1 /s}\n" LENGTHS FLEET(
                      ", max_num_seqs: 1, scheduling_policy: priority"),
                  NULL);
    ck_assert_uint_eq(r.row_count, 4);
    /* bulk at 0, 0.333, 0.667; urgent at 0.4 goes when the first is done, at 0.5 */
    ck_assert_str_eq(r.rows[2].class, "urgent");
    ck_assert_int_eq(r.rows[2].admitted_ps, MILLIS(500));
    ck_assert_int_eq(r.rows[1].admitted_ps, MILLIS(1000));
    run_text_free(&r);
}
END_TEST

START_TEST(closed_loops_have_no_trace)
{
    struct run_text r;
    ck_assert(
        run_text_open(&r,
                      "name: t\nhorizon: 1 s\nworkload:\n  - name: a\n"
                      "    arrivals: {process: closed_loop, concurrency: 2}\n" LENGTHS FLEET(""),
                      NULL, NULL, 0));
    char path[128];
    run_text_path(&r, "out.csv", path);
    ck_assert(!run_export_trace(r.run, path, false, &r.errors));
    ck_assert_uint_eq(r.errors.error_count, 1);
    ck_assert(strstr(r.errors.items[0].message, "closed loop") != NULL);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {rounds_of_a_closed_loop,
                                  ramp_and_count,
                                  no_think_time,
                                  numbers_and_the_response_time_law,
                                  refused_users_retry,
                                  patience_in_queue_and_mid_stream,
                                  answered_deadlines_leave_no_trace,
                                  patience_under_load,
                                  priority_classes,
                                  closed_loops_have_no_trace,
                                  NULL};
    return suite_run("clients", tests, 60);
}
