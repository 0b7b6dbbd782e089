/* The fleet as a whole: pools apart, shared queues, refusals, replicas that come and go. */
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

/* Class a may use pool a only; class b pool b only, whose load is other. */
#define POOL(name)                                                                                 \
    "    - name: " name "\n"                                                                       \
    "      engine: {max_num_seqs: 8}\n"                                                            \
    "      step_time: {model: constant, step: 1 s}\n"                                              \
    "      initial_replicas: 2\n"                                                                  \
    "      autoscaler: {policy: target, metric: concurrency, target: 4, max_replicas: 20,\n"       \
    "                   scale_down_window: 60 s}\n"                                                \
    "      cold_start: {provision: 20 s, image_pull: 0 s, weights: 7 s, engine_init: 0 s}\n"
#define CLASS_A "  - {name: a, arrivals: {process: trace, file: trace.csv}, pools: [a]}\n"
#define CLASS_B                                                                                    \
    "  - {name: b, arrivals: {process: poisson, rate: 3 /s}, prompt_tokens: {dist: constant, "     \
    "value: 5}, output_tokens: {dist: geometric, mean: 30}, pools: [b]}\n"

static const char waves[] = "0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n"
                            "0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n0,1,40\n"
                            "200,1,90\n200,1,90\n200,1,90\n200,1,90\n200,1,90\n200,1,90\n"
                            "200,1,90\n200,1,90\n200,1,90\n200,1,90\n200,1,90\n200,1,90\n"
                            "400,1,5\n401,1,5\n402,1,5\n403,1,5\n404,1,5\n405,1,5\n";

/* Autoscaler state is per pool, and a pool's requests and decisions do not hang on its neighbour:
 * pool a does the same alone and beside a busy pool b. */
START_TEST(pools_do_not_share_state)
{
    struct run_text alone = run_text_do(
        "name: alone\nhorizon: 600 s\nworkload:\n" CLASS_A "fleet:\n  pools:\n" POOL("a"), waves);
    struct run_text both = run_text_do("name: both\nhorizon: 600 s\nworkload:\n" CLASS_A CLASS_B
                                       "fleet:\n  pools:\n" POOL("a") POOL("b"),
                                       waves);
    size_t count_alone, count_both, k = 0, of_b = 0;
    const struct metrics_scale_event *x =
        metrics_scale_events(run_metrics(alone.run), &count_alone);
    const struct metrics_scale_event *y = metrics_scale_events(run_metrics(both.run), &count_both);
    ck_assert_uint_ge(count_alone, 4);
    for (size_t i = 0; i < count_both; i++) {
        if (y[i].pool_index == 1) {
            of_b++;
            continue;
        }
        ck_assert_uint_lt(k, count_alone);
        ck_assert_int_eq(y[i].time_ps, x[k].time_ps);
        ck_assert_uint_eq(y[i].target, x[k].target);
        ck_assert_uint_eq(y[i].wished, x[k].wished);
        k++;
    }
    ck_assert_uint_eq(k, count_alone);
    ck_assert_uint_gt(of_b, 0);
    size_t next = 0;
    for (size_t i = 0; i < both.row_count; i++) {
        const struct run_text_row *row = &both.rows[i];
        ck_assert_str_eq(row->pool, row->class);
        if (row->class[0] == 'a') {
            const struct run_text_row *same = &alone.rows[next++];
            ck_assert_int_eq(row->arrival_ps, same->arrival_ps);
            ck_assert_int_eq(row->end_ps, same->end_ps);
            ck_assert_int_eq(row->replica, same->replica);
        }
    }
    ck_assert_uint_eq(next, alone.row_count);
    run_text_free(&alone);
    run_text_free(&both);
}
END_TEST

