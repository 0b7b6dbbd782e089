#include "sim/run/run_outcome.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "sim/run/run_internal.h"
#include "sim/run/run_tables.h"
#include "sim/run/version.h"

const struct column run_outcome_pool_columns[] = {
    {"gpus_per_replica", COLUMN_UINT32, offsetof(struct run_outcome_pool, gpus_per_replica), "1",
     "GPUs of a replica", "tensor × attention_data × pipeline."},
    {"initial_replicas", COLUMN_UINT32, offsetof(struct run_outcome_pool, initial_replicas), "1",
     "replicas at the start", "Ready and billed from time 0."},
    {"capacity", COLUMN_DOUBLE, offsetof(struct run_outcome_pool, capacity), "s-1",
     "capacity of a replica",
     "Requests per second that one replica sustains: as the scenario states it, from the step-time "
     "model, or measured where the run needed it; undefined otherwise."},
    {"capacity_trials", COLUMN_UINT32, offsetof(struct run_outcome_pool, capacity_trials), "1",
     "trial runs for the capacity",
     "Runs of one replica that measured its capacity; 0: it was not measured."},
    {"target_utilization", COLUMN_DOUBLE, offsetof(struct run_outcome_pool, target_utilization),
     "1", "target utilisation", "The share of its capacity that the plan gives a replica to do."},
    {0},
};

const struct run_outcome_pool *run_outcome_pools(const struct run *run, struct arena *arena)
{
    size_t count = run_pool_count(run);
    struct run_outcome_pool *pools = arena_alloc(arena, count * sizeof *pools);
    for (size_t p = 0; p < count; p++) {
        const struct pool_config *pool = config_pool(&run->config, p);
        const struct capacity *measured = run_capacity_measured(run, p);
        pools[p] = (struct run_outcome_pool){.name = pool->name,
                                             .gpus_per_replica = config_gpus_per_replica(pool),
                                             .initial_replicas = run_initial_replicas(run, p),
                                             .capacity = run_capacity(run, p),
                                             .target_utilization = pool->target_utilization,
                                             .capacity_trials = measured ? measured->trials : 0};
    }
    return pools;
}

void run_outcome_fill(const struct run *run, struct run_outcome *o, struct arena *arena)
{
    const struct run_config *c = &run->config;
    const struct metrics *m = run->metrics;
    struct run_totals *totals = arena_alloc(arena, sizeof *totals);
    *totals = run_totals(run);
    *o = (struct run_outcome){.name = c->name,
                              .description = c->description,
                              .version = VERSION_TEXT,
                              .git = VERSION_REVISION,
                              .compiler = VERSION_COMPILER,
                              .flags = VERSION_FLAGS,
                              .resolved = run->resolved,
                              .digest = totals->digest,
                              .seed = c->seed,
                              .replication = c->replication,
                              .start_unix_s = c->start_unix_s,
                              .horizon_ps = c->horizon_ps,
                              .warmup_ps = c->warmup_ps,
                              .interval_ps = c->output.trace_interval_ps,
                              .complete = true,
                              .pool_count = run_pool_count(run),
                              .class_count = run_class_count(run),
                              .hour_count = metrics_hour_count(m),
                              .hours = metrics_hours(m),
                              .hours_all = metrics_hours_all(m),
                              .summaries = metrics_summaries(m),
                              .classes = metrics_class_summaries(m),
                              .pools = run_outcome_pools(run, arena),
                              .skipped_rows = workload_skipped_rows(run->workload),
                              .failed_calls = workload_failed_calls(run->workload),
                              .late_requests = workload_late_requests(run->workload),
                              .sessions = workload_sessions_all(run->workload),
                              .totals = totals};
    o->checks = run_audit(run, &o->check_count, &o->audit_ok);
    metrics_scale_events(m, &o->scale_events);
    o->bin_count = metrics_bins(m, NULL);
    struct metrics_bin *bins = arena_alloc(arena, o->bin_count * sizeof *bins);
    metrics_bins(m, bins);
    o->bins = bins;
}

/* ---- from a file --------------------------------------------------------------------------------
 */

struct reading {
    const char *path;
    struct trace_read *file;
    struct run_outcome *o;
    struct errors *errors;
    bool ok;
};

static void missing(struct reading *r, const char *name)
{
    if (r->ok)
        errors_add(r->errors, SEVERITY_ERROR, NULL,
                   "cannot read %s: %s is missing; an older program wrote it, or it is no run",
                   r->path, name);
    r->ok = false;
}

static int64_t number(struct reading *r, const char *name)
{
    uint64_t value = 0;
    if (!trace_read_number(r->file, name, &value))
        missing(r, name);
    return (int64_t)value;
}

static const char *text(struct reading *r, const char *name)
{
    const char *value = trace_read_text(r->file, name);
    if (!value)
        missing(r, name);
    return value ? value : "";
}

/* "2026-03-02T00:00:00Z" as Unix seconds. */
static int64_t stamp(struct reading *r, const char *name)
{
    struct field field = {.name = name, .kind = FIELD_STAMP};
    struct arena arena;
    char why[FIELD_WHY_MAX];
    int64_t seconds = 0;
    arena_init(&arena);
    if (!field_parse(&field, text(r, name), &seconds, &arena, why, sizeof why))
        missing(r, name);
    arena_free(&arena);
    return seconds;
}

