/* fleetsim compare SCENARIO --variant NAME:KEY=VALUE,… --variant … */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/command.h"
#include "sim/cli/fingerprint.h"
#include "sim/cli/paired.h"
#include "sim/cli/policies.h"
#include "sim/cli/progress.h"
#include "sim/cli/replicate.h"
#include "sim/cli/result.h"
#include "sim/cli/setup.h"
#include "sim/cli/sizing.h"
#include "sim/cli/text.h"
#include "sim/cli/variant.h"
#include "sim/run/interval.h"

enum { VARIANTS_MAX = 100 };

struct compare_values {
    struct options_list variants, sets;
    const char *seed, *policies, *peak, *replications;
    bool json, quiet, step_by_step;
};

static const struct options_spec compare_specs[] = {
    {"variant", 0, OPTIONS_LIST, offsetof(struct compare_values, variants), "NAME:KEY=VALUE,…",
     "a variant and what it changes; nothing after the colon: the scenario itself"},
    {"policies", 0, OPTIONS_TEXT, offsetof(struct compare_values, policies), "P,P,…",
     "a variant for each autoscaling policy: static (the peak), ideal, target, …"},
    {"peak", 0, OPTIONS_TEXT, offsetof(struct compare_values, peak), "plan|size",
     "what static of --policies has: the plan's peak, or the smallest fleet that meets the SLO"},
    {"replications", 0, OPTIONS_TEXT, offsetof(struct compare_values, replications), "N",
     "N runs of each, paired by their chance: intervals of each and of differences"},
    {"set", 0, OPTIONS_LIST, offsetof(struct compare_values, sets), "KEY=VALUE",
     "change one value in every variant"},
    {"seed", 0, OPTIONS_TEXT, offsetof(struct compare_values, seed), "N",
     "the same as --set seed=N"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct compare_values, json), NULL,
     "print one JSON object and nothing else"},
    {"quiet", 0, OPTIONS_FLAG, offsetof(struct compare_values, quiet), NULL,
     "no progress on stderr"},
    {"step-by-step", 0, OPTIONS_FLAG, offsetof(struct compare_values, step_by_step), NULL,
     "one engine iteration per event: slower, the same results"},
    {0},
};

/* One variant, before and after its run. */
struct contender {
    struct variant_spec spec;
    struct run *run; /* owned; NULL once it has been simulated */
    struct metrics_summary summary;
    struct fingerprint arrivals;
    uint64_t scale_events, met_cold_start;
    size_t replication; /* the scenario's own */
    double *values;     /* arena; [HEADLINE_COUNT · replications], by headline */
    bool states_slo;    /* some class states an attainment */
    bool always_met;    /* the SLO, in every replication */
    bool audit_ok;
    bool oracle;       /* a pool of it knows the future: a bound, nothing to choose */
    uint32_t replicas; /* that all its pools together hold all the time; 0: some pool scales */
    char *json;        /* owned: its result object, indented for a list in an object */
};

struct compare {
    const struct compare_values *values;
    struct contender contenders[VARIANTS_MAX];
    size_t count, replications;
    struct capacity_cache *capacities; /* owned */
};

/* Takes the headlines of a replication. */
static void values_take(const struct compare *compare, struct contender *o, size_t replication,
                        const struct metrics_summary *summary)
{
    for (size_t h = 0; h < HEADLINE_COUNT; h++)
        o->values[h * compare->replications + replication] = headline_table[h].value(summary);
}

/* How variants are opened: one measurement of a capacity serves all that have the same replica. */
static struct capacity_ask ask_of(const struct compare *compare)
{
    return (struct capacity_ask){.wanted = compare->values->policies != NULL,
                                 .cache = compare->capacities,
                                 .progress = compare->values->quiet ? NULL : progress_capacity};
}

