/* fleetsim check SCENARIO: everything that is wrong with it, or what would run. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/cli/command.h"
#include "sim/cli/export.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"

struct check_values {
    struct options_list sets;
    const char *seed, *export_trace;
    bool force, resolved;
};

static const struct options_spec check_specs[] = {
    {"set", 0, OPTIONS_LIST, offsetof(struct check_values, sets), "KEY=VALUE",
     "change one value, as fleet.pools[0].max_queue=100"},
    {"seed", 0, OPTIONS_TEXT, offsetof(struct check_values, seed), "N", "the same as --set seed=N"},
    {"resolved", 0, OPTIONS_FLAG, offsetof(struct check_values, resolved), NULL,
     "print every value as applied, as YAML"},
    {"export-trace", 0, OPTIONS_TEXT, offsetof(struct check_values, export_trace), "FILE",
     "write the arrivals as a trace that can be replayed"},
    {"force", 0, OPTIONS_FLAG, offsetof(struct check_values, force), NULL,
     "overwrite a trace that exists"},
    {0},
};

static void classes_print(const struct run *run, FILE *out)
{
    const struct run_config *c = run_config(run);
    const struct workload *w = run_workload(run);
    for (size_t i = 0; i < c->workload.count; i++) {
        const struct class_config *class = config_class(c, i);
        fprintf(out,
                "  class %s: %s arrivals, %s requests expected, on average %s prompt and %s "
                "output tokens",
                class->traffic.name, class->traffic.arrivals.type->name,
                text_real(workload_expected(w, i, 0, run_horizon(run)), 0).s,
                text_real(workload_mean_prompt(w, i), 1).s,
                text_real(workload_mean_output(w, i), 1).s);
        for (size_t k = 0; k < class->pools.count; k++)
            fprintf(out, "%s%s", k ? ", " : "; pools ",
                    ((const char *const *)class->pools.items)[k]);
        fputc('\n', out);
        int64_t stamp;
        if (workload_trace_start(w, i, &stamp) && stamp != run_start(run))
            fprintf(out, "    its first row, stamped %s, is played at the start, %s\n",
                    text_stamp(stamp).s, text_stamp(run_start(run)).s);
    }
    if (workload_late_requests(w) > 0)
        fprintf(out, "  %s requests of traces come at or after the horizon: not played\n",
                text_count(workload_late_requests(w)).s);
    if (workload_skipped_rows(w) > 0)
        fprintf(out, "  %s bad trace rows are left out (on_bad_row: skip)\n",
                text_count(workload_skipped_rows(w)).s);
    if (workload_failed_calls(w) > 0)
        fprintf(out, "  %s failed calls of the trace are left out\n",
                text_count(workload_failed_calls(w)).s);
}

/* Tokens of the mean request that may come to the pool, prompt and output; NaN: none comes. */
static double mean_request(const struct run *run, const struct pool_config *pool)
{
    const struct run_config *c = run_config(run);
    const struct workload *w = run_workload(run);
    double tokens = 0, requests = 0;
    for (size_t i = 0; i < c->workload.count; i++) {
        if (!config_class_goes_to(config_class(c, i), pool->name))
            continue;
        double expected = workload_expected(w, i, 0, run_horizon(run));
        requests += expected;
        tokens += expected * (workload_mean_prompt(w, i) + workload_mean_output(w, i));
    }
    return requests > 0 ? tokens / requests : NAN;
}

/* How many requests of the mean length a replica has KV for: where they are few, this binds. */
static void kv_print(const struct run *run, const struct pool_config *pool, FILE *out)
{
    const struct engine_config *engine = &pool->engine;
    if (engine->num_gpu_blocks == FIELD_INT_UNLIMITED)
        return;
    double tokens = (double)engine->num_gpu_blocks * (double)engine->block_size;
    double mean = mean_request(run, pool);
    fprintf(out, "    KV for %s tokens per replica", text_real(tokens, 0).s);
    if (!isnan(mean))
        fprintf(out, ", %s times the mean request", text_short(tokens / mean).s);
    fputc('\n', out);
}

static void pools_print(const struct run *run, FILE *out)
{
    const struct run_config *c = run_config(run);
    fprintf(out, "  router %s\n", c->fleet.router.type->name);
    for (size_t p = 0; p < c->fleet.pools.count; p++) {
        const struct pool_config *pool = config_pool(c, p);
        uint32_t gpus = config_gpus_per_replica(pool);
        fprintf(out,
                "  pool %s: %s replica%s of %s GPU%s at the start, autoscaler %s, step time %s",
                pool->name, text_count(run_initial_replicas(run, p)).s,
                run_initial_replicas(run, p) == 1 ? "" : "s", text_count(gpus).s,
                gpus == 1 ? "" : "s", pool->autoscaler.type->name, pool->step_time.type->name);
        if (!isnan(run_capacity(run, p)))
            fprintf(out, ", %s requests/s per replica", text_short(run_capacity(run, p)).s);
        if (run_capacity_measured(run, p))
            fprintf(out, " (measured in %u trial runs, %s in flight)",
                    run_capacity_measured(run, p)->trials,
                    text_short(run_capacity_measured(run, p)->in_flight).s);
        fputc('\n', out);
        kv_print(run, pool, out);
    }
}

static void run_print(const struct run *run, FILE *out)
{
    const struct run_config *c = run_config(run);
    fprintf(out, "%s: ok\n  from %s for %s, seed %lld; %s\n", c->name, text_stamp(run_start(run)).s,
            text_duration(run_horizon(run)).s, (long long)c->seed,
            c->drain ? "then what is in flight is finished" : "what is in flight then is cut");
    classes_print(run, out);
    pools_print(run, out);
}

static int check_with(const struct check_values *values, const char *scenario, struct arena *arena,
                      struct errors *errors)
{
    struct run *run = setup_open(scenario, &values->sets, NULL, values->seed, arena, errors);
    struct setup_target target = {.path = setup_target_path(values->export_trace, arena)};
    bool writable = setup_targets_check(&target, 1, run, values->force, errors);
    int code = run ? COMMAND_OK : COMMAND_BAD_INPUT;
    if (run && !writable)
        code = COMMAND_FAILURE;
    if (code == COMMAND_OK && target.path &&
        !run_export_trace(run, target.path, values->force, errors))
        code = COMMAND_FAILURE;
    if (code == COMMAND_OK && values->resolved)
        fputs(run_resolved(run), stdout);
    else if (code == COMMAND_OK)
        run_print(run, stdout);
    if (code == COMMAND_OK && target.path && !values->resolved)
        export_print(run, target.path, stdout);
    run_free(run);
    return code;
}

static int check_run(const void *values, const struct options_list *operands)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    int code = check_with(values, operands->items[0], &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

const struct command cmd_check_command = {
    .name = "check",
    .summary = "report everything that is wrong with a scenario, or what would run",
    .operands = "SCENARIO",
    .operands_min = 1,
    .operands_max = 1,
    .options = check_specs,
    .options_size = sizeof(struct check_values),
    .text =
        "Reads the scenario and its traces from end to end; simulates nothing. The exit code is 2\n"
        "when something is wrong.\n",
    .example = "fleetsim check chat-1m --set fleet.pools[0].max_queue=100\n"
               "fleetsim check chat-1m --export-trace arrivals.csv.gz\n",
    .run = check_run,
};
