/* From sums and histograms to rows: the definitions of the output (docs/output.md). All sums are
 * integers until here; GPU time is weighted by the GPUs of a replica, then converted once. */
#include <math.h>
#include <stdlib.h>

#include "sim/base/check.h"
#include "sim/metrics/metrics_internal.h"

/* --- histograms to latency columns --------------------------------------------------------------
 */

const struct metrics_latency metrics_latency_none = {0,         TIME_NONE, TIME_NONE, TIME_NONE,
                                                     TIME_NONE, TIME_NONE, TIME_NONE};

struct metrics_latency metrics_latency_of(const struct histogram *h)
{
    if (h->count == 0) {
        return metrics_latency_none;
    }
    static const double shares[] = {0.5, 0.9, 0.95, 0.99};
    int64_t values[sizeof shares / sizeof shares[0]];
    histogram_quantiles(h, shares, sizeof shares / sizeof shares[0], values);
    return (struct metrics_latency){
        .count = h->count,
        .mean_ps = (int64_t)((h->sum + h->count / 2) / (int128)h->count),
        .p50_ps = values[0],
        .p90_ps = values[1],
        .p95_ps = values[2],
        .p99_ps = values[3],
        .max_ps = h->max,
    };
}

static void set_merge(struct metrics_set *into, const struct metrics_set *from)
{
    histogram_merge(&into->ttft, &from->ttft);
    histogram_merge(&into->tpot, &from->tpot);
    histogram_merge(&into->itl, &from->itl);
    histogram_merge(&into->e2e, &from->e2e);
    histogram_merge(&into->queue, &from->queue);
}

static void hour_latencies(struct metrics_hour *hour, const struct metrics_set *set)
{
    hour->ttft = metrics_latency_of(&set->ttft);
    hour->tpot = metrics_latency_of(&set->tpot);
    hour->itl = metrics_latency_of(&set->itl);
    hour->e2e = metrics_latency_of(&set->e2e);
    hour->queue = metrics_latency_of(&set->queue);
}

static void hour_latencies_copy(struct metrics_hour *into, const struct metrics_hour *from)
{
    into->ttft = from->ttft;
    into->tpot = from->tpot;
    into->itl = from->itl;
    into->e2e = from->e2e;
    into->queue = from->queue;
}

void metrics_rows_close(struct metrics *m, const struct metrics_segment *segment)
{
    if (segment->cells == m->outside) {
        return; /* before warmup: not counted */
    }
    size_t row = segment->row;
    for (size_t p = 0; p < m->pool_count; p++) {
        hour_latencies(&m->hours[row * m->pool_count + p], &segment->sets[p]);
        set_merge(&m->totals[p], &segment->sets[p]);
    }
    if (m->pool_count == 1) {
        hour_latencies_copy(&m->hours_all[row], &m->hours[row]);
        return;
    }
    metrics_set_clear(m->scratch);
    for (size_t p = 0; p < m->pool_count; p++) {
        set_merge(m->scratch, &segment->sets[p]);
    }
    hour_latencies(&m->hours_all[row], m->scratch);
}

/* --- sums ---------------------------------------------------------------------------------------
 */

void metrics_found_add(struct metrics_found *into, const struct metrics_found *from)
{
    into->lookup_tokens += from->lookup_tokens;
    into->hit_tokens += from->hit_tokens;
    into->lookup_blocks += from->lookup_blocks;
    into->hit_blocks += from->hit_blocks;
    into->rehit_tokens += from->rehit_tokens;
}