/* Replicas that meet the SLO in every replication, into *replicas; an enum command_exit. */
static int peak_size(struct compare *compare, const char *scenario, uint32_t *replicas,
                     struct arena *arena)
{
    struct sizing sizing = {.who = "fleetsim compare: --peak size",
                            .scenario = scenario,
                            .sets = &compare->values->sets,
                            .seed = compare->values->seed,
                            .cache = compare->capacities,
                            .quiet = compare->values->quiet};
    if (!sizing_begin(&sizing, arena))
        return COMMAND_BAD_INPUT;
    for (size_t k = 0; k < compare->replications; k++) {
        struct sizing_trial enough, few;
        sizing.replication = k;
        int code = sizing_find(&sizing, &enough, &few);
        if (code != COMMAND_OK)
            return code;
        sizing.guess = enough.replicas;
        *replicas = enough.replicas > *replicas ? enough.replicas : *replicas;
    }
    return COMMAND_OK;
}

/* Whether --peak makes sense; *sized: it asks for runs. */
static bool peak_read(const struct compare_values *values, bool *sized)
{
    *sized = values->peak && strcmp(values->peak, "size") == 0;
    if (values->peak && !*sized && strcmp(values->peak, "plan") != 0) {
        fprintf(stderr, "fleetsim compare: --peak '%s' is neither plan nor size\n", values->peak);
        return false;
    }
    const char *at = values->policies ? strstr(values->policies, "static") : NULL;
    if (*sized && !at) {
        fputs("fleetsim compare: --peak is what static of --policies has; there is none\n", stderr);
        return false;
    }
    return true;
}

/* Variants from --policies, which need the scenario opened to know what it needs; an enum
 * command_exit. */
static int policies_add(struct compare *compare, const char *scenario, bool sized,
                        struct arena *arena)
{
    struct variant_spec specs[POLICIES_MAX];
    struct errors errors;
    struct capacity_ask ask = ask_of(compare);
    uint32_t peak = 0;
    int code = sized ? peak_size(compare, scenario, &peak, arena) : COMMAND_OK;
    if (code != COMMAND_OK)
        return code;
    errors_init(&errors);
    struct run *base = setup_open_measuring(scenario, &compare->values->sets, NULL,
                                            compare->values->seed, &ask, arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    size_t count =
        base != NULL ? policies_read(compare->values->policies, base, peak, specs, arena) : 0;
    run_free(base);
    for (size_t i = 0; i < count; i++)
        compare->contenders[compare->count++].spec = specs[i];
    return count > 0 ? COMMAND_OK : COMMAND_BAD_INPUT;
}

static bool variants_read(struct compare *compare, struct arena *arena)
{
    const struct options_list *list = &compare->values->variants;
    bool ok = true;
    size_t count = compare->count + list->count; /* --policies come first */
    if (count < 2 || count > VARIANTS_MAX) {
        fprintf(stderr, "fleetsim compare: %zu --variant given, 2 to %d are compared\n", count,
                VARIANTS_MAX);
        return false;
    }
    for (size_t i = compare->count; i < count; i++) {
        struct contender *contender = &compare->contenders[i];
        ok &= variant_parse(list->items[i - compare->count], "fleetsim compare", &contender->spec,
                            arena, stderr);
        for (size_t j = 0; ok && j < i; j++) {
            if (strcmp(compare->contenders[j].spec.name, contender->spec.name) == 0) {
                fprintf(stderr, "fleetsim compare: two variants are called '%s'\n",
                        contender->spec.name);
                ok = false;
            }
        }
    }
    compare->count = count;
    return ok;
}

/* What its pools' autoscalers say before the run. */
static void scalers_take(struct contender *o)
{
    bool scales = false;
    for (size_t p = 0; p < run_config(o->run)->fleet.pools.count; p++) {
        const char *policy = config_pool(run_config(o->run), p)->autoscaler.type->name;
        o->oracle |= strcmp(policy, "ideal") == 0;
        scales |= strcmp(policy, "static") != 0;
        o->replicas += run_initial_replicas(o->run, p);
    }
    o->replicas = scales ? 0 : o->replicas;
}

/* Opens them all, so that everything wrong is known before the first is simulated. */
static bool variants_open(struct compare *compare, const char *scenario, struct arena *arena)
{
    bool ok = true;
    struct capacity_ask ask = ask_of(compare);
    for (size_t i = 0; i < compare->count; i++) {
        struct contender *o = &compare->contenders[i];
        struct errors errors;
        errors_init(&errors);
        o->run = setup_open_measuring(scenario, &compare->values->sets, &o->spec.sets,
                                      compare->values->seed, &ask, arena, &errors);
        if (errors.count > 0)
            fprintf(stderr, "variant %s:\n", o->spec.name);
        setup_errors_print(&errors);
        ok &= o->run != NULL;
        o->replication = o->run != NULL ? (size_t)run_config(o->run)->replication : 0;
        for (size_t c = 0; o->run != NULL && c < run_config(o->run)->workload.count; c++)
            o->states_slo |= !isnan(config_class(run_config(o->run), c)->slo.attainment);
        if (o->run != NULL)
            scalers_take(o);
        errors_free(&errors);
    }
    return ok;
}

static char *contender_json(const struct run *run)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) {
        fputs("fleetsim: out of memory\n", stderr);
        exit(COMMAND_FAILURE);
    }
    struct json json;
    json_out_init(&json, memory);
    json.depth = 3; /* inside an object, a list and an object */
    struct arena arena;
    struct run_outcome outcome;
    arena_init(&arena);
    run_outcome_fill(run, &outcome, &arena);
    result_json(&json, "result", &outcome);
    arena_free(&arena);
    fclose(memory);
    return text;
}

