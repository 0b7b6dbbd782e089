#include "sim/cli/report.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/cli/headline.h"
#include "sim/cli/text.h"
#include "sim/cli/transient.h"

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
static void label_fill(struct text *cell, const struct run_outcome *o, int64_t start_ps,
                       bool with_day)
{
    time_t seconds = (time_t)(o->start_unix_s + start_ps / PS_PER_SECOND);
    bool minutes = o->start_unix_s % 60 == 0 && o->interval_ps % (60 * PS_PER_SECOND) == 0;
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
static struct metrics_hour whole_run(const struct run_outcome *o)
{
    const struct metrics_summary *s = o->summaries;
    double hours = time_seconds(o->horizon_ps - o->warmup_ps) / 3600;
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

/* For the decimals of a run that has no whole yet. */
static struct metrics_hour largest_row(const struct run_outcome *o)
{
    struct metrics_hour largest = {0};
    for (size_t k = 0; k < o->hour_count; k++) {
        if (o->hours_all[k].gpu_hours.billed >= largest.gpu_hours.billed)
            largest = o->hours_all[k];
    }
    return largest;
}

static void title_print(const struct run_outcome *o, FILE *out)
{
    fprintf(out, "%s%s%s\n", o->name, o->description[0] ? ": " : "", o->description);
    fprintf(out, "from %s for %s, seed %lld", text_stamp(o->start_unix_s).s,
            text_duration(o->horizon_ps).s, (long long)o->seed);
    if (o->replication != 0)
        fprintf(out, ", replication %lld", (long long)o->replication);
    if (o->warmup_ps > 0)
        fprintf(out, ", the first %s not counted", text_duration(o->warmup_ps).s);
    fputs("\n\n", out);
}

static void hours_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_hour *hours = o->hours_all;
    size_t count = o->hour_count;
    bool marked = false, days = o->horizon_ps > 24 * PS_PER_HOUR;
    struct metrics_hour whole = o->complete ? whole_run(o) : largest_row(o);
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
            label_fill(row, o, hours[k].start_ps, days);
        hour_fill(row, &hours[k], decimals, &marked);
    }
    if (o->complete) {
        struct text *row = text_table_row(&table, true);
        snprintf(row->s, sizeof row->s, "all");
        hour_fill(row, &whole, decimals, &marked);
    }
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

static void slo_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_class_summary *classes = o->classes;
    const struct metrics_summary *whole = o->summaries;
    for (size_t c = 0; c < o->class_count; c++) {
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
    if (o->class_count > 1 && whole->slo_met >= 0) {
        name_print(out, "SLO");
        fprintf(out, "all classes: %s\n", whole->slo_met == 1 ? "met" : "MISSED");
    }
}

/* A transient is only looked for under constant load, and named only when there is one. */
static void start_print(const struct run_outcome *o, FILE *out)
{
    struct transient t = transient_find(o);
    const char *series = t.series == TRANSIENT_TTFT ? "mean TTFT" : "requests in flight";
    if (t.state == TRANSIENT_FOUND) {
        name_print(out, "start");
        fprintf(out, "until %s %s by interval look like a transient (MSER); ",
                text_duration(t.end_ps).s, series);
        fprintf(out, "`warmup: %s` leaves it out\n", text_duration(t.end_ps).s);
    } else if (t.state == TRANSIENT_UNSETTLED) {
        name_print(out, "start");
        fprintf(out,
                "%s by interval do not settle in this run (MSER): its means are those of a "
                "change\n",
                series);
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

/* Only where there is something to say. */
static void routing_print(const struct metrics_summary *s, FILE *out)
{
    const struct metrics_prefix *p = &s->prefix;
    if (p->lookup_tokens > 0) {
        name_print(out, "prefix cache");
        fprintf(out, "%s %% of prompt tokens found (%s of %s)",
                text_percent(p->token_hit_rate, 2).s, text_count(p->hit_tokens).s,
                text_count(p->lookup_tokens).s);
        if (p->rehit_tokens > 0)
            fprintf(out, "; %s more after preemptions", text_count(p->rehit_tokens).s);
        if (!isnan(s->load_max_over_mean))
            fprintf(out, "; the fullest ready replica had %s times the mean load",
                    text_real(s->load_max_over_mean, 2).s);
        fputc('\n', out);
    }
    if (s->router_decisions > 0) {
        name_print(out, "router");
        fprintf(out, "its loads were old: %s of %s decisions for a replica that had another\n",
                text_count((uint64_t)s->router_stale).s,
                text_count((uint64_t)s->router_decisions).s);
    }
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
    fprintf(out, "$%s work, $%s headroom, $%s cold starts, $%s draining",
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

static void pools_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_summary *s = o->summaries;
    size_t pools = o->pool_count;
    for (size_t p = 0; pools > 1 && p < pools; p++) {
        const struct metrics_summary *pool = &s[p + 1];
        name_print(out, p == 0 ? "pools" : "");
        fprintf(out, "%s: %s completed, %s GPU-hours billed, %s %% utilised, $%s\n", pool->pool,
                text_count(pool->requests.completed).s,
                text_real(pool->gpu_hours.billed, s->gpu_hours.held < 100 ? 2 : 1).s,
                text_percent(pool->utilization, 1).s, text_real(pool->usd.total, 2).s);
    }
}

static void classes_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_class_summary *classes = o->classes;
    size_t count = o->class_count;
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

static void sessions_print(const struct sessions_counts *s, FILE *out)
{
    if (s->started == 0)
        return;
    name_print(out, "sessions");
    fprintf(out, "%s started: %s finished + %s gave up + %s went on past the horizon",
            text_count(s->started).s, text_count(s->finished).s, text_count(s->given_up).s,
            text_count(s->past_horizon).s);
    if (s->cut > 0)
        fprintf(out, " + %s were cut", text_count(s->cut).s);
    fputc('\n', out);
}

static void summary_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_summary *s = o->summaries;
    heading_print(out, "Summary");
    requests_print(s, out);
    sessions_print(&o->sessions, out);
    if (o->late_requests > 0) {
        name_print(out, "trace");
        fprintf(out, "%s requests come at or after the horizon: not played\n",
                text_count(o->late_requests).s);
    }
    if (o->skipped_rows > 0) {
        name_print(out, "trace");
        fprintf(out, "%s bad rows were left out (on_bad_row: skip)\n",
                text_count(o->skipped_rows).s);
    }
    if (o->failed_calls > 0) {
        name_print(out, "trace");
        fprintf(out, "%s failed calls were left out; BurstGPT's clock is local time\n",
                text_count(o->failed_calls).s);
    }
    latencies_print(s, out);
    classes_print(o, out);
    slo_print(o, out);
    start_print(o, out);
    gpu_hours_print(s, out);
    routing_print(s, out);
    cost_print(s, out);
    pools_print(o, out);
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
static void needs_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_hour *rows = o->hours_all;
    size_t count = o->hour_count - 1, per_hour = 0; /* without the drain */
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

static void references_print(const struct run_outcome *o, FILE *out)
{
    const struct metrics_summary *s = o->summaries;
    heading_print(out, "References");
    if (isnan(s->gpu_hours_floor)) {
        fputs("  undefined: a replica's capacity does not follow from this step_time; the pool key "
              "`capacity` states it,\n  and a policy that plans, or initial_replicas left out, has "
              "it measured\n",
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
    for (size_t p = 0; p < o->pool_count; p++) {
        const struct run_outcome_pool *pool = &o->pools[p];
        name_print(out, p == 0 ? "they rest on" : "");
        fprintf(out, "pool %s: %s requests/s per replica of %s GPU%s, target utilisation %s %%;\n",
                pool->name, text_short(pool->capacity).s, text_count(pool->gpus_per_replica).s,
                pool->gpus_per_replica == 1 ? "" : "s",
                text_plain(100 * pool->target_utilization).s);
        if (pool->capacity_trials > 0) {
            name_print(out, "");
            fprintf(out,
                    "  measured: the rate at which one replica just meets the SLO, by %u "
                    "trial runs\n",
                    pool->capacity_trials);
        }
    }
    name_print(out, "");
    fputs("need = ceil(expected arrivals/s on the hour / (capacity × target utilisation))\n", out);
    needs_print(o, out);
}

static void made_print(const struct run_outcome *o, FILE *out)
{
    name_print(out, "made by");
    fprintf(out, "fleetsim %s", o->version);
    if (o->git[0])
        fprintf(out, " (%s)", o->git);
    fprintf(out, ", %s", o->compiler);
    if (o->flags[0])
        fprintf(out, ", %s", o->flags);
    fputc('\n', out);
}

static void speed_print(const struct run_totals *totals, FILE *out)
{
    name_print(out, "speed");
    fprintf(out, "%s s, %s requests/s; %s events, %s spans, %s iterations; %s MB\n",
            text_short(totals->wall_s).s, text_real(totals->requests_per_s, 0).s,
            text_count(totals->events).s, text_count(totals->spans).s,
            text_count(totals->iterations).s, text_real((double)totals->peak_rss_bytes / 1e6, 0).s);
    if (totals->measuring_s > 0) {
        name_print(out, "");
        fprintf(out, "and %s s before it to measure capacity\n", text_short(totals->measuring_s).s);
    }
}

static bool audit_print(const struct run_outcome *o, FILE *out)
{
    size_t failed = 0;
    for (size_t i = 0; i < o->check_count; i++)
        failed += !o->checks[i].ok;
    heading_print(out, "Run");
    name_print(out, "digest");
    fprintf(out, "%s\n", o->digest);
    if (o->totals)
        speed_print(o->totals, out);
    else
        made_print(o, out);
    fputc('\n', out);
    if (o->audit_ok) {
        fprintf(out, "audit: ok (%zu checks)\n", o->check_count);
        return true;
    }
    fprintf(out, "audit: FAILED (%zu of %zu checks)\n", failed, o->check_count);
    for (size_t i = 0; i < o->check_count; i++) {
        if (!o->checks[i].ok)
            fprintf(out, "  %s: %s\n", o->checks[i].name, o->checks[i].detail);
    }
    return false;
}

/* Of a run that was cut short: how far it came. */
static void partial_print(const struct run_outcome *o, FILE *out)
{
    int64_t until_ps = o->hour_count > 0 ? o->hours_all[o->hour_count - 1].end_ps : 0;
    fprintf(out, "NOT COMPLETE: the first %s of %s; there is no summary, and no audit.\n",
            text_duration(until_ps).s, text_duration(o->horizon_ps).s);
    made_print(o, out);
}

bool report_print(const struct run_outcome *o, FILE *out)
{
    title_print(o, out);
    hours_print(o, out);
    if (!o->complete) {
        partial_print(o, out);
        return true;
    }
    summary_print(o, out);
    references_print(o, out);
    return audit_print(o, out);
}

/* ---- intervals inside one run -------------------------------------------------------------------
 */

static void batches_print(FILE *out, const char *name, const struct interval *i)
{
    if (isnan(i->half))
        return;
    name_print(out, name);
    fprintf(out, "%s ± %s, by batch means\n", text_short(i->mean).s, text_short(i->half).s);
}

void report_within_print(const struct run_outcome *o, FILE *out)
{
    struct headline_within within = headline_within_run(o);
    bool any = false;
    heading_print(out, "Intervals (95 %) from inside this run");
    batches_print(out, "in flight", &within.in_flight);
    batches_print(out, "TTFT mean, s", &within.ttft_mean);
    if (within.unless) {
        name_print(out, "means");
        fprintf(out, "none: %s\n", within.unless);
    }
    for (size_t i = 0; i < HEADLINE_COUNT; i++) {
        const struct headline *h = &headline_table[i];
        const struct interval_range *range = headline_within_find(&within, h);
        if (!range || isnan(range->low))
            continue;
        char label[TEXT_BYTES];
        snprintf(label, sizeof label, "%s, %s", h->name, h->unit);
        name_print(out, label);
        fprintf(out, "%s\n", headline_text(h, range).s);
        any = true;
    }
    if (any)
        fputs("  Quantiles: by order statistics, as if requests were independent. Where a queue "
              "forms they are\n  not, and the truth is wider: replications tell (`show` of several "
              "files, `compare --replications`).\n",
              out);
}
