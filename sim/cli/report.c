#include "sim/cli/report.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/cli/text.h"

/* A longer table helps nobody on a terminal. */
enum { HOUR_ROWS_MAX = 200, NEEDS_MAX = 48, LABEL_COLUMNS = 14 };

/* ---- the table by hour ---- */

enum hour_column {
    HOUR_LABEL,
    HOUR_ARRIVED,
    HOUR_TTFT_P50,
    HOUR_TTFT_P99,
    HOUR_TPOT_P50,
    HOUR_TPOT_P99,
    HOUR_IN_FLIGHT,
    HOUR_WAITING,
    HOUR_KV,
    HOUR_HELD,
    HOUR_READY,
    HOUR_UTILIZATION,
    HOUR_GPU_HOURS,
    HOUR_USD,
    HOUR_USD_MTOK,
    HOUR_COLUMNS
};

static const char *const hour_heads[2][HOUR_COLUMNS] = {
    {"", "requests", "TTFT", "TTFT", "TPOT", "TPOT", "in", "waiting", "KV", "GPUs", "GPUs", "util",
     "GPU", "cost", "$ per"},
    {"UTC", "in", "p50 s", "p99 s", "p50 ms", "p99 ms", "flight", "", "%", "held", "ready", "%",
     "hours", "$", "Mtok"},
};

/* "20:00", with the date where a day begins, and seconds where the grain needs them. */
static void label_fill(struct text *cell, const struct run *run, int64_t start_ps, bool with_day)
{
    time_t seconds = (time_t)(run_start(run) + start_ps / PS_PER_SECOND);
    bool minutes = run_start(run) % 60 == 0 &&
                   run_config(run)->output.trace_interval_ps % (60 * PS_PER_SECOND) == 0;
    struct tm utc;
    const char *format =
        with_day ? (minutes ? "%m-%d %H:%M" : "%m-%d %H:%M:%S") : (minutes ? "%H:%M" : "%H:%M:%S");
    if (gmtime_r(&seconds, &utc))
        strftime(cell->s, sizeof cell->s, format, &utc);
}

/* p99 is marked where fewer than 100 values stand behind it. */
static void p99_fill(struct text *cell, struct text value, uint64_t count, bool *marked)
{
    *cell = value;
    if (count > 0 && !metrics_quantile_defended(count, 990)) {
        memmove(cell->s + 1, cell->s, sizeof cell->s - 1);
        cell->s[0] = '*';
        cell->s[sizeof cell->s - 1] = '\0';
        *marked = true;
    }
}

/* One for all rows of a column. */
struct decimals {
    int hours, usd;
};

static void hour_fill(struct text *row, const struct metrics_hour *h, struct decimals decimals,
                      bool *marked)
{
    row[HOUR_ARRIVED] = text_count(h->requests.arrived);
    row[HOUR_TTFT_P50] = text_seconds(h->ttft.p50_ps);
    p99_fill(&row[HOUR_TTFT_P99], text_seconds(h->ttft.p99_ps), h->ttft.count, marked);
    row[HOUR_TPOT_P50] = text_millis(h->tpot.p50_ps);
    p99_fill(&row[HOUR_TPOT_P99], text_millis(h->tpot.p99_ps), h->tpot.count, marked);
    row[HOUR_IN_FLIGHT] = text_real(h->in_flight_mean, 1);
    row[HOUR_WAITING] = text_real(h->waiting_mean, 1);
    row[HOUR_KV] = text_percent(h->kv_occupancy_mean, 1);
    row[HOUR_HELD] = text_real(h->gpus_held_mean, 1);
    row[HOUR_READY] = text_real(h->gpus_ready_mean, 1);
    row[HOUR_UTILIZATION] = text_percent(h->utilization, 1);
    row[HOUR_GPU_HOURS] = text_real(h->gpu_hours.billed, decimals.hours);
    row[HOUR_USD] = text_real(h->usd.total, decimals.usd);
    row[HOUR_USD_MTOK] = text_real(h->usd.per_mtok_total, 3);
}

/* The whole run in the shape of a row. */
static struct metrics_hour whole_run(const struct run *run)
{
    const struct metrics_summary *s = metrics_summaries(run_metrics(run));
    double hours = time_seconds(run_horizon(run) - run_config(run)->warmup_ps) / 3600;
    return (struct metrics_hour){.requests = s->requests,
                                 .ttft = s->ttft,
                                 .tpot = s->tpot,
                                 .in_flight_mean = s->in_flight_mean,
                                 .waiting_mean = NAN,
                                 .kv_occupancy_mean = NAN,
                                 .gpus_held_mean = s->gpu_hours.held / hours,
                                 .gpus_ready_mean = s->gpu_hours.ready / hours,
                                 .utilization = s->utilization,
                                 .gpu_hours = s->gpu_hours,
                                 .usd = s->usd};
}

