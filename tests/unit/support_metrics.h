/* Feeds a metrics object by hand: what an engine would emit, a call each. Times in milliseconds
 * unless the name says otherwise. */
#ifndef FLEETSIM_TESTS_UNIT_SUPPORT_METRICS_H
#define FLEETSIM_TESTS_UNIT_SUPPORT_METRICS_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/metrics/metrics.h"

#define MS  (PS_PER_SECOND / 1000)
#define SEC PS_PER_SECOND

struct feed {
    struct metrics *m;
    struct obs_sink sink;
    uint64_t next_id;
};

static const struct metrics_pool feed_pool = {.name = "main",
                                              .gpus_per_replica = 1,
                                              .usd_per_gpu_hour = 3.0,
                                              .usd_low = 2.0,
                                              .usd_high = 4.0};
static const struct metrics_class feed_class = {.name = "chat",
                                                .slo_ttft_ps = TIME_NONE,
                                                .slo_tpot_ps = TIME_NONE,
                                                .slo_e2e_ps = TIME_NONE,
                                                .slo_attainment = NAN};

/* One pool, one class, hours. */
static inline struct feed feed_open(const struct metrics_pool *pool,
                                    const struct metrics_class *class, int64_t warmup_ps,
                                    int64_t horizon_ps)
{
    struct metrics_config config = {.pools = pool ? pool : &feed_pool,
                                    .pool_count = 1,
                                    .classes = class ? class : &feed_class,
                                    .class_count = 1,
                                    .warmup_ps = warmup_ps,
                                    .horizon_ps = horizon_ps,
                                    .interval_ps = PS_PER_HOUR};
    struct feed feed = {.m = metrics_create(&config)};
    feed.sink = metrics_sink(feed.m);
    return feed;
}

static inline void feed_emit(struct feed *feed, struct obs obs)
{
    obs_emit(&feed->sink, &obs);
}

/* A request as an engine would tell it. */
static inline struct request_record feed_arrive(struct feed *feed, int64_t t_ps, uint32_t prompt,
                                                uint32_t output)
{
    struct request_record record = {.request = {.id = feed->next_id++,
                                                .arrival_ps = t_ps,
                                                .prompt_tokens = prompt,
                                                .output_tokens = output,
                                                .session = -1},
                                    .admitted_ps = TIME_NONE,
                                    .first_token_ps = TIME_NONE,
                                    .end_ps = TIME_NONE};
    feed_emit(feed, (struct obs){.kind = OBS_ARRIVAL,
                                 .pool = UINT32_MAX,
                                 .replica = UINT32_MAX,
                                 .time_ps = t_ps,
                                 .u.request = &record.request});
    return record;
}

static inline void feed_record(struct feed *feed, enum obs_kind kind, int64_t t_ps,
                               const struct request_record *record)
{
    feed_emit(feed, (struct obs){.kind = kind,
                                 .pool = record->pool,
                                 .replica = record->replica,
                                 .time_ps = t_ps,
                                 .u.record = record});
}

static inline void feed_admit(struct feed *feed, int64_t t_ps, struct request_record *record)
{
    record->admitted_ps = t_ps;
    feed_record(feed, OBS_ADMIT, t_ps, record);
}

static inline void feed_first(struct feed *feed, int64_t t_ps, struct request_record *record)
{
    record->first_token_ps = t_ps;
    record->emitted_tokens = 1;
    record->computed_tokens = record->request.prompt_tokens - record->cached_tokens;
    feed_record(feed, OBS_FIRST_TOKEN, t_ps, record);
}

static inline void feed_end(struct feed *feed, int64_t t_ps, struct request_record *record,
                            enum outcome outcome)
{
    record->end_ps = t_ps;
    record->outcome = outcome;
    if (outcome == OUTCOME_COMPLETED) {
        record->emitted_tokens = record->request.output_tokens;
        record->computed_tokens = record->request.prompt_tokens - record->cached_tokens;
    }
    feed_record(feed, OBS_END, t_ps, record);
}

