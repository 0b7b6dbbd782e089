/* fleetsim size SCENARIO: the smallest static fleet that meets the SLO. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/cli/command.h"
#include "sim/cli/json.h"
#include "sim/cli/replicate.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"
#include "sim/run/interval.h"

enum { REPLICAS_MAX = 100000 };

struct size_values {
    struct options_list sets;
    const char *seed, *replications;
    bool json, quiet;
};

static const struct options_spec size_specs[] = {
    {"replications", 0, OPTIONS_TEXT, offsetof(struct size_values, replications), "N",
     "size it under N independent chances"},
    {"set", 0, OPTIONS_LIST, offsetof(struct size_values, sets), "KEY=VALUE", "change one value"},
    {"seed", 0, OPTIONS_TEXT, offsetof(struct size_values, seed), "N", "the same as --set seed=N"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct size_values, json), NULL,
     "print one JSON object and nothing else"},
    {"quiet", 0, OPTIONS_FLAG, offsetof(struct size_values, quiet), NULL, "no progress on stderr"},
    {0},
};

/* What one size did. */
struct trial {
    uint32_t replicas; /* 0: not tried */
    double attainment;
    int64_t ttft_p99_ps;
    double gpu_hours, usd;
    /* Of the interval that attained least: shares of what a replica has. */
    double utilization, seats, kv;
    bool met;
};

struct sizing {
    const struct size_values *values;
    const char *scenario;
    size_t replication, runs;
    size_t base; /* the scenario's own replication */
    bool has_initial;
};

/* The interval that attained least, of those in which something arrived. */
static const struct metrics_hour *worst_hour(const struct run *run)
{
    const struct metrics_hour *rows = metrics_hours_all(run_metrics(run)), *worst = NULL;
    for (size_t k = 0; k < metrics_interval_count(run_metrics(run)); k++) {
        if (rows[k].requests.arrived > 0 &&
            (!worst || rows[k].slo.attainment < worst->slo.attainment))
            worst = &rows[k];
    }
    return worst;
}

static void trial_fill(struct trial *trial, const struct run *run)
{
    const struct metrics_summary *summary = metrics_summaries(run_metrics(run));
    const struct metrics_hour *worst = worst_hour(run);
    double seats = (double)config_pool(run_config(run), 0)->engine.max_num_seqs;
    trial->met = summary->slo_met == 1;
    trial->attainment = summary->slo.attainment;
    trial->ttft_p99_ps = summary->ttft.p99_ps;
    trial->gpu_hours = summary->gpu_hours.billed;
    trial->usd = summary->usd.total;
    if (worst) {
        trial->utilization = worst->utilization;
        trial->seats = worst->running_mean / (seats * trial->replicas);
        trial->kv = worst->kv_occupancy_mean;
    }
}

/* Simulates a static fleet; an enum command_exit. */
static int trial_run(struct sizing *sizing, uint32_t replicas, struct trial *trial)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    struct options_list more = {.items = arena_alloc(&arena, 2 * sizeof *more.items)};
    more.items[more.count++] =
        arena_printf(&arena, "fleet.pools[0].autoscaler={policy: static, replicas: %u}", replicas);
    if (sizing->has_initial)
        more.items[more.count++] =
            arena_printf(&arena, "fleet.pools[0].initial_replicas=%u", replicas);
    more = replicate_sets(&more, sizing->base + sizing->replication, &arena);
    struct run *run = setup_open(sizing->scenario, &sizing->values->sets, &more,
                                 sizing->values->seed, &arena, &errors);
    int code = run ? COMMAND_OK : COMMAND_BAD_INPUT;
    if (run && !run_simulate(run, &(struct run_options){0}, &errors))
        code = COMMAND_FAILURE;
    if (code == COMMAND_OK) {
        *trial = (struct trial){.replicas = replicas};
        trial_fill(trial, run);
        sizing->runs++;
        if (!sizing->values->quiet)
            fprintf(stderr, "%u replicas: %s %% attained, %s\n", replicas,
                    text_share(trial->attainment, 2).s, trial->met ? "met" : "missed");
    } else {
        setup_errors_print(&errors);
    }
    run_free(run);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

/* The smallest size that meets the SLO and the largest that does not (replicas 0: none is that
 * small), given that more replicas never attain less. */
static int bisect(struct sizing *sizing, uint32_t guess, struct trial *enough, struct trial *few)
{
    struct trial trial;
    *few = (struct trial){0};
    *enough = (struct trial){0};
    uint32_t low = 0, high = 0; /* low misses, high meets */
    for (uint32_t replicas = guess; high == 0;) {
        int code = trial_run(sizing, replicas, &trial);
        if (code != COMMAND_OK)
            return code;
        if (trial.met) {
            *enough = trial;
            high = replicas;
        } else {
            *few = trial;
            low = replicas;
            if (replicas == REPLICAS_MAX) {
                return COMMAND_OK;
            }
            replicas = replicas > REPLICAS_MAX / 2 ? REPLICAS_MAX : 2 * replicas;
        }
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        int code = trial_run(sizing, middle, &trial);
        if (code != COMMAND_OK)
            return code;
        *(trial.met ? enough : few) = trial;
        *(trial.met ? &high : &low) = middle;
    }
    return COMMAND_OK;
}

/* Which share of a replica is used up first. */
static const char *binds(const struct trial *trial)
{
    double kv = isnan(trial->kv) ? 0 : trial->kv;
    if (kv >= trial->utilization && kv >= trial->seats)
        return "KV";
    return trial->seats > trial->utilization ? "queue (max_num_seqs)" : "compute";
}