static void meta_read(struct reading *r)
{
    struct run_outcome *o = r->o;
    o->name = text(r, "meta/name");
    o->version = text(r, "meta/version");
    o->git = text(r, "meta/git");
    o->compiler = text(r, "meta/compiler");
    o->flags = text(r, "meta/flags");
    o->resolved = text(r, "scenario/resolved");
    o->complete = number(r, "meta/complete") == 1;
    o->digest = o->complete ? text(r, "meta/digest") : NULL;
    o->seed = number(r, "meta/seed");
    o->replication = number(r, "meta/replication");
    o->start_unix_s = stamp(r, "meta/start");
    o->horizon_ps = number(r, "meta/horizon_ps");
    o->warmup_ps = number(r, "meta/warmup_ps");
    o->interval_ps = number(r, "meta/trace_interval_ps");
    o->skipped_rows = (uint64_t)number(r, "meta/skipped_rows");
    o->failed_calls = (uint64_t)number(r, "meta/failed_calls");
    /* Files of earlier versions have none. */
    (void)trace_read_number(r->file, "meta/late_requests", &o->late_requests);
    o->sessions = (struct sessions_counts){
        .started = (uint64_t)number(r, "meta/sessions_started"),
        .finished = (uint64_t)number(r, "meta/sessions_finished"),
        .given_up = (uint64_t)number(r, "meta/sessions_given_up"),
        .past_horizon = (uint64_t)number(r, "meta/sessions_past_horizon"),
        .cut = (uint64_t)number(r, "meta/sessions_cut"),
    };
    o->description = trace_read_title(r->file); /* the name where there is no description */
    if (strcmp(o->description, o->name) == 0)
        o->description = "";
    if (r->ok && (o->interval_ps < 1 || o->horizon_ps < 1 || o->warmup_ps < 0 ||
                  o->warmup_ps >= o->horizon_ps))
        missing(r, "a horizon that can be");
}

static struct trace_rows table_read(struct reading *r, enum run_table which)
{
    struct trace_rows rows = {0};
    if (r->ok)
        r->ok = trace_read_table(r->file, &run_tables[which], &rows, r->errors);
    return rows;
}

static void hours_read(struct reading *r)
{
    struct run_outcome *o = r->o;
    struct trace_rows all = table_read(r, RUN_TABLE_FLEET), pools = table_read(r, RUN_TABLE_HOURLY),
                      plan = table_read(r, RUN_TABLE_POOLS);
    if (!r->ok)
        return;
    if (all.row_count != pools.row_count || pools.series_count != plan.row_count) {
        missing(r, "a pool's or an hour's row");
        return;
    }
    struct metrics_hour *hours = pools.rows, *hours_all = all.rows;
    struct run_outcome_pool *plans = plan.rows;
    o->hour_count = all.row_count;
    o->pool_count = pools.series_count;
    for (size_t i = 0; i < o->hour_count * o->pool_count; i++)
        hours[i].pool = pools.names[i % o->pool_count];
    for (size_t k = 0; k < o->hour_count; k++)
        hours_all[k].pool = "all";
    for (size_t p = 0; p < o->pool_count; p++)
        plans[p].name = plan.names[p];
    o->hours = hours;
    o->hours_all = hours_all;
    o->pools = plans;
}

static void whole_read(struct reading *r)
{
    struct run_outcome *o = r->o;
    struct trace_rows summaries = table_read(r, RUN_TABLE_SUMMARY),
                      classes = table_read(r, RUN_TABLE_CLASSES),
                      checks = table_read(r, RUN_TABLE_AUDIT),
                      bins = table_read(r, RUN_TABLE_LATENCY),
                      events = table_read(r, RUN_TABLE_SCALING);
    if (!r->ok)
        return;
    if (summaries.row_count != 1 + o->pool_count || classes.row_count == 0) {
        missing(r, "a row of the summary");
        return;
    }
    struct metrics_summary *s = summaries.rows;
    struct metrics_class_summary *class = classes.rows;
    for (size_t i = 0; i < summaries.row_count; i++)
        s[i].pool = summaries.names[i];
    for (size_t i = 0; i < classes.row_count; i++)
        class[i].name = classes.names[i];
    o->summaries = s;
    o->classes = class;
    o->class_count = classes.row_count;
    o->checks = checks.rows;
    o->check_count = checks.row_count;
    o->bins = bins.rows;
    o->bin_count = bins.row_count;
    o->scale_events = events.row_count;
    o->audit_ok = true;
    for (size_t i = 0; i < o->check_count; i++)
        o->audit_ok &= o->checks[i].ok == 1;
}

struct trace_read *run_outcome_read(const char *path, struct run_outcome *outcome,
                                    struct errors *errors)
{
    *outcome = (struct run_outcome){0};
    struct reading r = {.path = path, .o = outcome, .errors = errors, .ok = true};
    r.file = trace_read_open(path, errors);
    if (!r.file)
        return NULL;
    if (trace_read_text(r.file, "scenario/sweep")) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "%s holds a sweep, not a run: its runs are in runs/ beside it, and `report` "
                   "shows it",
                   path);
        trace_read_close(r.file);
        return NULL;
    }
    meta_read(&r);
    if (r.ok)
        hours_read(&r);
    if (r.ok && outcome->complete)
        whole_read(&r);
    if (!r.ok) {
        trace_read_close(r.file);
        return NULL;
    }
    return r.file;
}