/* A class that lists two pools of three goes to the less loaded of them, and never to the third. */
START_TEST(a_class_keeps_to_its_pools)
{
    static const char yaml[] =
        "name: lists\nhorizon: 60 s\nworkload:\n"
        "  - {name: w, arrivals: {process: trace, file: trace.csv}, pools: [c, a]}\n"
        "fleet:\n"
        "  router: {policy: %s}\n"
        "  pools:\n"
        "    - {name: a, step_time: {model: constant, step: 1 s}, autoscaler: {policy: static, "
        "replicas: 1}}\n"
        "    - {name: b, step_time: {model: constant, step: 1 s}, autoscaler: {policy: static, "
        "replicas: 5}}\n"
        "    - {name: c, step_time: {model: constant, step: 1 s}, autoscaler: {policy: static, "
        "replicas: 3}}\n";
    static const char *const routers[] = {"round_robin", "random", "least_loaded", "central_queue"};
    for (size_t i = 0; i < 4; i++) {
        char text[2048];
        snprintf(text, sizeof text, yaml, routers[i]);
        struct run_text r = run_text_do(text, "0,1,9\n0,1,9\n0,1,9\n0,1,9\n1,1,9\n1,1,9\n1,1,9\n"
                                              "1,1,9\n2,1,9\n2,1,9\n2,1,9\n2,1,9\n");
        size_t in_a = 0, in_c = 0;
        for (size_t k = 0; k < r.row_count; k++) {
            in_a += strcmp(r.rows[k].pool, "a") == 0;
            in_c += strcmp(r.rows[k].pool, "c") == 0;
        }
        ck_assert_uint_eq(in_a + in_c, 12);
        ck_assert_uint_gt(in_a, 0);
        ck_assert_uint_gt(in_c, 0);
        if (i != 1) {
            ck_assert_uint_eq(in_a, 3); /* one replica of four */
        }
        run_text_free(&r);
    }
}
END_TEST

/* What no pool of its list can hold is unservable, whatever other pools could do. */
START_TEST(unservable_where_it_may_go)
{
    struct run_text r = run_text_do(
        "name: fit\nhorizon: 60 s\nworkload:\n"
        "  - {name: w, arrivals: {process: trace, file: trace.csv}, pools: [small, middle]}\n"
        "fleet:\n  pools:\n"
        "    - {name: small, engine: {num_gpu_blocks_override: 2}, step_time: {model: constant, "
        "step: 1 s}, autoscaler: {policy: static, replicas: 9}}\n"
        "    - {name: middle, engine: {max_model_len: 64}, step_time: {model: constant, "
        "step: 1 s}, autoscaler: {policy: static, replicas: 1}}\n"
        "    - {name: large, step_time: {model: constant, step: 1 s}, autoscaler: {policy: static, "
        "replicas: 9}}\n",
        "0,32,1\n0,32,2\n0,60,4\n0,60,5\n");
    ck_assert_str_eq(r.rows[0].pool, "small"); /* 32 stored tokens are 2 blocks */
    ck_assert_str_eq(r.rows[1].pool, "middle");
    ck_assert_str_eq(r.rows[2].pool, "middle");
    ck_assert_str_eq(r.rows[2].outcome, "completed");
    ck_assert_str_eq(r.rows[3].outcome, "unservable");
    run_text_free(&r);
}
END_TEST

/* running + waiting ≥ max_num_seqs + max_queue refuses: per replica, and under a central queue in
 * the sum over ready replicas. */
START_TEST(full_queues_refuse)
{
    static const char *const routers[] = {"round_robin", "least_loaded", "central_queue"};
    for (size_t i = 0; i < 3; i++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 "name: full\nhorizon: 60 s\n"
                 "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
                 "fleet:\n"
                 "  router: {policy: %s}\n"
                 "  pools:\n"
                 "    - {name: main, engine: {max_num_seqs: 2}, max_queue: 1, step_time: {model: "
                 "constant, step: 1 s}, autoscaler: {policy: static, replicas: 2}}\n",
                 routers[i]);
        struct run_text r = run_text_do(yaml, "0,1,4\n0,1,4\n0,1,4\n0,1,4\n0,1,4\n0,1,4\n0,1,4\n"
                                              "3.9,1,4\n4.1,1,4\n4.1,1,4\n4.1,1,4\n4.1,1,4\n");
        static const char *const outcomes[] = {"completed", "completed", "completed", "completed",
                                               "completed", "completed", "refused",   "refused",
                                               "completed", "completed", "completed", "completed"};
        for (size_t k = 0; k < 12; k++) {
            ck_assert_msg(strcmp(r.rows[k].outcome, outcomes[k]) == 0, "%s: %zu %s", routers[i], k,
                          r.rows[k].outcome);
        }
        /* Goodput divides by arrivals. */
        const struct metrics_summary *s = run_text_summary(&r);
        ck_assert_uint_eq(s->requests.arrived, 12);
        ck_assert_uint_eq(s->requests.refused, 2);
        ck_assert_uint_eq(s->slo.attained, 10);
        ck_assert_double_eq_tol(s->slo.attainment, 10.0 / 12, 1e-15);
        run_text_free(&r);
    }
}
END_TEST