/* into += from, its replica time weighted by gpus. Maxima are of replicas: kept as the larger. */
static void cell_add(struct metrics_cell *into, const struct metrics_cell *from, uint32_t gpus)
{
    into->arrived += from->arrived;
    into->admitted += from->admitted;
    for (int o = 0; o < OUTCOME_COUNT; o++) {
        into->outcomes[o] += from->outcomes[o];
    }
    into->zero_output += from->zero_output;
    into->preemptions += from->preemptions;
    into->in_flight_end += from->in_flight_end;
    into->prompt += from->prompt;
    into->cached += from->cached;
    metrics_found_add(&into->found, &from->found);
    into->computed += from->computed;
    into->recomputed += from->recomputed;
    into->emitted += from->emitted;
    into->output += from->output;
    into->prefill_executed += from->prefill_executed;
    into->decode_executed += from->decode_executed;
    into->iterations += from->iterations;
    into->batch_sum += from->batch_sum;
    into->attained += from->attained;
    into->missed += from->missed;
    into->load_max_sum += from->load_max_sum;
    into->load_mean_sum += from->load_mean_sum;
    into->kv_sum += from->kv_sum;
    into->kv_total_sum += from->kv_total_sum;
    into->kv_max = from->kv_max > into->kv_max ? from->kv_max : into->kv_max;
    into->kv_unlimited |= from->kv_unlimited;
    into->busy_ps += from->busy_ps * gpus;
    into->decode_ps += from->decode_ps * gpus;
    into->work_ps += from->work_ps * gpus;
    for (int s = 0; s < REPLICA_STATE_COUNT; s++) {
        into->state_ps[s] += from->state_ps[s] * gpus;
    }
    into->in_flight_ps += from->in_flight_ps;
    into->surplus_ps += from->surplus_ps * gpus;
    into->held_max = from->held_max > into->held_max ? from->held_max : into->held_max;
    into->ready_max = from->ready_max > into->ready_max ? from->ready_max : into->ready_max;
}

