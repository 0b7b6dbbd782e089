#include "sim/cli/headline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/transient.h"

static double seconds_of(int64_t ps)
{
    return ps == TIME_NONE ? NAN : time_seconds(ps);
}

static double gpu_hours(const struct metrics_summary *s)
{
    return s->gpu_hours.billed;
}
static double usd(const struct metrics_summary *s)
{
    return s->usd.total;
}
static double usd_per_mtok(const struct metrics_summary *s)
{
    return s->usd.per_mtok_total;
}
static double ttft_mean(const struct metrics_summary *s)
{
    return seconds_of(s->ttft.mean_ps);
}
static double ttft_p50(const struct metrics_summary *s)
{
    return seconds_of(s->ttft.p50_ps);
}
static double ttft_p99(const struct metrics_summary *s)
{
    return seconds_of(s->ttft.p99_ps);
}
static double tpot_p99(const struct metrics_summary *s)
{
    return seconds_of(s->tpot.p99_ps);
}
static double e2e_p99(const struct metrics_summary *s)
{
    return seconds_of(s->e2e.p99_ps);
}
static double attainment(const struct metrics_summary *s)
{
    return s->slo.attainment;
}
static double utilization(const struct metrics_summary *s)
{
    return s->utilization;
}

const struct headline headline_table[HEADLINE_COUNT] = {
    {"gpu_hours", "GPU-hours billed", "", gpu_hours, 1, false},
    {"usd", "cost", "$", usd, 1, false},
    {"usd_per_mtok", "cost per million tokens", "$", usd_per_mtok, 1, false},
    {"ttft_mean_s", "TTFT mean", "s", ttft_mean, 1, false},
    {"ttft_p50_s", "TTFT p50", "s", ttft_p50, 1, true},
    {"ttft_p99_s", "TTFT p99", "s", ttft_p99, 1, true},
    {"tpot_p99_s", "TPOT p99", "ms", tpot_p99, 1e3, true},
    {"e2e_p99_s", "E2E p99", "s", e2e_p99, 1, true},
    {"attainment", "SLO attained", "%", attainment, 100, false},
    {"utilization", "utilisation", "%", utilization, 100, false},
};

struct interval_range headline_range(const struct headline *headline, const double *values,
                                     size_t count)
{
    if (headline->quantile)
        return interval_median(values, count);
    struct interval i = interval_of(values, count);
    return (struct interval_range){i.mean, i.mean - i.half, i.mean + i.half};
}

struct text headline_number(const struct headline *headline, double value)
{
    return text_short(value * headline->scale);
}

struct text headline_text(const struct headline *headline, const struct interval_range *range)
{
    struct text text = headline_number(headline, range->mid);
    if (isnan(range->low))
        return text;
    if (headline->quantile)
        snprintf(text.s, sizeof text.s, "%.10s (%.10s to %.10s)",
                 headline_number(headline, range->mid).s, headline_number(headline, range->low).s,
                 headline_number(headline, range->high).s);
    else
        snprintf(text.s, sizeof text.s, "%.20s ± %.20s", headline_number(headline, range->mid).s,
                 headline_number(headline, (range->high - range->low) / 2).s);
    return text;
}

void headline_json(struct json *json, const struct headline *headline,
                   const struct interval_range *range)
{
    json_out_object(json, headline->key);
    json_out_real(json, "mid", range->mid);
    json_out_real(json, "low", range->low);
    json_out_real(json, "high", range->high);
    json_out_text(json, "method", headline->quantile ? "order" : "student");
    json_out_object_end(json);
}

/* ---- inside one run ----------------------------------------------------------------------------
 */

/* The value of rank k, from 1, among a quantity's: the middle of its bin. */
static double value_at(const struct run_outcome *o, uint32_t quantity, uint64_t rank)
{
    uint64_t below = 0;
    for (size_t i = 0; i < o->bin_count; i++) {
        const struct metrics_bin *bin = &o->bins[i];
        if (bin->quantity != quantity)
            continue;
        below += bin->count;
        if (below >= rank)
            return (time_seconds(bin->low_ps) + time_seconds(bin->high_ps)) / 2;
    }
    return NAN;
}

/* Which quantity's bins and which quantile a headline is of. */
struct quantile_of {
    double (*value)(const struct metrics_summary *whole);
    uint32_t quantity;
    double q;
};
static const struct quantile_of quantiles_of[] = {
    {ttft_p50, 0, 0.5}, {ttft_p99, 0, 0.99}, {tpot_p99, 1, 0.99}, {e2e_p99, 3, 0.99}};

static struct interval_range quantile_range(const struct run_outcome *o,
                                            const struct headline *headline)
{
    double value = headline->value(o->summaries);
    struct interval_range range = {value, NAN, NAN};
    for (size_t i = 0; i < sizeof quantiles_of / sizeof *quantiles_of; i++) {
        const struct quantile_of *of = &quantiles_of[i];
        uint64_t low, high, count = 0;
        if (of->value != headline->value)
            continue;
        for (size_t b = 0; b < o->bin_count; b++)
            count += o->bins[b].quantity == of->quantity ? o->bins[b].count : 0;
        if (!interval_ranks(count, of->q, &low, &high))
            continue;
        range.low = fmin(value_at(o, of->quantity, low), value);
        range.high = fmax(value_at(o, of->quantity, high), value);
    }
    return range;
}

const struct interval_range *headline_within_find(const struct headline_within *within,
                                                  const struct headline *headline)
{
    return headline->quantile ? &within->quantiles[headline - headline_table] : NULL;
}

struct headline_within headline_within_run(const struct run_outcome *o)
{
    struct headline_within within = {.in_flight = {NAN, NAN}, .ttft_mean = {NAN, NAN}};
    for (size_t i = 0; i < HEADLINE_COUNT; i++)
        within.quantiles[i] = quantile_range(o, &headline_table[i]);
    struct transient transient = transient_find(o);
    if (!transient.constant) {
        within.unless = "the load is not constant";
    } else if (transient.state == TRANSIENT_TOO_SHORT) {
        within.unless = "there are too few intervals (output.trace_interval sets them)";
    } else if (transient.state == TRANSIENT_UNSETTLED) {
        within.unless = "the run does not settle";
    } else if (transient.state == TRANSIENT_FOUND) {
        within.unless = "the start is not left out (warmup)";
    } else {
        double *series = memory_alloc((o->hour_count + 1) * sizeof *series);
        size_t count = transient_series(o, TRANSIENT_IN_FLIGHT, series);
        within.in_flight = interval_batches(series, count);
        count = transient_series(o, TRANSIENT_TTFT, series);
        within.ttft_mean = interval_batches(series, count);
        free(series);
        if (isnan(within.in_flight.half) && isnan(within.ttft_mean.half))
            within.unless = "its parts are still correlated: it is too short";
    }
    return within;
}