static void title_print(const struct run *run, FILE *out)
{
    const struct run_config *c = run_config(run);
    fprintf(out, "%s%s%s\n", c->name, c->description[0] ? ": " : "", c->description);
    fprintf(out, "from %s for %s, seed %lld", text_stamp(run_start(run)).s,
            text_duration(run_horizon(run)).s, (long long)c->seed);
    if (c->replication != 0)
        fprintf(out, ", replication %lld", (long long)c->replication);
    if (c->warmup_ps > 0)
        fprintf(out, ", the first %s not counted", text_duration(c->warmup_ps).s);
    fputs("\n\n", out);
}

static void hours_print(const struct run *run, FILE *out)
{
    const struct metrics *m = run_metrics(run);
    const struct metrics_hour *hours = metrics_hours_all(m);
    size_t count = metrics_hour_count(m);
    bool marked = false, days = run_horizon(run) > 24 * PS_PER_HOUR;
    struct metrics_hour whole = whole_run(run);
    struct decimals decimals = {.hours = whole.gpu_hours.billed < 100 ? 2 : 1,
                                .usd = whole.usd.total < 1000 ? 2 : 0};
    struct text_table table;
    text_table_init(&table, HOUR_COLUMNS, 2, 1);
    for (size_t r = 0; r < 2; r++) {
        struct text *row = text_table_row(&table, false);
        for (size_t c = 0; c < HOUR_COLUMNS; c++)
            snprintf(row[c].s, sizeof row[c].s, "%s", hour_heads[r][c]);
    }
    for (size_t k = 0; k < count && count <= HOUR_ROWS_MAX; k++) {
        struct text *row = text_table_row(&table, k == 0 || hours[k].is_drain == 1);
        if (hours[k].is_drain == 1)
            snprintf(row->s, sizeof row->s, "drain");
        else
            label_fill(row, run, hours[k].start_ps, days);
        hour_fill(row, &hours[k], decimals, &marked);
    }
    struct text *row = text_table_row(&table, true);
    snprintf(row->s, sizeof row->s, "all");
    hour_fill(row, &whole, decimals, &marked);
    text_table_print(&table, out);
    text_table_free(&table);
    if (count > HOUR_ROWS_MAX)
        fprintf(out,
                "%s intervals are too many for a table here: they are in the result file, and "
                "--hourly FILE.csv writes them\n",
                text_count(count - 1).s);
    if (marked)
        fputs("* fewer than 100 values: such a p99 cannot be defended\n", out);
    fputs("Means over the interval; TTFT is filed under the first token, TPOT under completion; "
          "drain is not billed.\n",
          out);
}

/* ---- the summary ---- */

static void name_print(FILE *out, const char *name)
{
    fputs("  ", out);
    text_left(out, LABEL_COLUMNS, name);
}

static void requests_print(const struct metrics_summary *s, FILE *out)
{
    const struct metrics_requests *r = &s->requests;
    name_print(out, "requests");
    fprintf(out,
            "%s arrived = %s completed + %s refused + %s unservable + %s cancelled + %s in flight",
            text_count(r->arrived).s, text_count(r->completed).s, text_count(r->refused).s,
            text_count(r->unservable).s, text_count(r->cancelled).s, text_count(r->in_flight).s);
    if (r->zero_output > 0)
        fprintf(out, "; %s of them without any output", text_count(r->zero_output).s);
    fputc('\n', out);
    name_print(out, "tokens");
    fprintf(out, "%s prompt (%s cached, %s computed), %s output, %s computed again\n",
            text_count(s->tokens.prompt).s, text_count(s->tokens.cached).s,
            text_count(s->tokens.computed).s, text_count(s->tokens.output).s,
            text_count(s->tokens.recomputed).s);
}

static void latency_row(struct text_table *table, const char *name, const char *unit,
                        const struct metrics_latency *l, bool *marked)
{
    bool ms = strcmp(unit, "ms") == 0;
    struct text (*text)(int64_t) = ms ? text_millis : text_seconds;
    struct text *row = text_table_row(table, false);
    snprintf(row[0].s, sizeof row[0].s, "  %s", name);
    snprintf(row[1].s, sizeof row[1].s, "%s", unit);
    row[2] = text(l->mean_ps);
    row[3] = text(l->p50_ps);
    row[4] = text(l->p90_ps);
    row[5] = text(l->p95_ps);
    p99_fill(&row[6], text(l->p99_ps), l->count, marked);
    row[7] = text(l->max_ps);
    row[8] = text_count(l->count);
}

