/* The HDF5 file of a run: which tables it has, from whose columns. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/run/expert_run.h"
#include "sim/run/run_internal.h"
#include "sim/run/run_outcome.h"
#include "sim/run/run_tables.h"
#include "sim/run/version.h"

enum { TABLES_MAX = RUN_TABLE_COUNT, TEXTS_MAX = 4, META_MAX = 20 };

/* What run_write hands to trace_write; pointers into the run and into itself. */
struct output {
    struct trace_run trace;
    struct trace_table tables[TABLES_MAX];
    struct trace_text texts[TEXTS_MAX];
    struct trace_meta meta[META_MAX];
    const char **pool_names;    /* owned */
    const char **summary_names; /* owned: "all", then the pools */
    const char **class_names;   /* owned */
    struct metrics_bin *bins;   /* owned; NULL: an unfinished run */
    struct arena arena;         /* of the pools' rows */
};

static void names_fill(struct output *o, const struct run *run)
{
    size_t pools = run_pool_count(run), classes = run_class_count(run);
    o->pool_names = memory_alloc(pools * sizeof *o->pool_names);
    o->summary_names = memory_alloc((pools + 1) * sizeof *o->summary_names);
    o->class_names = memory_alloc(classes * sizeof *o->class_names);
    o->summary_names[0] = "all";
    for (size_t p = 0; p < pools; p++) {
        o->pool_names[p] = o->summary_names[p + 1] = config_pool(&run->config, p)->name;
    }
    for (size_t c = 0; c < classes; c++) {
        o->class_names[c] = config_class(&run->config, c)->traffic.name;
    }
}

static void names_free(struct output *o)
{
    free(o->pool_names);
    free(o->summary_names);
    free(o->class_names);
    free(o->bins);
    arena_free(&o->arena);
}

const struct trace_table run_tables[RUN_TABLE_COUNT] = {
    [RUN_TABLE_HOURLY] = {.group = "hourly",
                          .doc = "One row per interval (output.trace_interval) and pool; the last "
                                 "one is the drain after the horizon, which is not billed.",
                          .shape = TRACE_SERIES,
                          .columns = metrics_hour_columns,
                          .row_size = sizeof(struct metrics_hour),
                          .start_offset = offsetof(struct metrics_hour, start_ps),
                          .end_offset = offsetof(struct metrics_hour, end_ps),
                          .dimension = "pool"},
    [RUN_TABLE_FLEET] = {.group = "fleet",
                         .doc = "The same intervals with all pools together.",
                         .shape = TRACE_TIMES,
                         .columns = metrics_hour_columns,
                         .row_size = sizeof(struct metrics_hour),
                         .start_offset = offsetof(struct metrics_hour, start_ps),
                         .end_offset = offsetof(struct metrics_hour, end_ps)},
    [RUN_TABLE_SCALING] = {.group = "scaling",
                           .doc = "One row per autoscaler decision that changed a pool.",
                           .shape = TRACE_LIST,
                           .columns = metrics_scaling_columns,
                           .row_size = sizeof(struct metrics_scale_event),
                           .dimension = "event"},
    [RUN_TABLE_SUMMARY] = {.group = "summary",
                           .doc = "The whole run: all pools together, then each.",
                           .shape = TRACE_LABELS,
                           .columns = metrics_summary_columns,
                           .row_size = sizeof(struct metrics_summary),
                           .dimension = "pool"},
    [RUN_TABLE_CLASSES] = {.group = "classes",
                           .doc = "The whole run by class of requests.",
                           .shape = TRACE_LABELS,
                           .columns = metrics_class_columns,
                           .row_size = sizeof(struct metrics_class_summary),
                           .dimension = "class"},
    [RUN_TABLE_CLASS_HOURS] = {.group = "hourly_classes",
                               .doc = "One row per interval and class of requests, all pools "
                                      "together. Only with two classes or more: with one it would "
                                      "be `fleet`.",
                               .shape = TRACE_SERIES,
                               .columns = metrics_class_hour_columns,
                               .row_size = sizeof(struct metrics_class_hour),
                               .start_offset = offsetof(struct metrics_class_hour, start_ps),
                               .end_offset = offsetof(struct metrics_class_hour, end_ps),
                               .dimension = "class"},
    [RUN_TABLE_LATENCY] = {.group = "latency",
                           .doc = "The histograms behind the summary's percentiles: counts of "
                                  "values between two edges.",
                           .shape = TRACE_LIST,
                           .columns = metrics_bin_columns,
                           .row_size = sizeof(struct metrics_bin),
                           .dimension = "bin"},
    [RUN_TABLE_AUDIT] = {.group = "audit",
                         .doc = "The sums that must agree, each counted in two ways.",
                         .shape = TRACE_LIST,
                         .columns = metrics_check_columns,
                         .row_size = sizeof(struct metrics_check),
                         .dimension = "check"},
    [RUN_TABLE_GPU] = {.group = "gpu",
                       .doc = "Expert load of each GPU, of pools that state `step_time.experts`: "
                              "one row per interval, pool, layer group and expert-parallel rank; "
                              "the names are pool/layer group/rank.",
                       .shape = TRACE_SERIES,
                       .columns = expert_columns_gpu,
                       .row_size = sizeof(struct expert_gpu_row),
                       .start_offset = offsetof(struct expert_gpu_row, start_ps),
                       .end_offset = offsetof(struct expert_gpu_row, end_ps),
                       .dimension = "gpu"},
    [RUN_TABLE_EXPERTS] = {.group = "experts",
                           .doc = "Balance of the same, one row per interval, pool and layer "
                                  "group; the names are pool/layer group.",
                           .shape = TRACE_SERIES,
                           .columns = expert_columns_layer,
                           .row_size = sizeof(struct expert_layer_row),
                           .start_offset = offsetof(struct expert_layer_row, start_ps),
                           .end_offset = offsetof(struct expert_layer_row, end_ps),
                           .dimension = "series"},
    [RUN_TABLE_HOT_EXPERTS] = {.group = "hot_experts",
                               .doc = "The five most popular experts of each interval, pool and "
                                      "layer group.",
                               .shape = TRACE_LIST,
                               .columns = expert_columns_hot,
                               .row_size = sizeof(struct expert_hot_row),
                               .dimension = "entry"},
    [RUN_TABLE_POOLS] = {.group = "pools",
                         .doc = "What the references of each pool rest on.",
                         .shape = TRACE_LABELS,
                         .columns = run_outcome_pool_columns,
                         .row_size = sizeof(struct run_outcome_pool),
                         .dimension = "pool"},
    [RUN_TABLE_REQUESTS] = {.group = "requests",
                            .doc = "One row per request, in order of arrival; class and pool are "
                                   "indices. Only with `output: {requests: true}`.",
                            .shape = TRACE_LIST,
                            .columns = metrics_request_columns,
                            .row_size = sizeof(struct request_record),
                            .dimension = "request"},
};