static void size_json(const char *name, const struct trial *first, const struct trial *few,
                      const double *sizes, size_t count, double most)
{
    struct json json;
    struct interval over = interval_of(sizes, count);
    json_init(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "scenario", name);
    json_count(&json, "replicas", first->replicas);
    json_real(&json, "attainment", first->attainment);
    json_real(&json, "gpu_hours", first->gpu_hours);
    json_real(&json, "usd", first->usd);
    json_text(&json, "binds", binds(few->replicas ? few : first));
    json_count(&json, "one_fewer", few->replicas);
    json_real(&json, "one_fewer_attainment", few->replicas ? few->attainment : NAN);
    json_count(&json, "replications", count);
    json_real(&json, "replicas_mean", over.mean);
    json_real(&json, "replicas_half_interval", over.half);
    json_real(&json, "replicas_most", most);
    json_object_end(&json);
}

static void size_print(const char *name, const struct trial *first, const struct trial *few,
                       const double *sizes, size_t count, double most)
{
    const struct trial *bound = few->replicas ? few : first;
    struct interval over = interval_of(sizes, count);
    printf("%s: %u replicas all day meet the SLO: %s %% attained, TTFT p99 %s s, %s GPU-hours",
           name, first->replicas, text_share(first->attainment, 2).s,
           text_seconds(first->ttft_p99_ps).s, text_real(first->gpu_hours, 1).s);
    if (!isnan(first->usd))
        printf(", $%s", text_real(first->usd, 2).s);
    printf("\n");
    if (few->replicas)
        printf("%u do not: %s %%\n", few->replicas, text_share(few->attainment, 2).s);
    printf("what binds: %s; in the interval that attains least %s %% utilisation, %s %% of "
           "max_num_seqs, %s %% of KV\n",
           binds(bound), text_percent(bound->utilization, 1).s, text_percent(bound->seats, 1).s,
           text_percent(bound->kv, 1).s);
    if (count > 1)
        printf("over %zu replications: %s ± %s replicas (95 %%), at most %.0f\n", count,
               text_real(over.mean, 2).s, text_real(over.half, 2).s, most);
}

/* Opens the scenario as it is, for its name, its SLO, and where to begin. 0 after reporting. */
static uint32_t size_begin(struct sizing *sizing, struct arena *arena, const char **name)
{
    struct errors errors;
    errors_init(&errors);
    struct run *run = setup_open(sizing->scenario, &sizing->values->sets, NULL,
                                 sizing->values->seed, arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    uint32_t guess = 0;
    bool states = false;
    for (size_t c = 0; run && c < run_config(run)->workload.count; c++)
        states |= !isnan(config_class(run_config(run), c)->slo.attainment);
    if (run && run_config(run)->fleet.pools.count != 1) {
        fputs("fleetsim size: the scenario has several pools; one can be sized\n", stderr);
    } else if (run && !states) {
        fputs("fleetsim size: no class states an slo with an attainment to meet\n", stderr);
    } else if (run) {
        double peak = run_peak_replicas(run, 0);
        guess = isnan(peak) ? 1 : (uint32_t)fmin(fmax(peak, 1), REPLICAS_MAX);
        sizing->has_initial = config_pool(run_config(run), 0)->initial_replicas != FIELD_INT_UNSET;
        sizing->base = (size_t)run_config(run)->replication;
        *name = arena_copy(arena, run_config(run)->name);
    }
    run_free(run);
    return guess;
}

static int size_with(struct sizing *sizing, size_t count, struct arena *arena)
{
    const char *name = NULL;
    uint32_t guess = size_begin(sizing, arena, &name);
    struct trial first = {0}, first_few = {0}, enough, few;
    double sizes[REPLICATIONS_MAX], most = 0;
    if (guess == 0)
        return COMMAND_BAD_INPUT;
    for (size_t k = 0; k < count; k++) {
        sizing->replication = k;
        int code = bisect(sizing, guess, &enough, &few);
        if (code != COMMAND_OK)
            return code;
        if (enough.replicas == 0) {
            fprintf(stderr,
                    "fleetsim size: no fleet meets it: %u replicas attain %s %%. A request that "
                    "an idle replica serves too late is late in any fleet\n",
                    few.replicas, text_share(few.attainment, 2).s);
            return COMMAND_FAILURE;
        }
        sizes[k] = enough.replicas;
        most = fmax(most, sizes[k]);
        guess = enough.replicas;
        first = k == 0 ? enough : first;
        first_few = k == 0 ? few : first_few;
    }
    (sizing->values->json ? size_json : size_print)(name, &first, &first_few, sizes, count, most);
    return COMMAND_OK;
}

static int size_run(const void *values_, const struct options_list *operands)
{
    const struct size_values *values = values_;
    size_t count = replicate_count(values->replications, "fleetsim size");
    if (count == 0)
        return COMMAND_BAD_USAGE;
    struct arena arena;
    arena_init(&arena);
    struct sizing sizing = {.values = values, .scenario = operands->items[0]};
    int code = size_with(&sizing, count, &arena);
    arena_free(&arena);
    return code;
}

const struct command cmd_size_command = {
    .name = "size",
    .summary = "find the smallest static fleet that meets the SLO, and what binds",
    .operands = "SCENARIO",
    .operands_min = 1,
    .operands_max = 1,
    .options = size_specs,
    .options_size = sizeof(struct size_values),
    .text = "Doubles from the plan's peak until the SLO is met, then bisects, with a run at each\n"
            "size. What binds is the share of a replica that is used up first in the interval "
            "that\n"
            "attains least, one replica short: its compute, its seats, or its KV blocks.\n",
    .example = "fleetsim size chat-1m --replications 3\n",
    .run = size_run,
};