/* A replica that becomes ready takes the head of the shared queue at that very instant, and its
 * share of what arrives with the other routers. */
START_TEST(a_new_replica_works_at_once)
{
    static const char yaml[] =
        "name: fresh\nhorizon: 300 s\n"
        "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
        "fleet:\n"
        "  router: {policy: %s}\n"
        "  pools:\n"
        "    - name: main\n"
        "      engine: {max_num_seqs: 1}\n"
        "      step_time: {model: constant, step: 50 s}\n"
        "      initial_replicas: 1\n"
        "      autoscaler: {policy: target, metric: concurrency, target: 1, max_replicas: 2}\n"
        "      cold_start: {provision: 50 s, image_pull: 5 s, weights: 5 s, engine_init: 1 s, "
        "warm_up: 1 s}\n";
    static const char trace[] = "0,1,1\n0,1,1\n0,1,1\n0,1,1\n63,1,1\n64,1,1\n";
    char text[1024];
    snprintf(text, sizeof text, yaml, "central_queue");
    struct run_text r = run_text_do(text, trace);
    static const int64_t admitted_s[] = {0, 50, 62, 100, 112, 150};
    static const int64_t replicas[] = {0, 0, 1, 0, 1, 0};
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(r.rows[i].admitted_ps, SECONDS(admitted_s[i]));
        ck_assert_int_eq(r.rows[i].replica, replicas[i]);
    }
    run_text_free(&r);
    snprintf(text, sizeof text, yaml, "least_loaded");
    r = run_text_do(text, trace);
    ck_assert_int_eq(r.rows[4].replica, 1);
    ck_assert_int_eq(r.rows[4].admitted_ps, SECONDS(63));
    ck_assert_int_eq(r.rows[5].replica, 1);
    run_text_free(&r);
}
END_TEST

/* Waves that make replicas come and go again and again: launch numbers go on, released places are
 * used again, every replica second is told. */
START_TEST(replicas_come_and_go)
{
    char trace[16384] = "";
    for (int wave = 0; wave < 40; wave++) {
        for (int i = 0; i < 12; i++) {
            size_t used = strlen(trace);
            snprintf(trace + used, sizeof trace - used, "%d,3,30\n", 100 * wave);
        }
    }
    struct run_text r = run_text_do("name: waves\nhorizon: 4000 s\n"
                                    "workload: [{name: w, arrivals: {process: trace, file: "
                                    "trace.csv}}]\n"
                                    "fleet:\n  pools:\n" POOL("main"),
                                    trace);
    size_t count;
    metrics_scale_events(run_metrics(r.run), &count);
    ck_assert_uint_ge(count, 40);
    ck_assert_uint_eq(run_text_summary(&r)->requests.completed, 480);
    ck_assert_uint_le(run_text_summary(&r)->replicas_held_max, 5);
    run_text_free(&r);
}
END_TEST

/* The run ends while a replica is starting in the place of one that served and was released. */
START_TEST(a_run_may_end_during_a_cold_start)
{
    struct run_text r = run_text_do("name: starting\nhorizon: 305 s\n"
                                    "workload: [{name: w, arrivals: {process: trace, file: "
                                    "trace.csv}}]\n"
                                    "fleet:\n  pools:\n" POOL("main"),
                                    "0,1,5\n0,1,5\n0,1,5\n0,1,5\n0,1,5\n0,1,5\n0,1,5\n0,1,5\n"
                                    "0,1,5\n0,1,5\n0,1,5\n0,1,5\n300,1,5\n300,1,5\n300,1,5\n"
                                    "300,1,5\n300,1,5\n300,1,5\n300,1,5\n300,1,5\n");
    size_t count;
    const struct metrics_scale_event *e = metrics_scale_events(run_metrics(r.run), &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(e[1].target, 1); /* from three: two were released */
    ck_assert_int_eq(e[2].time_ps, SECONDS(300));
    ck_assert_uint_eq(e[2].target, 2);
    ck_assert_double_eq_tol(run_text_summary(&r)->gpu_hours.provisioning * 3600, 20 + 5, 1e-9);
    ck_assert_uint_eq(run_text_summary(&r)->requests.completed, 20);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {pools_do_not_share_state,          a_class_keeps_to_its_pools,
                                  unservable_where_it_may_go,        full_queues_refuse,
                                  a_new_replica_works_at_once,       replicas_come_and_go,
                                  a_run_may_end_during_a_cold_start, NULL};
    return suite_run("fleet", tests, 60);
}