static bool variant_simulate(struct compare *compare, struct contender *o)
{
    struct errors errors;
    struct progress progress;
    errors_init(&errors);
    progress_init(&progress, o->run, o->spec.name);
    struct run_options options = {.step_by_step = compare->values->step_by_step,
                                  .progress = compare->values->quiet ? NULL : progress_report,
                                  .progress_self = &progress};
    bool ok =
        fingerprint_take(o->run, &o->arrivals, &errors) && run_simulate(o->run, &options, &errors);
    if (ok) {
        size_t events, checks;
        metrics_scale_events(run_metrics(o->run), &events);
        run_audit(o->run, &checks, &o->audit_ok);
        o->scale_events = events;
        o->met_cold_start = run_met_cold_start(o->run);
        o->summary = metrics_summaries(run_metrics(o->run))[0];
        o->summary.pool = NULL; /* it goes with the run */
        o->json = contender_json(o->run);
        values_take(compare, o, 0, &o->summary);
        o->always_met = o->summary.slo_met == 1;
    }
    if (!o->audit_ok && ok)
        fprintf(stderr, "fleetsim compare: variant %s: the audit failed; `run` shows where\n",
                o->spec.name);
    setup_errors_print(&errors);
    errors_free(&errors);
    run_free(o->run);
    o->run = NULL;
    return ok;
}

/* One more run of a variant, under other chance. */
static bool variant_repeat(struct compare *compare, const char *scenario, struct contender *o,
                           size_t replication)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    struct options_list sets = replicate_sets(&o->spec.sets, o->replication + replication, &arena);
    struct capacity_ask ask = ask_of(compare);
    struct run *run = setup_open_measuring(scenario, &compare->values->sets, &sets,
                                           compare->values->seed, &ask, &arena, &errors);
    struct run_options options = {.step_by_step = compare->values->step_by_step};
    bool ok = run != NULL && run_simulate(run, &options, &errors);
    if (ok) {
        size_t checks;
        bool audit_ok;
        const struct metrics_summary *summary = metrics_summaries(run_metrics(run));
        run_audit(run, &checks, &audit_ok);
        values_take(compare, o, replication, summary);
        o->always_met &= summary->slo_met == 1;
        o->audit_ok &= audit_ok;
    } else {
        setup_errors_print(&errors); /* warnings were said the first time */
    }
    run_free(run);
    errors_free(&errors);
    arena_free(&arena);
    return ok;
}

static bool variants_repeat(struct compare *compare, const char *scenario)
{
    for (size_t k = 1; k < compare->replications; k++) {
        for (size_t i = 0; i < compare->count; i++) {
            if (!variant_repeat(compare, scenario, &compare->contenders[i], k))
                return false;
        }
    }
    return true;
}

/* What savings are against: the variant called static, else the largest. */
static const struct contender *peak_of(const struct compare *compare)
{
    const struct contender *peak = &compare->contenders[0];
    for (size_t i = 0; i < compare->count; i++) {
        const struct contender *o = &compare->contenders[i];
        if (strcmp(o->spec.name, "static") == 0)
            return o;
        if (o->summary.gpu_hours.billed > peak->summary.gpu_hours.billed)
            peak = o;
    }
    return peak;
}