/* Gauges: pools are sampled together, so a fleet's mean is the sum of its pools' means. */
static void gauges_add(struct metrics_cell *into, const struct metrics_cell *from)
{
    into->gauge_samples =
        from->gauge_samples > into->gauge_samples ? from->gauge_samples : into->gauge_samples;
    into->running_sum += from->running_sum;
    into->waiting_sum += from->waiting_sum;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double gpu_hours_of(int128 gpu_ps)
{
    return (double)gpu_ps / (double)PS_PER_HOUR;
}

static int128 ready_of(const struct metrics_cell *sum)
{
    return sum->state_ps[REPLICA_SERVING] + sum->state_ps[REPLICA_IDLE];
}
/* Replicas that may work: those that drain work off what they have. */
static int128 working_of(const struct metrics_cell *sum)
{
    return ready_of(sum) + sum->state_ps[REPLICA_DRAINING];
}

static int128 held_of(const struct metrics_cell *sum)
{
    int128 held = 0;
    for (int s = REPLICA_PROVISIONING; s < REPLICA_STATE_COUNT; s++) {
        held += sum->state_ps[s];
    }
    return held;
}

static struct metrics_requests requests_of(const struct metrics_cell *sum)
{
    return (struct metrics_requests){
        .arrived = sum->arrived,
        .admitted = sum->admitted,
        .completed = sum->outcomes[OUTCOME_COMPLETED],
        .refused = sum->outcomes[OUTCOME_REFUSED],
        .unservable = sum->outcomes[OUTCOME_UNSERVABLE],
        .cancelled = sum->outcomes[OUTCOME_CANCELLED],
        .in_flight = sum->in_flight_end,
        .zero_output = sum->zero_output,
        .preemptions = sum->preemptions,
    };
}

static struct metrics_tokens tokens_of(const struct metrics_cell *sum)
{
    return (struct metrics_tokens){
        .prompt = sum->prompt,
        .cached = sum->cached,
        .computed = sum->computed,
        .recomputed = sum->recomputed,
        .output = sum->output,
        .prefill_executed = sum->prefill_executed,
        .decode_executed = sum->decode_executed,
    };
}

struct metrics_prefix metrics_prefix_of(const struct metrics_found *found)
{
    return (struct metrics_prefix){
        .lookup_tokens = found->lookup_tokens,
        .hit_tokens = found->hit_tokens,
        .lookup_blocks = found->lookup_blocks,
        .hit_blocks = found->hit_blocks,
        .rehit_tokens = found->rehit_tokens,
        .token_hit_rate = ratio((double)found->hit_tokens, (double)found->lookup_tokens),
        .block_hit_rate = ratio((double)found->hit_blocks, (double)found->lookup_blocks),
    };
}

struct metrics_slo metrics_slo_of(uint64_t arrived, uint64_t attained, uint64_t missed,
                                  double seconds)
{
    /* More decided than arrived would be a fault of the caller; the audit names it. */
    uint64_t undecided = arrived > attained + missed ? arrived - attained - missed : 0;
    return (struct metrics_slo){
        .attained = attained,
        .missed = missed,
        .undecided = undecided,
        .attainment = ratio((double)attained, (double)arrived),
        .attainment_upper = ratio((double)(attained + undecided), (double)arrived),
        .goodput = ratio((double)attained, seconds),
    };
}

/* Of ready replicas, requests at the fullest over the mean; sums over the same samples. */
static double load_balance(const struct metrics_cell *sum)
{
    return ratio((double)sum->load_max_sum * 1e6, (double)sum->load_mean_sum);
}

static struct metrics_gpu_hours gpu_hours_from(const struct metrics_cell *sum, bool billed)
{
    struct metrics_gpu_hours h = {
        .provisioning = gpu_hours_of(sum->state_ps[REPLICA_PROVISIONING]),
        .loading = gpu_hours_of(sum->state_ps[REPLICA_LOADING]),
        .serving = gpu_hours_of(sum->state_ps[REPLICA_SERVING]),
        .idle = gpu_hours_of(sum->state_ps[REPLICA_IDLE]),
        .draining = gpu_hours_of(sum->state_ps[REPLICA_DRAINING]),
    };
    h.starting = gpu_hours_of(sum->state_ps[REPLICA_PROVISIONING] + sum->state_ps[REPLICA_LOADING]);
    h.ready = gpu_hours_of(ready_of(sum));
    h.held = gpu_hours_of(held_of(sum));
    h.billed = billed ? gpu_hours_of(held_of(sum) + sum->surplus_ps) : 0;
    return h;
}

/* --- money --------------------------------------------------------------------------------------
 */

/* The two parts of `total`: what the decodes alone would have taken of the busy time, and the rest;
 * idle and starting time in that ratio. Undefined when nothing ran. */
static void usd_split(struct metrics_usd *usd, const struct metrics_cell *sum)
{
    double share = ratio((double)sum->decode_ps, (double)sum->busy_ps);
    usd->output = usd->total * share;
    usd->input = usd->total - usd->output;
}

static struct metrics_usd usd_of_pool(const struct metrics_pool *pool, double billed_hours,
                                      const struct metrics_cell *sum)
{
    struct metrics_usd usd = {
        .total = billed_hours * pool->usd_per_gpu_hour,
        .low = billed_hours * pool->usd_low,
        .high = billed_hours * pool->usd_high,
    };
    usd_split(&usd, sum);
    return usd;
}

/* A fleet's bill: the sum of its pools'. A pool without a low or high price adds its own price to
 * that bound; the bound is undefined only when no pool states one. */
static struct metrics_usd usd_join(const struct metrics_usd *pools, size_t count, size_t stride)
{
    struct metrics_usd all = {0};
    bool low = false, high = false, split = false;
    for (size_t p = 0; p < count; p++) {
        const struct metrics_usd *usd =
            (const struct metrics_usd *)(const void *)((const char *)pools + p * stride);
        all.total += usd->total;
        all.low += isnan(usd->low) ? usd->total : usd->low;
        all.high += isnan(usd->high) ? usd->total : usd->high;
        low |= !isnan(usd->low);
        high |= !isnan(usd->high);
        if (usd->total > 0 && !isnan(usd->output)) {
            all.input += usd->input;
            all.output += usd->output;
            split = true;
        }
    }
    all.low = low ? all.low : NAN;
    all.high = high ? all.high : NAN;
    if (!split) {
        all.input = all.output = NAN;
    }
    return all;
}

static void usd_per_mtok(struct metrics_usd *usd, uint64_t prompt, uint64_t output)
{
    usd->per_mtok_total = ratio(usd->total * 1e6, (double)(prompt + output));
    usd->per_mtok_input = ratio(usd->input * 1e6, (double)prompt);
    usd->per_mtok_output = ratio(usd->output * 1e6, (double)output);
}

/* --- interval rows ------------------------------------------------------------------------------
 */

static void hour_gpus(struct metrics_hour *hour, const struct metrics_cell *sum)
{
    double covered = (double)hour->covered_ps;
    hour->gpus_provisioning_mean = ratio((double)sum->state_ps[REPLICA_PROVISIONING], covered);
    hour->gpus_loading_mean = ratio((double)sum->state_ps[REPLICA_LOADING], covered);
    hour->gpus_serving_mean = ratio((double)sum->state_ps[REPLICA_SERVING], covered);
    hour->gpus_idle_mean = ratio((double)sum->state_ps[REPLICA_IDLE], covered);
    hour->gpus_draining_mean = ratio((double)sum->state_ps[REPLICA_DRAINING], covered);
    hour->gpus_ready_mean = ratio((double)ready_of(sum), covered);
    hour->gpus_held_mean = ratio((double)held_of(sum), covered);
    hour->replicas_held_max = sum->held_max;
    hour->replicas_ready_max = sum->ready_max;
    hour->gpu_hours = gpu_hours_from(sum, !hour->is_drain);
    hour->utilization = ratio((double)sum->work_ps, (double)working_of(sum));
    hour->busy_share = ratio((double)sum->state_ps[REPLICA_SERVING], (double)ready_of(sum));
}

static void hour_gauges(struct metrics_hour *hour, const struct metrics_cell *sum)
{
    hour->gauge_samples = sum->gauge_samples;
    hour->running_mean = ratio((double)sum->running_sum, (double)sum->gauge_samples);
    hour->waiting_mean = ratio((double)sum->waiting_sum, (double)sum->gauge_samples);
    hour->kv_occupancy_mean =
        sum->kv_unlimited ? NAN : ratio((double)sum->kv_sum, (double)sum->kv_total_sum);
    hour->kv_blocks_max = sum->kv_max >= 0 ? sum->kv_max : COLUMN_INT_NONE;
}

/* Everything but latencies and dollars, from weighted sums. */
static void hour_fill(const struct metrics *m, struct metrics_hour *hour,
                      const struct metrics_cell *sum)
{
    int64_t from = hour->start_ps > m->warmup_ps ? hour->start_ps : m->warmup_ps;
    hour->covered_ps = hour->end_ps > from ? hour->end_ps - from : 0;
    hour->requests = requests_of(sum);
    hour->tokens = tokens_of(sum);
    hour->prefix = metrics_prefix_of(&sum->found);
    hour->slo =
        metrics_slo_of(sum->arrived, sum->attained, sum->missed, time_seconds(hour->covered_ps));
    hour->load_max_over_mean = load_balance(sum);
    hour->in_flight_mean = ratio((double)sum->in_flight_ps, (double)hour->covered_ps);
    hour->in_flight_per_ready_gpu = ratio((double)sum->in_flight_ps, (double)ready_of(sum));
    hour->iterations = sum->iterations;
    hour->batch_mean = ratio((double)sum->batch_sum, (double)sum->iterations);
    hour_gauges(hour, sum);
    hour_gpus(hour, sum);
}

static void row_refresh(struct metrics *m, size_t row)
{
    const struct metrics_cell *cells = m->cells + row * (m->pool_count + 1);
    struct metrics_hour *hours = &m->hours[row * m->pool_count], *all = &m->hours_all[row];
    struct metrics_cell total = {.kv_max = -1};
    all->expected_rate = all->need_gpus = 0;
    for (size_t p = 0; p < m->pool_count; p++) {
        struct metrics_cell sum = {.kv_max = -1};
        cell_add(&sum, &cells[p], m->pools[p].gpus_per_replica);
        gauges_add(&sum, &cells[p]);
        cell_add(&total, &sum, 1);
        gauges_add(&total, &cells[p]);
        hour_fill(m, &hours[p], &sum);
        hours[p].usd = usd_of_pool(&m->pools[p], hours[p].gpu_hours.billed, &sum);
        usd_per_mtok(&hours[p].usd, sum.prompt, sum.output);
        all->expected_rate += hours[p].expected_rate;
        all->need_gpus += hours[p].need_gpus;
    }
    cell_add(&total, &cells[m->pool_count], 1); /* requests without a pool, the fleet's maxima */
    hour_fill(m, all, &total);
    all->load_max_over_mean = m->pool_count == 1 ? all->load_max_over_mean : NAN;
    all->usd = usd_join(&hours[0].usd, m->pool_count, sizeof *hours);
    usd_per_mtok(&all->usd, total.prompt, total.output);
}

void metrics_refresh(struct metrics *m)
{
    for (size_t row = 0; row < m->rows_finished; row++) {
        row_refresh(m, row);
        metrics_classes_refresh(m, row);
    }
}

size_t metrics_hour_count(const struct metrics *m)
{
    return m->rows_finished;
}
const struct metrics_hour *metrics_hours(const struct metrics *m)
{
    return m->hours;
}
const struct metrics_hour *metrics_hours_all(const struct metrics *m)
{
    return m->hours_all;
}
const struct metrics_scale_event *metrics_scale_events(const struct metrics *m, size_t *count)
{
    *count = m->scale_count;
    return m->scale_events;
}

/* --- summaries ----------------------------------------------------------------------------------
 */

/* window: rows before the horizon; whole: the drain row too. Weighted by gpus. */
static void pool_sums(const struct metrics *m, size_t p, uint32_t gpus, struct metrics_cell *window,
                      struct metrics_cell *whole)
{
    size_t columns = m->pool_count + 1;
    *window = (struct metrics_cell){.kv_max = -1};
    for (size_t row = 0; row < m->intervals; row++) {
        cell_add(window, &m->cells[row * columns + p], gpus);
    }
    *whole = *window;
    cell_add(whole, &m->cells[m->intervals * columns + p], gpus);
}

static void summary_fill(const struct metrics *m, struct metrics_summary *summary,
                         const struct metrics_cell *window, const struct metrics_cell *whole,
                         const struct metrics_set *set)
{
    summary->requests = requests_of(whole);
    summary->requests.in_flight = whole->outcomes[OUTCOME_IN_FLIGHT];
    summary->tokens = tokens_of(whole);
    summary->tokens.output = whole->emitted; /* of counted requests, as the record says */
    summary->ttft = metrics_latency_of(&set->ttft);
    summary->tpot = metrics_latency_of(&set->tpot);
    summary->itl = metrics_latency_of(&set->itl);
    summary->e2e = metrics_latency_of(&set->e2e);
    summary->queue = metrics_latency_of(&set->queue);
    summary->prefix = metrics_prefix_of(&whole->found);
    double length = (double)(m->horizon_ps - m->warmup_ps);
    summary->slo = metrics_slo_of(whole->arrived, whole->attained, whole->missed,
                                  length / (double)PS_PER_SECOND);
    summary->slo_met = -1;
    summary->load_max_over_mean = load_balance(window);
    summary->in_flight_mean = ratio((double)window->in_flight_ps, length);
    summary->in_flight_per_ready_gpu =
        ratio((double)window->in_flight_ps, (double)ready_of(window));
    summary->replicas_held_max = window->held_max;
    summary->replicas_ready_max = window->ready_max;
    summary->gpu_hours = gpu_hours_from(window, true);
    summary->utilization = ratio((double)window->work_ps, (double)working_of(window));
    summary->busy_share =
        ratio((double)window->state_ps[REPLICA_SERVING], (double)ready_of(window));
    summary->iterations = whole->iterations;
    summary->batch_mean = ratio((double)whole->batch_sum, (double)whole->iterations);
}

/* Time that replicas may work in is work as far as it was used; the rest of it is headroom, or
 * drain. What is left of the bill is rounding. */
static struct metrics_cost_split cost_split(const struct metrics_summary *summary, double price)
{
    const struct metrics_gpu_hours *h = &summary->gpu_hours;
    double used = isnan(summary->utilization) ? 0 : summary->utilization;
    struct metrics_cost_split split = {
        .work = used * (h->ready + h->draining) * price,
        .headroom = (1 - used) * h->ready * price,
        .cold_start = h->starting * price,
        .drain = (1 - used) * h->draining * price,
        .rounding = (h->billed - h->held) * price,
    };
    double away = (double)(summary->requests.refused + summary->requests.unservable);
    split.refused = ratio(split.work * away, (double)summary->requests.admitted);
    return split;
}

static void split_add(struct metrics_cost_split *sum, const struct metrics_cost_split *split)
{
    sum->work += split->work;
    sum->headroom += split->headroom;
    sum->cold_start += split->cold_start;
    sum->drain += split->drain;
    sum->rounding += split->rounding;
    sum->refused += isnan(split->refused) && !isnan(split->work) ? 0 : split->refused;
}

/* The bill is the sum of the rows' dollars, so that a table's column adds up to its total. */
static void summary_usd(const struct metrics *m, size_t p, struct metrics_summary *summary,
                        const struct metrics_cell *window)
{
    struct metrics_usd usd = {0};
    for (size_t row = 0; row < m->intervals; row++) {
        const struct metrics_usd *hour = &m->hours[row * m->pool_count + p].usd;
        usd.total += hour->total;
        usd.low += hour->low;
        usd.high += hour->high;
    }
    usd_split(&usd, window);
    usd_per_mtok(&usd, summary->tokens.prompt, summary->tokens.output);
    summary->usd = usd;
    summary->gpu_hours_floor = m->live[p].floor_h;
    summary->gpu_hours_ideal = m->live[p].ideal_h;
    summary->gpu_hours_peak = m->live[p].peak_h;
    summary->usd_ideal = m->live[p].ideal_h * m->pools[p].usd_per_gpu_hour;
    summary->usd_peak = m->live[p].peak_h * m->pools[p].usd_per_gpu_hour;
    summary->split = cost_split(summary, m->pools[p].usd_per_gpu_hour);
    summary->forecast_error = m->live[p].forecast_error;
    summary->router_decisions = summary->router_stale = COLUMN_INT_NONE;
}

/* The fleet's peak of blocks is that of its fullest replica. */
static int64_t kv_peak_of(int64_t told, int64_t sampled)
{
    int64_t peak = told > sampled ? told : sampled;
    return peak >= 0 ? peak : COLUMN_INT_NONE;
}

void metrics_rows_summarise(struct metrics *m)
{
    struct metrics_summary *all = &m->summaries[0];
    struct metrics_cell all_window = {.kv_max = -1}, all_whole = {.kv_max = -1}, window, whole;
    int64_t peak = -1;
    for (size_t p = 0; p < m->pool_count; p++) {
        struct metrics_summary *summary = &m->summaries[1 + p];
        pool_sums(m, p, m->pools[p].gpus_per_replica, &window, &whole);
        summary->pool = m->pools[p].name;
        summary_fill(m, summary, &window, &whole, &m->totals[p]);
        summary_usd(m, p, summary, &window);
        summary->kv_peak_blocks = kv_peak_of(m->live[p].kv_peak, whole.kv_max);
        peak = m->live[p].kv_peak > peak ? m->live[p].kv_peak : peak;
        cell_add(&all_window, &window, 1);
        cell_add(&all_whole, &whole, 1);
        set_merge(&m->totals[m->pool_count], &m->totals[p]);
        all->gpu_hours_floor += summary->gpu_hours_floor;
        all->gpu_hours_ideal += summary->gpu_hours_ideal;
        all->gpu_hours_peak += summary->gpu_hours_peak;
        all->usd_ideal += summary->usd_ideal;
        all->usd_peak += summary->usd_peak;
        split_add(&all->split, &summary->split);
    }
    pool_sums(m, m->pool_count, 1, &window, &whole);
    cell_add(&all_window, &window, 1);
    cell_add(&all_whole, &whole, 1);
    all->pool = "all";
    all->router_decisions = (int64_t)m->router_decisions;
    all->router_stale = (int64_t)m->router_stale;
    all->forecast_error = m->pool_count == 1 ? m->summaries[1].forecast_error : NAN;
    summary_fill(m, all, &all_window, &all_whole, &m->totals[m->pool_count]);
    all->load_max_over_mean = m->pool_count == 1 ? all->load_max_over_mean : NAN;
    all->kv_peak_blocks = kv_peak_of(peak, all_whole.kv_max);
    all->usd = usd_join(&m->summaries[1].usd, m->pool_count, sizeof *m->summaries);
    usd_per_mtok(&all->usd, all->tokens.prompt, all->tokens.output);
    metrics_classes_summarise(m);
}

const struct metrics_summary *metrics_summaries(const struct metrics *m)
{
    check(m->finished);
    return m->summaries;
}