static void latencies_print(const struct metrics_summary *s, FILE *out)
{
    static const char *const heads[] = {"",    "",    "mean", "p50",    "p90",
                                        "p95", "p99", "max",  "samples"};
    bool marked = false;
    struct text_table table;
    text_table_init(&table, 9, 1, 2);
    struct text *head = text_table_row(&table, false);
    for (size_t i = 0; i < 9; i++)
        snprintf(head[i].s, sizeof head[i].s, "%s", heads[i]);
    latency_row(&table, "time to first token (TTFT)", "s", &s->ttft, &marked);
    latency_row(&table, "time per output token (TPOT)", "ms", &s->tpot, &marked);
    latency_row(&table, "between two tokens (ITL)", "ms", &s->itl, &marked);
    latency_row(&table, "arrival to last token (E2E)", "s", &s->e2e, &marked);
    latency_row(&table, "arrival to first step", "s", &s->queue, &marked);
    text_table_print(&table, out);
    text_table_free(&table);
}

static void limit_print(FILE *out, const char *name, int64_t limit_ps, bool *first)
{
    if (limit_ps == TIME_NONE)
        return;
    fprintf(out, "%s%s ≤ %s", *first ? "" : ", ", name, text_duration(limit_ps).s);
    *first = false;
}

static void slo_print(const struct run *run, FILE *out)
{
    const struct metrics_class_summary *classes = metrics_class_summaries(run_metrics(run));
    const struct metrics_summary *whole = metrics_summaries(run_metrics(run));
    for (size_t c = 0; c < run_config(run)->workload.count; c++) {
        const struct metrics_class_summary *class = &classes[c];
        if (class->slo_ttft_ps == TIME_NONE && class->slo_tpot_ps == TIME_NONE &&
            class->slo_e2e_ps == TIME_NONE)
            continue;
        bool first = true;
        name_print(out, "SLO");
        fprintf(out, "%s: ", class->name);
        limit_print(out, "TTFT", class->slo_ttft_ps, &first);
        limit_print(out, "TPOT", class->slo_tpot_ps, &first);
        limit_print(out, "E2E", class->slo_e2e_ps, &first);
        fprintf(out, " held for %s %% of arrivals", text_share(class->slo.attainment, 2).s);
        if (class->slo.undecided > 0)
            fprintf(out, " (%s %% if all %s undecided ones do)",
                    text_share(class->slo.attainment_upper, 2).s,
                    text_count(class->slo.undecided).s);
        if (class->slo_met >= 0)
            fprintf(out, ", %s %% wanted: %s", text_plain(100 * class->slo_attainment).s,
                    class->slo_met == 1 ? "met" : "MISSED");
        fputc('\n', out);
    }
    if (run_config(run)->workload.count > 1 && whole->slo_met >= 0) {
        name_print(out, "SLO");
        fprintf(out, "all classes: %s\n", whole->slo_met == 1 ? "met" : "MISSED");
    }
}

static void gpu_hours_print(const struct metrics_summary *s, FILE *out)
{
    const struct metrics_gpu_hours *g = &s->gpu_hours;
    int decimals = g->held < 100 ? 2 : 1;
    name_print(out, "GPU-hours");
    fprintf(out, "%s billed; %s held = %s starting + %s ready (%s of it idle) + %s draining\n",
            text_real(g->billed, decimals).s, text_real(g->held, decimals).s,
            text_real(g->starting, decimals).s, text_real(g->ready, decimals).s,
            text_real(g->idle, decimals).s, text_real(g->draining, decimals).s);
    name_print(out, "utilisation");
    fprintf(out,
            "%s %% (rate: work at full rate, else busy time); %s %% of ready time a step was "
            "running\n",
            text_percent(s->utilization, 1).s, text_percent(s->busy_share, 1).s);
    name_print(out, "KV");
    fprintf(out, "at most %s blocks in use at one replica; %s preemptions\n",
            s->kv_peak_blocks == COLUMN_INT_NONE ? TEXT_UNDEFINED
                                                 : text_count((uint64_t)s->kv_peak_blocks).s,
            text_count(s->requests.preemptions).s);
}