/* Of GPU-hours, the first headline, against the peak of the same replication. */
static struct interval saving_of(const struct compare *compare, const struct contender *o)
{
    const struct contender *peak = peak_of(compare);
    double saved[REPLICATIONS_MAX];
    for (size_t k = 0; k < compare->replications; k++)
        saved[k] = peak->values[k] > 0 ? 1 - o->values[k] / peak->values[k] : NAN;
    return interval_of(saved, compare->replications);
}

static bool same_arrivals(const struct compare *compare)
{
    for (size_t i = 1; i < compare->count; i++) {
        if (!fingerprint_equal(&compare->contenders[0].arrivals, &compare->contenders[i].arrivals))
            return false;
    }
    return true;
}

/* By dollars or, without prices, by GPU-hours: -1 when a costs less, 0 as much, 1 more. */
static int costs_compare(const struct contender *a, const struct contender *b)
{
    bool priced = !isnan(a->summary.usd.total) && !isnan(b->summary.usd.total);
    double x = priced ? a->summary.usd.total : a->summary.gpu_hours.billed;
    double y = priced ? b->summary.usd.total : b->summary.gpu_hours.billed;
    return (x > y) - (x < y);
}

/* Whether it is a fleet that somebody could have. */
static bool qualifies(const struct contender *o)
{
    return o->always_met && !o->oracle;
}

/* The cheapest that meets the SLO, the first of equals; NULL: none. */
static const struct contender *cheapest(const struct compare *compare)
{
    const struct contender *best = NULL;
    for (size_t i = 0; i < compare->count; i++) {
        const struct contender *o = &compare->contenders[i];
        if (qualifies(o) && (!best || costs_compare(o, best) < 0))
            best = o;
    }
    return best;
}

static bool oracle_met(const struct compare *compare)
{
    bool any = false;
    for (size_t i = 0; i < compare->count; i++)
        any |= compare->contenders[i].always_met && compare->contenders[i].oracle;
    return any;
}

/* The names of all that meet the SLO for as little: "a", "a and b", "a, b and c". */
static void cheapest_names_print(const struct compare *compare, const struct contender *best,
                                 FILE *out)
{
    size_t left = 0;
    for (size_t i = 0; i < compare->count; i++) {
        const struct contender *o = &compare->contenders[i];
        left += qualifies(o) && costs_compare(o, best) == 0;
    }
    for (size_t i = 0; i < compare->count; i++) {
        const struct contender *o = &compare->contenders[i];
        if (!qualifies(o) || costs_compare(o, best) != 0)
            continue;
        left--;
        fprintf(out, "%s%s", o->spec.name, left == 0 ? "" : left == 1 ? " and " : ", ");
    }
}

static bool states_slo(const struct compare *compare)
{
    bool any = false;
    for (size_t i = 0; i < compare->count; i++)
        any |= compare->contenders[i].states_slo;
    return any;
}

/* An SLO is stated, but nobody came whom it was stated for. */
static bool slo_unjudged(const struct compare *compare)
{
    bool any = false;
    for (size_t i = 0; i < compare->count; i++)
        any |= compare->contenders[i].summary.slo_met != -1;
    return !any;
}

static double largest_gpu_hours(const struct compare *compare)
{
    double largest = 0;
    for (size_t i = 0; i < compare->count; i++)
        largest = fmax(largest, compare->contenders[i].summary.gpu_hours.billed);
    return largest;
}

static void range_fill(struct text *cell, const struct metrics_usd *usd)
{
    if (isnan(usd->total) || !(usd->low < usd->high)) {
        snprintf(cell->s, sizeof cell->s, TEXT_UNDEFINED);
        return;
    }
    int decimals = usd->high < 100 ? 2 : 0;
    snprintf(cell->s, sizeof cell->s, "%.20s–%.20s", text_real(usd->low, decimals).s,
             text_real(usd->high, decimals).s);
}

/* Whether a prefix cache was asked in any of them: then what routers differ in has columns too. */
static bool caches(const struct compare *compare)
{
    bool any = false;
    for (size_t i = 0; i < compare->count; i++)
        any |= compare->contenders[i].summary.prefix.lookup_tokens > 0;
    return any;
}

