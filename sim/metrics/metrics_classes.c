/* Rows of request classes: the whole run's, and by interval where there are several. One class is
 * the whole run, and has no counts of its own. */
#include <math.h>

#include "sim/base/check.h"
#include "sim/metrics/metrics_internal.h"

/* --- by interval --------------------------------------------------------------------------------
 */

void metrics_classes_refresh(struct metrics *m, size_t row)
{
    for (size_t c = 0; m->per_class && c < m->class_count; c++) {
        const struct metrics_class_cell *cell = &m->class_cells[row * m->class_count + c];
        struct metrics_class_hour *hour = &m->class_hours[row * m->class_count + c];
        int64_t from = hour->start_ps > m->warmup_ps ? hour->start_ps : m->warmup_ps;
        hour->covered_ps = hour->end_ps > from ? hour->end_ps - from : 0;
        hour->arrived = cell->arrived;
        hour->admitted = cell->admitted;
        hour->completed = cell->completed;
        hour->prompt_tokens = cell->prompt;
        hour->cached_tokens = cell->cached;
        hour->prefix = metrics_prefix_of(&cell->found);
        hour->slo = metrics_slo_of(cell->arrived, cell->attained, cell->missed,
                                   time_seconds(hour->covered_ps));
    }
}

const struct metrics_class_hour *metrics_class_hours(const struct metrics *m)
{
    return m->class_hours;
}

/* --- the whole run ------------------------------------------------------------------------------
 */

static struct metrics_requests requests_of(const struct metrics_class_live *live)
{
    return (struct metrics_requests){
        .arrived = live->arrived,
        .admitted = live->admitted,
        .completed = live->outcomes[OUTCOME_COMPLETED],
        .refused = live->outcomes[OUTCOME_REFUSED],
        .unservable = live->outcomes[OUTCOME_UNSERVABLE],
        .cancelled = live->outcomes[OUTCOME_CANCELLED],
        .in_flight = live->outcomes[OUTCOME_IN_FLIGHT],
        .zero_output = live->zero_output,
        .preemptions = live->preemptions,
    };
}

/* A class's share of what a pool did for all of them. */
static double share(uint64_t mine, uint64_t all)
{
    return all > 0 ? (double)mine / (double)all : 0;
}

/* Of every pool's dollars: those of its input by tokens prefilled, of its output by outputs. A pool
 * that ran nothing is nobody's. */
static double usd_of(const struct metrics *m, size_t c)
{
    double usd = 0;
    bool priced = false;
    for (size_t p = 0; p < m->pool_count; p++) {
        const struct metrics_usd *bill = &m->summaries[1 + p].usd;
        if (isnan(bill->input) || isnan(bill->output)) {
            continue; /* it ran nothing */
        }
        priced = true;
        if (!m->per_class) { /* whose work is not kept apart: it is all of one class */
            usd += bill->total;
            continue;
        }
        uint64_t prefill = 0, output = 0;
        for (size_t k = 0; k < m->class_count; k++) {
            const struct metrics_class_work *work = &m->class_work[k * (m->pool_count + 1) + p];
            prefill += work->prefill;
            output += work->output;
        }
        const struct metrics_class_work *mine = &m->class_work[c * (m->pool_count + 1) + p];
        usd += bill->input * share(mine->prefill, prefill) +
               bill->output * share(mine->output, output);
    }
    return priced ? usd : NAN;
}

/* Sums of the class's rows, and what it was answered. */
static void counts_fill(const struct metrics *m, size_t c, struct metrics_class_summary *row)
{
    const struct metrics_class_live *live = &m->class_live[c];
    struct metrics_found found = {0};
    row->requests = requests_of(live);
    row->tokens = (struct metrics_tokens){
        .computed = live->computed, .recomputed = live->recomputed, .output = live->emitted};
    for (size_t k = 0; k <= m->intervals; k++) {
        const struct metrics_class_cell *cell = &m->class_cells[k * m->class_count + c];
        row->tokens.prompt += cell->prompt;
        row->tokens.cached += cell->cached;
        metrics_found_add(&found, &cell->found);
    }
    row->prefix = metrics_prefix_of(&found);
    row->slo = metrics_slo_of(live->arrived, live->attained, live->missed,
                              time_seconds(m->horizon_ps - m->warmup_ps));
}

static void class_fill(struct metrics *m, size_t c)
{
    const struct metrics_class *config = &m->classes[c];
    const struct metrics_summary *all = &m->summaries[0];
    const struct metrics_set *set = m->per_class ? &m->class_sets[c] : &m->totals[m->pool_count];
    struct metrics_class_summary *row = &m->class_summaries[c];
    *row = (struct metrics_class_summary){
        .name = config->name,
        .ttft = metrics_latency_of(&set->ttft),
        .tpot = metrics_latency_of(&set->tpot),
        .e2e = metrics_latency_of(&set->e2e),
        .slo_ttft_ps = config->slo_ttft_ps,
        .slo_tpot_ps = config->slo_tpot_ps,
        .slo_e2e_ps = config->slo_e2e_ps,
        .slo_attainment = config->slo_attainment,
        .slo_met = -1,
    };
    if (m->per_class) {
        counts_fill(m, c, row);
    } else {
        row->requests = all->requests;
        row->tokens = all->tokens;
        row->tokens.prefill_executed = row->tokens.decode_executed = 0;
        row->prefix = all->prefix;
        row->slo = all->slo;
    }
    row->usd = usd_of(m, c);
    double tokens = (double)(row->tokens.prompt + row->tokens.output);
    row->usd_per_mtok_total = tokens > 0 ? row->usd * 1e6 / tokens : NAN;
    if (!isnan(config->slo_attainment) && row->requests.arrived > 0) {
        row->slo_met = row->slo.attainment >= config->slo_attainment;
    }
}

/* All classes with a stated share must meet it. */
static int32_t fleet_slo_met(const struct metrics *m)
{
    int32_t met = -1;
    for (size_t c = 0; c < m->class_count; c++) {
        int32_t one = m->class_summaries[c].slo_met;
        if (one >= 0) {
            met = met < 0 ? one : (met && one);
        }
    }
    return met;
}

void metrics_classes_summarise(struct metrics *m)
{
    for (size_t c = 0; c < m->class_count; c++) {
        class_fill(m, c);
    }
    m->summaries[0].slo_met = fleet_slo_met(m);
}

const struct metrics_class_summary *metrics_class_summaries(const struct metrics *m)
{
    check(m->finished);
    return m->class_summaries;
}