static void cost_print(const struct metrics_summary *s, FILE *out)
{
    name_print(out, "cost");
    if (isnan(s->usd.total)) {
        fputs("undefined: no price is stated\n", out);
        return;
    }
    fprintf(out, "$%s", text_real(s->usd.total, 2).s);
    if (s->usd.low < s->usd.high)
        fprintf(out, " ($%s to $%s)", text_real(s->usd.low, 2).s, text_real(s->usd.high, 2).s);
    fprintf(out, "; per million tokens $%s: input $%s, output $%s\n",
            text_short(s->usd.per_mtok_total).s, text_short(s->usd.per_mtok_input).s,
            text_short(s->usd.per_mtok_output).s);
    const struct metrics_cost_split *split = &s->split;
    int decimals = s->usd.total < 100 ? 2 : 0;
    name_print(out, "of which");
    fprintf(out, "$%s work at full rate, $%s headroom, $%s cold starts, $%s draining",
            text_real(split->work, decimals).s, text_real(split->headroom, decimals).s,
            text_real(split->cold_start, decimals).s, text_real(split->drain, decimals).s);
    if (split->rounding > 0)
        fprintf(out, ", $%s rounding", text_real(split->rounding, decimals).s);
    fputc('\n', out);
    if (split->refused > 0) {
        name_print(out, "turned away");
        fprintf(out, "$%s of work, at the mean of what was admitted\n",
                text_real(split->refused, 2).s);
    }
}

static void pools_print(const struct run *run, FILE *out)
{
    const struct metrics_summary *s = metrics_summaries(run_metrics(run));
    size_t pools = run_config(run)->fleet.pools.count;
    for (size_t p = 0; pools > 1 && p < pools; p++) {
        const struct metrics_summary *pool = &s[p + 1];
        name_print(out, p == 0 ? "pools" : "");
        fprintf(out, "%s: %s completed, %s GPU-hours billed, %s %% utilised, $%s\n", pool->pool,
                text_count(pool->requests.completed).s,
                text_real(pool->gpu_hours.billed, s->gpu_hours.held < 100 ? 2 : 1).s,
                text_percent(pool->utilization, 1).s, text_real(pool->usd.total, 2).s);
    }
}

static void classes_print(const struct run *run, FILE *out)
{
    const struct metrics_class_summary *classes = metrics_class_summaries(run_metrics(run));
    size_t count = run_config(run)->workload.count;
    for (size_t c = 0; count > 1 && c < count; c++) {
        const struct metrics_class_summary *class = &classes[c];
        name_print(out, c == 0 ? "classes" : "");
        fprintf(out, "%s: %s arrived, %s completed; TTFT p50 %s s, p99 %s s; TPOT p99 %s ms\n",
                class->name, text_count(class->requests.arrived).s,
                text_count(class->requests.completed).s, text_seconds(class->ttft.p50_ps).s,
                text_seconds(class->ttft.p99_ps).s, text_millis(class->tpot.p99_ps).s);
    }
}

static void heading_print(FILE *out, const char *heading)
{
    bool styled = text_styled(out);
    fprintf(out, "\n%s%s%s\n", styled ? "\033[1m" : "", heading, styled ? "\033[0m" : "");
}

static void summary_print(const struct run *run, FILE *out)
{
    const struct metrics_summary *s = metrics_summaries(run_metrics(run));
    uint64_t skipped = workload_skipped_rows(run_workload(run));
    heading_print(out, "Summary");
    requests_print(s, out);
    if (skipped > 0) {
        name_print(out, "trace");
        fprintf(out, "%s bad rows were left out (on_bad_row: skip)\n", text_count(skipped).s);
    }
    uint64_t failed = workload_failed_calls(run_workload(run));
    if (failed > 0) {
        name_print(out, "trace");
        fprintf(out, "%s failed calls were left out; BurstGPT's clock is local time\n",
                text_count(failed).s);
    }
    latencies_print(s, out);
    classes_print(run, out);
    slo_print(run, out);
    gpu_hours_print(s, out);
    cost_print(s, out);
    pools_print(run, out);
}

/* ---- references ---- */

static void reference_print(FILE *out, const char *name, double hours, double usd, const char *what)
{
    name_print(out, name);
    text_right(out, 8, text_real(hours, hours < 100 ? 2 : 0).s);
    fputs(" GPU-hours", out);
    if (!isnan(usd))
        fprintf(out, ", $%s", text_real(usd, usd < 100 ? 2 : 0).s);
    fprintf(out, ": %s\n", what);
}