enum { COLUMNS = 12, CACHE_COLUMNS = 2 };

static void row_fill(const struct compare *compare, struct text *row, const struct contender *o,
                     double largest)
{
    struct interval saving = saving_of(compare, o);
    const struct metrics_summary *s = &o->summary;
    snprintf(row[0].s, sizeof row[0].s, "%s", o->spec.name);
    row[1] = text_real(s->gpu_hours.billed, largest < 100 ? 2 : 1);
    row[2] = text_percent(saving.mean, 1);
    if (!isnan(saving.half))
        snprintf(row[2].s, sizeof row[2].s, "%.20s ± %.20s", text_percent(saving.mean, 1).s,
                 text_percent(saving.half, 2).s);
    row[3] = text_real(s->usd.total, s->usd.total < 100 ? 2 : 0);
    range_fill(&row[4], &s->usd);
    row[5] = text_seconds(s->ttft.p50_ps);
    row[6] = text_seconds(s->ttft.p99_ps);
    row[7] = text_millis(s->tpot.p99_ps);
    row[8] = text_share(s->slo.attainment, 2);
    row[9] = text_count(o->scale_events);
    row[10] = text_count(o->met_cold_start);
    row[11] = text_count(s->requests.refused + s->requests.unservable);
    if (caches(compare)) {
        row[COLUMNS] = text_percent(s->prefix.token_hit_rate, 2);
        row[COLUMNS + 1] = text_real(s->load_max_over_mean, 2);
    }
}

static void table_print(const struct compare *compare, FILE *out)
{
    static const char *const heads[2][COLUMNS + CACHE_COLUMNS] = {
        {"", "GPU-hours", "saved", "cost", "low–high", "TTFT", "TTFT", "TPOT", "attained", "scale",
         "met cold", "", "cached", "fullest"},
        {"variant", "billed", "%", "$", "$", "p50 s", "p99 s", "p99 ms", "%", "events", "start",
         "refused", "%", "/ mean"},
    };
    size_t columns = caches(compare) ? COLUMNS + CACHE_COLUMNS : COLUMNS;
    struct text_table table;
    text_table_init(&table, columns, 2, 1);
    for (size_t r = 0; r < 2; r++) {
        struct text *row = text_table_row(&table, false);
        for (size_t c = 0; c < columns; c++)
            snprintf(row[c].s, sizeof row[c].s, "%s", heads[r][c]);
    }
    for (size_t i = 0; i < compare->count; i++)
        row_fill(compare, text_table_row(&table, i == 0), &compare->contenders[i],
                 largest_gpu_hours(compare));
    text_table_print(&table, out);
    text_table_free(&table);
}

/* With --policies nobody has stated how many static holds. */
static void saved_print(const struct compare *compare, FILE *out)
{
    const struct contender *peak = peak_of(compare);
    if (!compare->values->policies || peak->replicas == 0)
        return;
    fprintf(out, "saved: against %s, %s replica%s all the time, %s\n", peak->spec.name,
            text_count(peak->replicas).s, peak->replicas == 1 ? "" : "s",
            compare->values->peak && strcmp(compare->values->peak, "size") == 0
                ? "the smallest fleet that meets the SLO"
                : "the plan's peak (--peak size: as few as meet the SLO)");
}

