#include "sim/cli/sizing.h"

#include <math.h>
#include <stdio.h>

#include "sim/cli/command.h"
#include "sim/cli/progress.h"
#include "sim/cli/replicate.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"

enum { REPLICAS_MAX = 100000 };

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

static void trial_fill(struct sizing_trial *trial, const struct run *run)
{
    const struct metrics_summary *summary = metrics_summaries(run_metrics(run));
    const struct metrics_hour *worst = worst_hour(run);
    double seats = (double)config_pool(run_config(run), 0)->engine.max_num_seqs;
    trial->met = summary->slo_met == 1;
    trial->attainment = summary->slo.attainment;
    trial->ttft_p99_ps = summary->ttft.p99_ps;
    trial->gpu_hours = summary->gpu_hours.billed;
    trial->usd = summary->usd.total;
    trial->usd_per_mtok_total = summary->usd.per_mtok_total;
    if (worst) {
        trial->utilization = worst->utilization;
        trial->seats = worst->running_mean / (seats * trial->replicas);
        trial->kv = worst->kv_occupancy_mean;
    }
}

/* Simulates a static fleet; an enum command_exit. */
static int trial_run(struct sizing *sizing, uint32_t replicas, struct sizing_trial *trial)
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
    struct run *run =
        setup_open(sizing->scenario, sizing->sets, &more, sizing->seed, &arena, &errors);
    int code = run ? COMMAND_OK : COMMAND_BAD_INPUT;
    if (run && !run_simulate(run, &(struct run_options){0}, &errors))
        code = COMMAND_FAILURE;
    if (code == COMMAND_OK) {
        *trial = (struct sizing_trial){.replicas = replicas};
        trial_fill(trial, run);
        if (!sizing->quiet)
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
static int bisect(struct sizing *sizing, struct sizing_trial *enough, struct sizing_trial *few)
{
    struct sizing_trial trial;
    *few = (struct sizing_trial){0};
    *enough = (struct sizing_trial){0};
    uint32_t low = 0, high = 0; /* low misses, high meets */
    for (uint32_t replicas = sizing->guess; high == 0;) {
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

bool sizing_begin(struct sizing *sizing, struct arena *arena)
{
    struct errors errors;
    struct capacity_ask ask = {.wanted = true,
                               .cache = sizing->cache,
                               .progress = sizing->quiet ? NULL : progress_capacity};
    errors_init(&errors);
    struct run *run = setup_open_measuring(sizing->scenario, sizing->sets, NULL, sizing->seed, &ask,
                                           arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    bool states = false, ok = false;
    for (size_t c = 0; run && c < run_config(run)->workload.count; c++)
        states |= !isnan(config_class(run_config(run), c)->slo.attainment);
    if (run && run_config(run)->fleet.pools.count != 1) {
        fprintf(stderr, "%s: the scenario has several pools; one can be sized\n", sizing->who);
    } else if (run && !states) {
        fprintf(stderr, "%s: no class states an slo with an attainment to meet\n", sizing->who);
    } else if (run) {
        double peak = run_peak_replicas(run, 0);
        ok = true;
        sizing->guess = isnan(peak) ? 1 : (uint32_t)fmin(fmax(peak, 1), REPLICAS_MAX);
        sizing->has_initial = config_pool(run_config(run), 0)->initial_replicas != FIELD_INT_UNSET;
        sizing->base = (size_t)run_config(run)->replication;
        sizing->name = arena_copy(arena, run_config(run)->name);
    }
    run_free(run);
    return ok;
}

int sizing_find(struct sizing *sizing, struct sizing_trial *enough, struct sizing_trial *few)
{
    int code = bisect(sizing, enough, few);
    if (code != COMMAND_OK || enough->replicas > 0)
        return code;
    fprintf(stderr,
            "%s: no fleet meets it: %u replicas attain %s %%. A request that "
            "an idle replica serves too late is late in any fleet\n",
            sizing->who, few->replicas, text_share(few->attainment, 2).s);
    return COMMAND_FAILURE;
}