/* The need on each hour, or its range where there are too many. */
static void needs_print(const struct run *run, FILE *out)
{
    const struct metrics *m = run_metrics(run);
    const struct metrics_hour *rows = metrics_hours_all(m);
    size_t count = metrics_interval_count(m), per_hour = 0;
    double lowest = INFINITY, highest = -INFINITY;
    for (size_t k = 0; k < count; k++) {
        lowest = fmin(lowest, rows[k].need_gpus);
        highest = fmax(highest, rows[k].need_gpus);
        per_hour += rows[k].start_ps % PS_PER_HOUR == 0;
    }
    if (!isfinite(lowest))
        return;
    name_print(out, "need, GPUs");
    if (per_hour > NEEDS_MAX) {
        fprintf(out, "%s to %s over %s hours\n", text_real(lowest, 0).s, text_real(highest, 0).s,
                text_count(per_hour).s);
        return;
    }
    for (size_t k = 0, shown = 0; k < count; k++) {
        if (rows[k].start_ps % PS_PER_HOUR != 0)
            continue;
        if (shown > 0 && shown % 24 == 0) {
            fputc('\n', out);
            name_print(out, "");
        }
        fprintf(out, "%s%s", shown % 24 ? " " : "", text_real(rows[k].need_gpus, 0).s);
        shown++;
    }
    fputc('\n', out);
}

static void references_print(const struct run *run, FILE *out)
{
    const struct run_config *c = run_config(run);
    const struct metrics_summary *s = metrics_summaries(run_metrics(run));
    heading_print(out, "References");
    if (isnan(s->gpu_hours_floor)) {
        fputs("  undefined: a replica's capacity does not follow from this step_time; the pool key "
              "`capacity` states it\n",
              out);
        return;
    }
    double price = isnan(s->usd_ideal) ? NAN : s->usd_ideal / s->gpu_hours_ideal;
    reference_print(out, "floor", s->gpu_hours_floor, price * s->gpu_hours_floor,
                    "the work itself at full utilisation");
    reference_print(out, "ideal", s->gpu_hours_ideal, s->usd_ideal,
                    "on each hour the need at the target utilisation");
    reference_print(out, "billed", s->gpu_hours.billed, s->usd.total, "this run");
    reference_print(out, "peak", s->gpu_hours_peak, s->usd_peak, "the largest need all the time");
    for (size_t p = 0; p < c->fleet.pools.count; p++) {
        const struct pool_config *pool = config_pool(c, p);
        name_print(out, p == 0 ? "they rest on" : "");
        fprintf(out, "pool %s: %s requests/s per replica of %s GPU%s, target utilisation %s %%;\n",
                pool->name, text_short(run_capacity(run, p)).s,
                text_count(config_gpus_per_replica(pool)).s,
                config_gpus_per_replica(pool) == 1 ? "" : "s",
                text_plain(100 * pool->target_utilization).s);
    }
    name_print(out, "");
    fputs("need = ceil(expected arrivals/s on the hour / (capacity × target utilisation))\n", out);
    needs_print(run, out);
}

static bool audit_print(const struct run *run, FILE *out)
{
    size_t count, failed = 0;
    bool ok;
    const struct metrics_check *checks = run_audit(run, &count, &ok);
    for (size_t i = 0; i < count; i++)
        failed += !checks[i].ok;
    struct run_totals totals = run_totals(run);
    heading_print(out, "Run");
    name_print(out, "digest");
    fprintf(out, "%s\n", totals.digest);
    name_print(out, "speed");
    fprintf(out, "%s s, %s requests/s; %s events, %s spans, %s iterations; %s MB\n",
            text_short(totals.wall_s).s, text_real(totals.requests_per_s, 0).s,
            text_count(totals.events).s, text_count(totals.spans).s,
            text_count(totals.iterations).s, text_real((double)totals.peak_rss_bytes / 1e6, 0).s);
    fputc('\n', out);
    if (ok) {
        fprintf(out, "audit: ok (%zu checks)\n", count);
        return true;
    }
    fprintf(out, "audit: FAILED (%zu of %zu checks)\n", failed, count);
    for (size_t i = 0; i < count; i++) {
        if (!checks[i].ok)
            fprintf(out, "  %s: %s\n", checks[i].name, checks[i].detail);
    }
    return false;
}

bool report_print(const struct run *run, FILE *out)
{
    title_print(run, out);
    hours_print(run, out);
    summary_print(run, out);
    references_print(run, out);
    return audit_print(run, out);
}
