/* fleetsim size SCENARIO: the smallest static fleet that meets the SLO. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/replicate.h"
#include "sim/cli/sizing.h"
#include "sim/cli/text.h"
#include "sim/run/interval.h"

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

/* Which share of a replica is used up first, in the largest fleet that is too small. */
static const char *binds(const struct sizing_trial *first, const struct sizing_trial *few)
{
    const struct sizing_trial *trial = few->replicas ? few : first;
    if (first->replicas == 1)
        return "nothing";
    double kv = isnan(trial->kv) ? 0 : trial->kv;
    if (kv >= trial->utilization && kv >= trial->seats)
        return "KV";
    return trial->seats > trial->utilization ? "queue (max_num_seqs)" : "compute";
}

static void size_json(const char *name, const struct sizing_trial *first,
                      const struct sizing_trial *few, const double *sizes, size_t count,
                      double most)
{
    struct json json;
    struct interval over = interval_of(sizes, count);
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "scenario", name);
    json_out_count(&json, "replicas", first->replicas);
    json_out_real(&json, "attainment", first->attainment);
    json_out_real(&json, "gpu_hours", first->gpu_hours);
    json_out_real(&json, "usd", first->usd);
    json_out_real(&json, "usd_per_mtok_total", first->usd_per_mtok_total);
    json_out_text(&json, "binds", binds(first, few));
    json_out_count(&json, "one_fewer", few->replicas);
    json_out_real(&json, "one_fewer_attainment", few->replicas ? few->attainment : NAN);
    json_out_count(&json, "replications", count);
    json_out_real(&json, "replicas_mean", over.mean);
    json_out_real(&json, "replicas_half_interval", over.half);
    json_out_real(&json, "replicas_most", most);
    json_out_object_end(&json);
}

static void size_print(const char *name, const struct sizing_trial *first,
                       const struct sizing_trial *few, const double *sizes, size_t count,
                       double most)
{
    const struct sizing_trial *bound = few->replicas ? few : first;
    struct interval over = interval_of(sizes, count);
    printf("%s: %u %s the SLO: %s %% attained, TTFT p99 %s s, %s GPU-hours", name, first->replicas,
           first->replicas == 1 ? "replica all day meets" : "replicas all day meet",
           text_share(first->attainment, 2).s, text_seconds(first->ttft_p99_ps).s,
           text_real(first->gpu_hours, 1).s);
    if (!isnan(first->usd))
        printf(", $%s ($%s per million tokens)", text_real(first->usd, 2).s,
               text_short(first->usd_per_mtok_total).s);
    printf("\n");
    if (few->replicas)
        printf("%u %s not: %s %%\n", few->replicas, few->replicas == 1 ? "does" : "do",
               text_share(few->attainment, 2).s);
    printf("what binds: %s%s; in the interval that attains least %s %% utilisation, %s %% of "
           "max_num_seqs, %s %% of KV\n",
           binds(first, few), first->replicas == 1 ? ", one replica being the least" : "",
           text_percent(bound->utilization, 1).s, text_percent(bound->seats, 1).s,
           text_percent(bound->kv, 1).s);
    if (count > 1)
        printf("over %zu replications: %s ± %s replicas (95 %%), at most %.0f\n", count,
               text_real(over.mean, 2).s, text_real(over.half, 2).s, most);
}

static int size_with(struct sizing *sizing, bool json, size_t count, struct arena *arena)
{
    struct sizing_trial first = {0}, first_few = {0}, enough, few;
    double sizes[REPLICATIONS_MAX], most = 0;
    if (!sizing_begin(sizing, arena))
        return COMMAND_BAD_INPUT;
    for (size_t k = 0; k < count; k++) {
        sizing->replication = k;
        int code = sizing_find(sizing, &enough, &few);
        if (code != COMMAND_OK)
            return code;
        sizes[k] = enough.replicas;
        most = fmax(most, sizes[k]);
        sizing->guess = enough.replicas;
        first = k == 0 ? enough : first;
        first_few = k == 0 ? few : first_few;
    }
    (json ? size_json : size_print)(sizing->name, &first, &first_few, sizes, count, most);
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
    struct sizing sizing = {.who = "fleetsim size",
                            .scenario = operands->items[0],
                            .sets = &values->sets,
                            .seed = values->seed,
                            .quiet = values->quiet};
    int code = size_with(&sizing, values->json, count, &arena);
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
            "size. Where a replica's capacity is neither stated nor known in closed form it is "
            "measured\n"
            "first. What binds is the share of a replica that is used up first in the interval "
            "that\n"
            "attains least, one replica short: its compute, its seats, or its KV blocks.\n",
    .example = "fleetsim size chat-1m --replications 3\n",
    .run = size_run,
};