static struct trace_table *add_table(struct output *o, enum run_table which, const void *rows,
                                     size_t row_count)
{
    struct trace_table *table = &o->tables[o->trace.table_count++];
    *table = run_tables[which];
    table->rows = rows;
    table->row_count = row_count;
    return table;
}

static void latency_fill(struct output *o, const struct metrics *m)
{
    size_t bins = metrics_bins(m, NULL);
    o->bins = memory_alloc((bins + 1) * sizeof *o->bins);
    metrics_bins(m, o->bins);
    add_table(o, RUN_TABLE_LATENCY, o->bins, bins);
}

static void tables_fill(struct output *o, const struct run *run)
{
    const struct metrics *m = run->metrics;
    size_t hours = metrics_hour_count(m), events;
    const struct metrics_scale_event *scaling = metrics_scale_events(m, &events);
    struct trace_table *hourly = add_table(o, RUN_TABLE_HOURLY, metrics_hours(m), hours);
    hourly->labels = o->pool_names;
    hourly->series_count = run_pool_count(run);
    add_table(o, RUN_TABLE_FLEET, metrics_hours_all(m), hours);
    add_table(o, RUN_TABLE_SCALING, scaling, events);
    if (metrics_class_hours(m) != NULL) {
        struct trace_table *classes =
            add_table(o, RUN_TABLE_CLASS_HOURS, metrics_class_hours(m), hours);
        classes->labels = o->class_names;
        classes->series_count = run_class_count(run);
    }
    add_table(o, RUN_TABLE_POOLS, run_outcome_pools(run, &o->arena), run_pool_count(run))->labels =
        o->pool_names;
    if (o->trace.complete) {
        add_table(o, RUN_TABLE_SUMMARY, metrics_summaries(m), 1 + run_pool_count(run))->labels =
            o->summary_names;
        add_table(o, RUN_TABLE_CLASSES, metrics_class_summaries(m), run_class_count(run))->labels =
            o->class_names;
        latency_fill(o, m);
        size_t checks;
        bool ok;
        const struct metrics_check *audit = run_audit(run, &checks, &ok);
        add_table(o, RUN_TABLE_AUDIT, audit, checks);
    }
}

/* Of pools that model their experts' load; other files have no such groups. */
static void experts_fill(struct output *o, const struct run *run)
{
    if (run->experts == NULL) {
        return;
    }
    struct expert_rows rows = expert_run_rows(run->experts);
    struct trace_table *table = add_table(o, RUN_TABLE_GPU, rows.gpus, rows.intervals);
    table->labels = rows.gpu_labels;
    table->series_count = rows.gpu_series;
    table = add_table(o, RUN_TABLE_EXPERTS, rows.layers, rows.intervals);
    table->labels = rows.layer_labels;
    table->series_count = rows.layer_series;
    add_table(o, RUN_TABLE_HOT_EXPERTS, rows.hot, rows.hot_count);
}