static void verdict_print(const struct compare *compare, FILE *out)
{
    const struct fingerprint *first = &compare->contenders[0].arrivals;
    fputc('\n', out);
    saved_print(compare, out);
    if (same_arrivals(compare)) {
        fprintf(out,
                "arrivals: identical in all %zu: %s requests, %s prompt and %s output tokens\n",
                compare->count, text_count(first->requests).s, text_count(first->prompt_tokens).s,
                text_count(first->output_tokens).s);
        if (first->live)
            fputs("  (of a closed loop, each user's first request, of sessions their first turns: "
                  "the "
                  "others have the same\n  draws, and their times follow from the fleet)\n",
                  out);
    } else {
        fputs("arrivals: NOT the same, so that differences do not come from the fleet alone\n",
              out);
        for (size_t i = 0; i < compare->count; i++) {
            const struct fingerprint *print = &compare->contenders[i].arrivals;
            fprintf(out, "  %s: %s requests, %s prompt and %s output tokens, digest %016llx\n",
                    compare->contenders[i].spec.name, text_count(print->requests).s,
                    text_count(print->prompt_tokens).s, text_count(print->output_tokens).s,
                    (unsigned long long)print->digest);
        }
    }
    const struct contender *best = cheapest(compare);
    if (!states_slo(compare)) {
        fputs("cheapest that meets the SLO: no class states an attainment\n", out);
    } else if (slo_unjudged(compare)) {
        fputs("cheapest that meets the SLO: no request arrived that it could be judged by\n", out);
    } else if (!best) {
        fprintf(out, "cheapest that meets the SLO: none of them meets it%s\n",
                oracle_met(compare) ? " but an oracle, which knows the future" : "");
    } else {
        fputs("cheapest that meets the SLO: ", out);
        cheapest_names_print(compare, best, out);
        fprintf(
            out, ", %s GPU-hours",
            text_real(best->summary.gpu_hours.billed, largest_gpu_hours(compare) < 100 ? 2 : 1).s);
        if (!isnan(best->summary.usd.total))
            fprintf(out, ", $%s", text_real(best->summary.usd.total, 2).s);
        fputc('\n', out);
    }
    bool ok = true;
    for (size_t i = 0; i < compare->count; i++)
        ok &= compare->contenders[i].audit_ok;
    fprintf(out, "audit: %s\n", ok ? "ok in all of them" : "FAILED");
}

/* Texts and values stay the contenders'; the lists are in the arena. */
static struct paired paired_of(const struct compare *compare, struct arena *arena)
{
    double **values = arena_alloc(arena, compare->count * sizeof *values);
    struct paired paired = {.count = compare->count,
                            .replications = compare->replications,
                            .names = arena_alloc(arena, compare->count * sizeof *paired.names),
                            .values = values};
    for (size_t i = 0; i < compare->count; i++) {
        paired.names[i] = compare->contenders[i].spec.name;
        values[i] = compare->contenders[i].values;
    }
    return paired;
}

static void compare_json(const struct compare *compare, const char *name,
                         const struct paired *paired, FILE *out)
{
    struct json json;
    const struct fingerprint *first = &compare->contenders[0].arrivals;
    const struct contender *best = cheapest(compare);
    json_out_init(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "scenario", name);
    json_out_object(&json, "arrivals");
    json_out_bool(&json, "identical", same_arrivals(compare));
    json_out_count(&json, "requests", first->requests);
    json_out_count(&json, "prompt_tokens", first->prompt_tokens);
    json_out_count(&json, "output_tokens", first->output_tokens);
    json_out_object_end(&json);
    json_out_count(&json, "replications", compare->replications);
    json_out_text(&json, "saving_against", peak_of(compare)->spec.name);
    json_out_text(&json, "cheapest_that_meets_slo", best ? best->spec.name : NULL);
    json_out_list(&json, "variants");
    for (size_t i = 0; i < compare->count; i++) {
        const struct contender *o = &compare->contenders[i];
        json_out_object(&json, NULL);
        json_out_text(&json, "name", o->spec.name);
        json_out_list(&json, "set");
        for (size_t k = 0; k < o->spec.sets.count; k++)
            json_out_text(&json, NULL, o->spec.sets.items[k]);
        json_out_list_end(&json);
        struct interval saving = saving_of(compare, o);
        json_out_real(&json, "saving", saving.mean);
        json_out_real(&json, "saving_half_interval", saving.half);
        json_out_count(&json, "met_cold_start", o->met_cold_start);
        json_out_count(&json, "scale_events", o->scale_events);
        json_out_int(&json, "slo_met",
                     o->summary.slo_met < 0 ? COLUMN_INT_NONE : o->summary.slo_met);
        if (compare->replications > 1)
            paired_json(&json, paired, i);
        fprintf(out, ",%s", o->json);
        json_out_object_end(&json);
    }
    json_out_list_end(&json);
    json_out_object_end(&json);
}