static inline void feed_steps(struct feed *feed, uint32_t pool, struct obs_steps steps)
{
    steps.end_ps = steps.start_ps + steps.base_ps * (int64_t)steps.count +
                   steps.slope_ps * ((int64_t)steps.count * ((int64_t)steps.count - 1) / 2);
    feed_emit(
        feed,
        (struct obs){.kind = OBS_STEPS, .pool = pool, .time_ps = steps.end_ps, .u.steps = &steps});
}

/* A prefill iteration of a request's whole prompt, [from, to). */
static inline void feed_prefill(struct feed *feed, int64_t from_ps, int64_t to_ps, uint32_t tokens)
{
    feed_steps(feed, 0,
               (struct obs_steps){.start_ps = from_ps,
                                  .base_ps = to_ps - from_ps,
                                  .count = 1,
                                  .prefill_tokens = tokens,
                                  .running = 1,
                                  .work_ps = to_ps - from_ps});
}

/* count decode iterations of one sequence from from_ps, step_ps each. */
static inline void feed_decode(struct feed *feed, int64_t from_ps, int64_t step_ps, uint32_t count)
{
    feed_steps(feed, 0,
               (struct obs_steps){.start_ps = from_ps,
                                  .base_ps = step_ps,
                                  .count = count,
                                  .decodes = 1,
                                  .decode_tokens = 1,
                                  .running = 1,
                                  .decode_ps = step_ps * (int64_t)count,
                                  .work_ps = step_ps * (int64_t)count});
}

static inline void feed_state(struct feed *feed, uint32_t pool, uint32_t launch, int64_t t_ps,
                              enum replica_state from, enum replica_state to, int64_t since_ps,
                              int64_t launched_ps)
{
    struct obs_state state = {from, to, since_ps, launched_ps};
    feed_emit(feed, (struct obs){.kind = OBS_REPLICA,
                                 .pool = pool,
                                 .replica = launch,
                                 .time_ps = t_ps,
                                 .u.state = &state});
}

/* Rolls every edge up to and including t. */
static inline void feed_roll(struct feed *feed, int64_t t_ps)
{
    while (metrics_next_edge(feed->m) <= t_ps) {
        metrics_roll(feed->m, metrics_next_edge(feed->m));
    }
}

static inline const struct metrics_hour *feed_hour(const struct feed *feed, size_t row)
{
    ck_assert_uint_lt(row, metrics_hour_count(feed->m));
    return &metrics_hours_all(feed->m)[row];
}

static inline bool feed_audit(const struct feed *feed, bool drained)
{
    size_t count;
    bool ok;
    const struct metrics_check *checks = metrics_audit(feed->m, drained, &count, &ok);
    for (size_t i = 0; i < count && !ok; i++) {
        fprintf(stderr, "%s %s: %s\n", checks[i].ok ? "ok  " : "FAIL", checks[i].name,
                checks[i].detail);
    }
    return ok;
}

/* Whether the named check holds. */
static inline bool feed_check_ok(const struct feed *feed, const char *name)
{
    size_t count;
    bool ok;
    const struct metrics_check *checks = metrics_audit(feed->m, true, &count, &ok);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, name) == 0) {
            return checks[i].ok;
        }
    }
    ck_abort_msg("no check named %s", name);
}

/* Durations read from a histogram are exact only below 256 ps. */
static inline bool feed_near(int64_t value_ps, int64_t expected_ps)
{
    return fabs((double)value_ps - (double)expected_ps) <= (double)expected_ps / 256;
}

#define FEED_MAIN(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        Suite *suite = suite_create(name);                                                         \
        TCase *tcase = tcase_create(name);                                                         \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        tcase_set_timeout(tcase, 60);                                                              \
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {                              \
            tcase_add_test(tcase, tests[i]);                                                       \
        }                                                                                          \
        suite_add_tcase(suite, tcase);                                                             \
        SRunner *runner = srunner_create(suite);                                                   \
        srunner_run_all(runner, CK_ENV);                                                           \
        int failed = srunner_ntests_failed(runner);                                                \
        srunner_free(runner);                                                                      \
        return failed == 0 ? 0 : 1;                                                                \
    }

#endif