static void add_meta(struct output *o, const char *name, const char *text, uint64_t number,
                     const char *doc)
{
    o->meta[o->trace.meta_count++] =
        (struct trace_meta){.name = name, .text = text, .number = number, .doc = doc};
}

static void output_fill(struct output *o, const struct run *run, const char *digest, bool complete)
{
    *o = (struct output){
        .trace = {.title = run->config.description[0] ? run->config.description : run->config.name,
                  .start_unix_s = run->config.start_unix_s,
                  .tables = o->tables,
                  .texts = o->texts,
                  .meta = o->meta,
                  .complete = complete}};
    arena_init(&o->arena);
    names_fill(o, run);
    tables_fill(o, run);
    experts_fill(o, run);
    o->texts[0] = (struct trace_text){"scenario", "given", scenario_text(run->scenario),
                                      "The scenario file as it was given"};
    o->texts[1] = (struct trace_text){"scenario", "resolved", run->resolved,
                                      "Every value as applied, defaults and overrides included"};
    o->trace.text_count = 2;
    add_meta(o, "name", run->config.name, 0, "The scenario's name");
    add_meta(o, "version", VERSION_TEXT, 0, "Version of fleetsim");
    add_meta(o, "git", VERSION_REVISION, 0, "Revision of its source");
    add_meta(o, "compiler", VERSION_COMPILER, 0, "What compiled it");
    add_meta(o, "flags", VERSION_FLAGS, 0, "Build type");
    add_meta(o, "seed", NULL, (uint64_t)run->config.seed, "Seed of all chance in the run");
    add_meta(o, "replication", NULL, (uint64_t)run->config.replication, "Replication number");
    add_meta(o, "horizon_ps", NULL, (uint64_t)run->config.horizon_ps,
             "Horizon in picoseconds: arrivals stop there");
    add_meta(o, "warmup_ps", NULL, (uint64_t)run->config.warmup_ps,
             "Warm-up in picoseconds: nothing before it is counted");
    add_meta(o, "trace_interval_ps", NULL, (uint64_t)run->config.output.trace_interval_ps,
             "Length of an interval in picoseconds");
    add_meta(o, "skipped_rows", NULL, workload_skipped_rows(run->workload),
             "Bad rows of traces left out so far (on_bad_row: skip)");
    add_meta(o, "failed_calls", NULL, workload_failed_calls(run->workload),
             "Failed calls of BurstGPT traces left out so far");
    add_meta(o, "late_requests", NULL, workload_late_requests(run->workload),
             "Requests of traces at or after the horizon, which are not played");
    struct sessions_counts sessions = workload_sessions_all(run->workload);
    add_meta(o, "sessions_started", NULL, sessions.started,
             "Sessions that started so far, those under way at the start included");
    add_meta(o, "sessions_finished", NULL, sessions.finished,
             "Of them, those whose every turn was answered");
    add_meta(o, "sessions_given_up", NULL, sessions.given_up,
             "Those that a turn that was refused, unservable or cancelled ended");
    add_meta(o, "sessions_past_horizon", NULL, sessions.past_horizon,
             "Those whose next turn would have come at or after the horizon");
    add_meta(o, "sessions_cut", NULL, sessions.cut,
             "Those that waited for an answer when the run was cut (drain: false)");
    if (complete) {
        add_meta(o, "digest", digest, 0, "Fingerprint of everything that happened, in order");
    }
}

bool run_write(struct run *run, const char *path, bool force, struct errors *errors)
{
    struct output o;
    struct run_totals totals = run_totals(run);
    output_fill(&o, run, totals.digest, true);
    bool ok;
    if (run->stream != NULL) {
        ok = trace_stream_close(run->stream, &o.trace, errors);
        run->stream = NULL;
        if (!ok && trace_write(&o.trace, path, force, errors)) { /* much smaller: it may fit */
            errors_add(errors, SEVERITY_WARNING, NULL, "%s holds all but the rows of `requests`",
                       path);
        }
    } else {
        ok = trace_write(&o.trace, path, force, errors);
    }
    names_free(&o);
    return ok;
}

bool run_output_partial(struct run *run, const char *path, struct errors *errors)
{
    struct output o;
    metrics_refresh(run->metrics);
    output_fill(&o, run, NULL, false);
    bool ok = trace_partial_write(&o.trace, path, errors);
    names_free(&o);
    return ok;
}

struct trace_stream *run_output_stream(struct run *run, const char *path, bool force,
                                       struct errors *errors)
{
    const struct trace_table *table = &run_tables[RUN_TABLE_REQUESTS];
    struct trace_stream_config config = {.group = table->group,
                                         .doc = table->doc,
                                         .dimension = table->dimension,
                                         .columns = table->columns,
                                         .row_size = table->row_size,
                                         .start_unix_s = run->config.start_unix_s};
    return trace_stream_open(path, force, &config, errors);
}