static int compare_with(struct compare *compare, const char *scenario, struct arena *arena)
{
    compare->replications = replicate_count(compare->values->replications, "fleetsim compare");
    if (compare->replications == 0)
        return COMMAND_BAD_USAGE;
    bool sized;
    if (!peak_read(compare->values, &sized))
        return COMMAND_BAD_USAGE;
    int code =
        compare->values->policies ? policies_add(compare, scenario, sized, arena) : COMMAND_OK;
    if (code != COMMAND_OK)
        return code;
    if (!variants_read(compare, arena))
        return COMMAND_BAD_USAGE;
    for (size_t i = 0; i < compare->count; i++)
        compare->contenders[i].values =
            arena_alloc(arena, HEADLINE_COUNT * compare->replications * sizeof(double));
    if (!variants_open(compare, scenario, arena))
        return COMMAND_BAD_INPUT;
    const struct run *first = compare->contenders[0].run;
    const char *name = arena_copy(arena, run_config(first)->name);
    const char *title =
        arena_printf(arena, "%s: %zu variants, from %s for %s, seed %lld", name, compare->count,
                     text_stamp(run_start(first)).s, text_duration(run_horizon(first)).s,
                     (long long)run_config(first)->seed);
    bool ok = true;
    for (size_t i = 0; i < compare->count; i++) {
        if (!variant_simulate(compare, &compare->contenders[i]))
            return COMMAND_FAILURE;
        ok &= compare->contenders[i].audit_ok;
    }
    if (!variants_repeat(compare, scenario))
        return COMMAND_FAILURE;
    for (size_t i = 0; i < compare->count; i++)
        ok &= compare->contenders[i].audit_ok;
    struct paired paired = paired_of(compare, arena);
    if (compare->values->json) {
        compare_json(compare, name, &paired, stdout);
    } else {
        printf("%s\n\n", title);
        table_print(compare, stdout);
        if (compare->replications > 1) {
            putchar('\n');
            paired_print(&paired, stdout);
        }
        verdict_print(compare, stdout);
    }
    return ok ? COMMAND_OK : COMMAND_FAILURE;
}

static int compare_run(const void *values, const struct options_list *operands)
{
    struct arena arena;
    arena_init(&arena);
    struct compare *compare = arena_alloc(&arena, sizeof *compare);
    compare->values = values;
    compare->capacities = capacity_cache_create();
    int code = compare_with(compare, operands->items[0], &arena);
    for (size_t i = 0; i < VARIANTS_MAX; i++) {
        run_free(compare->contenders[i].run);
        free(compare->contenders[i].json);
    }
    capacity_cache_free(compare->capacities);
    arena_free(&arena);
    return code;
}

const struct command cmd_compare_command = {
    .name = "compare",
    .summary = "simulate variants of a scenario on the same arrivals, side by side",
    .operands = "SCENARIO",
    .operands_min = 1,
    .operands_max = 1,
    .options = compare_specs,
    .options_size = sizeof(struct compare_values),
    .text =
        "Two variants or more, each with a name and the values it changes. The same seed gives "
        "all\n"
        "of them the same arrivals, which is verified. `saved` is of GPU-hours, against the "
        "variant\n"
        "called static, else the largest. With --replications it has its 95 % interval, the "
        "cheapest\n"
        "must meet the SLO in all of them, the other columns show the first, and two more tables\n"
        "give each headline's interval and its differences from the first variant, paired.\n"
        "`met cold start`: requests that came while a replica was starting.\n"
        "Where a prefix cache was asked: `cached`, the share of prompt tokens it had, and "
        "`fullest`,\n"
        "requests in flight at the fullest ready replica over the mean of them all.\n"
        "What --policies need to know of a replica is its capacity: stated, known for step_time "
        "rate,\n"
        "or else measured, with one replica at Poisson rates until it just meets the SLO.\n",
    .example = "fleetsim compare chat-1m --variant autoscaled: \\\n"
               "    --variant 'peak:fleet.pools[0].autoscaler={policy: static, replicas: 273}'\n"
               "fleetsim compare chat-1m --policies static,target,predictive,warm_pool,ideal\n"
               "fleetsim compare chat-1m --policies static,target --peak size\n"
               "fleetsim compare chat-1m --variant ll:fleet.router.policy=least_loaded \\\n"
               "    --variant rr:fleet.router.policy=round_robin\n",
    .run = compare_run,
};
