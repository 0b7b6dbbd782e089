/* The audit: conservation laws of a finished run, from books kept apart (events against final
 * records, integrals against launches). Every check states its numbers. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/check.h"
#include "sim/metrics/metrics_internal.h"

enum { DETAIL_MAX = 512, INT128_TEXT_MAX = 48 };

static void check_push(struct metrics *m, const char *name, bool ok, const char *detail)
{
    if (m->check_count == m->check_capacity) {
        m->check_capacity = m->check_capacity ? 2 * m->check_capacity : 16;
        m->checks = memory_grow(m->checks, m->check_capacity * sizeof *m->checks);
    }
    m->checks[m->check_count++] =
        (struct metrics_check){arena_copy(&m->arena, name), ok, arena_copy(&m->arena, detail)};
}

void metrics_audit_add(struct metrics *m, const char *name, bool ok, const char *fmt, ...)
{
    char detail[DETAIL_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    check_push(m, name, ok, detail);
}

/* printf has no 128-bit integers. Returns a pointer into buffer. */
static const char *int128_text(int128 value, char buffer[INT128_TEXT_MAX])
{
    char *at = buffer + INT128_TEXT_MAX - 1;
    bool negative = value < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    *at = '\0';
    do {
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    if (negative) {
        *--at = '-';
    }
    return at;
}

/* Sums over every row and pool, and what lies outside of them: everything that happened. */
static void total_sum(const struct metrics *m, struct metrics_cell *total)
{
    size_t columns = m->pool_count + 1;
    *total = (struct metrics_cell){0};
    for (size_t i = 0; i < (m->intervals + 2) * columns; i++) {
        const struct metrics_cell *cell = i < (m->intervals + 1) * columns
                                              ? &m->cells[i]
                                              : &m->outside[i - (m->intervals + 1) * columns];
        total->arrived += cell->arrived;
        total->admitted += cell->admitted;
        total->prompt += cell->prompt;
        total->cached += cell->cached;
        total->computed += cell->computed + cell->recomputed; /* together: all prefilled */
        total->emitted += cell->emitted;
        total->output += cell->output;
        total->prefill_executed += cell->prefill_executed;
        total->zero_output += cell->zero_output;
        total->in_flight_ps += cell->in_flight_ps;
        for (int o = 0; o < OUTCOME_COUNT; o++) {
            total->outcomes[o] += cell->outcomes[o];
        }
        for (int s = REPLICA_PROVISIONING; s < REPLICA_STATE_COUNT; s++) {
            total->state_ps[s] += cell->state_ps[s];
        }
    }
}

static void check_requests(struct metrics *m, const struct metrics_cell *total, bool drained)
{
    const struct metrics_requests *r = &m->summaries[0].requests;
    uint64_t sum = r->completed + r->refused + r->unservable + r->cancelled + r->in_flight;
    uint64_t ended = 0;
    for (int o = 0; o < OUTCOME_COUNT; o++) {
        ended += total->outcomes[o];
    }
    bool ok = r->arrived == sum && total->arrived == ended && m->ledger.disordered == 0 &&
              (!drained || r->in_flight == 0);
    metrics_audit_add(m, "requests", ok,
                      "arrived %" PRIu64 " = completed %" PRIu64 " + refused %" PRIu64
                      " + unservable %" PRIu64 " + cancelled %" PRIu64 " + in flight %" PRIu64
                      "; all seen %" PRIu64 ", all ended %" PRIu64 "; out of order %" PRIu64,
                      r->arrived, r->completed, r->refused, r->unservable, r->cancelled,
                      r->in_flight, total->arrived, ended, m->ledger.disordered);
    int64_t stuck = 0;
    for (size_t p = 0; p <= m->pool_count; p++) {
        stuck += m->live[p].in_flight != 0;
    }
    metrics_audit_add(m, "requests_by_pool", stuck == 0,
                      "%" PRId64 " pools end with another count than they began with", stuck);
}

static void check_tokens(struct metrics *m, const struct metrics_cell *total)
{
    const struct metrics_ledger *l = &m->ledger;
    uint64_t admitted = total->outcomes[OUTCOME_COMPLETED] + l->others_admitted;
    bool prompt = l->inconsistent == 0 && total->prompt == l->record_prompt &&
                  total->cached == l->record_cached && total->admitted == admitted;
    metrics_audit_add(m, "prompt_tokens", prompt,
                      "%" PRIu64 " prompt tokens admitted by events, %" PRIu64
                      " by records; %" PRIu64 " of them cached by events, %" PRIu64
                      " by records; records with prompt ≠ cached + computed, or other "
                      "contradictions: %" PRIu64,
                      total->prompt, l->record_prompt, total->cached, l->record_cached,
                      l->inconsistent);
    metrics_audit_add(m, "output_tokens", total->output == total->emitted,
                      "%" PRIu64 " emitted by iterations, %" PRIu64 " by records", total->output,
                      total->emitted);
    /* An iteration in flight computes for a request that has left meanwhile: then more. */
    bool left = total->outcomes[OUTCOME_CANCELLED] + total->outcomes[OUTCOME_IN_FLIGHT] > 0;
    bool executed = left ? total->prefill_executed >= total->computed
                         : total->prefill_executed == total->computed;
    metrics_audit_add(m, "prefill_tokens", executed,
                      "%" PRIu64 " prefilled by iterations, %" PRIu64
                      " computed and recomputed by records%s",
                      total->prefill_executed, total->computed,
                      left ? "; some requests were left unfinished" : "");
}

/* What launches say was held, without looking at the states in between. */
static int128 held_by_launches(const struct metrics *m)
{
    int128 held = 0;
    for (size_t p = 0; p < m->pool_count; p++) {
        for (size_t i = 0; i < m->live[p].launch_count; i++) {
            const struct metrics_launch *launch = &m->live[p].launches[i];
            if (launch->launched_ps != TIME_NONE) {
                int64_t until = launch->released_ps != TIME_NONE ? launch->released_ps : m->end_ps;
                held += until - launch->launched_ps;
            }
        }
    }
    return held;
}

static void check_gpu_time(struct metrics *m, const struct metrics_cell *total)
{
    int128 states = 0, held = held_by_launches(m);
    for (int s = REPLICA_PROVISIONING; s < REPLICA_STATE_COUNT; s++) {
        states += total->state_ps[s];
    }
    char a[INT128_TEXT_MAX], b[INT128_TEXT_MAX];
    metrics_audit_add(
        m, "gpu_time", states == held && m->ledger.state_faults == 0,
        "replica time by states %s ps, by launches %s ps; broken state changes %" PRIu64,
        int128_text(states, a), int128_text(held, b), m->ledger.state_faults);
}

/* Billed beyond held, from launches: with no warmup it must equal what the rows were given. */
static void check_billing(struct metrics *m)
{
    int128 filed = 0, owed = 0;
    bool negative = false;
    size_t columns = m->pool_count + 1;
    for (size_t i = 0; i < (m->intervals + 1) * columns; i++) {
        filed += m->cells[i].surplus_ps;
        negative |= m->cells[i].surplus_ps < 0;
    }
    for (size_t p = 0; p < m->pool_count; p++) {
        for (size_t i = 0; i < m->live[p].launch_count; i++) {
            const struct metrics_launch *launch = &m->live[p].launches[i];
            bool released =
                launch->released_ps != TIME_NONE && launch->released_ps <= m->horizon_ps;
            int64_t until = released ? launch->released_ps : m->horizon_ps;
            bool counts = launch->launched_ps != TIME_NONE && launch->launched_ps < m->horizon_ps &&
                          until >= m->warmup_ps;
            owed += counts ? metrics_billing_surplus(&m->pools[p], until - launch->launched_ps) : 0;
        }
    }
    const struct metrics_gpu_hours *h = &m->summaries[0].gpu_hours;
    char a[INT128_TEXT_MAX], b[INT128_TEXT_MAX];
    metrics_audit_add(
        m, "billed", filed == owed && !negative && h->billed >= h->held,
        "billed %.9g GPU h ≥ held %.9g GPU h; rounding %s ps in rows, %s ps by launches", h->billed,
        h->held, int128_text(filed, a), int128_text(owed, b));
}

/* Integrals of N, from event stamps, against the records' own stamps. */
static void check_little(struct metrics *m, const struct metrics_cell *total)
{
    int128 sojourn = m->ledger.sojourn_ps + m->totals[m->pool_count].e2e.sum;
    char a[INT128_TEXT_MAX], b[INT128_TEXT_MAX];
    metrics_audit_add(m, "little", total->in_flight_ps == sojourn,
                      "∫N dt = %s ps, Σ(end − arrival) = %s ps",
                      int128_text(total->in_flight_ps, a), int128_text(sojourn, b));
}

static uint64_t set_overflow(const struct metrics_set *set)
{
    return set->ttft.overflow + set->tpot.overflow + set->itl.overflow + set->e2e.overflow +
           set->queue.overflow;
}

static void check_histograms(struct metrics *m, const struct metrics_cell *total)
{
    const struct metrics_summary *all = &m->summaries[0];
    const struct metrics_ledger *l = &m->ledger;
    uint64_t completed = all->requests.completed, zero = all->requests.zero_output;
    uint64_t ttft = completed - zero + l->counted_others_first;
    uint64_t tpot = completed - zero - l->single_output;
    uint64_t queue = completed + l->counted_others_admitted;
    uint64_t firsts = total->outcomes[OUTCOME_COMPLETED] - total->zero_output + l->others_first;
    bool ok = all->ttft.count == ttft && all->queue.count == queue && all->e2e.count == completed &&
              all->tpot.count == tpot && l->first_tokens == firsts;
    metrics_audit_add(m, "histograms", ok,
                      "ttft %" PRIu64 " of %" PRIu64 ", tpot %" PRIu64 " of %" PRIu64
                      ", e2e %" PRIu64 " of %" PRIu64 ", queue %" PRIu64 " of %" PRIu64
                      " records; first tokens %" PRIu64 " of %" PRIu64,
                      all->ttft.count, ttft, all->tpot.count, tpot, all->e2e.count, completed,
                      all->queue.count, queue, l->first_tokens, firsts);
    uint64_t overflow = set_overflow(&m->totals[m->pool_count]);
    for (size_t c = 0; m->per_class && c < m->class_count; c++) {
        overflow += set_overflow(&m->class_sets[c]);
    }
    metrics_audit_add(m, "overflow", overflow == 0, "%" PRIu64 " durations out of range", overflow);
}

const struct metrics_check *metrics_audit(struct metrics *m, bool drained, size_t *count, bool *ok)
{
    check(m->finished);
    if (!m->audited) {
        struct metrics_check *added = m->checks;
        size_t added_count = m->check_count;
        m->checks = NULL;
        m->check_count = m->check_capacity = 0;
        struct metrics_cell total;
        total_sum(m, &total);
        check_requests(m, &total, drained);
        check_tokens(m, &total);
        check_gpu_time(m, &total);
        check_billing(m);
        check_little(m, &total);
        check_histograms(m, &total);
        for (size_t i = 0; i < added_count; i++) {
            check_push(m, added[i].name, added[i].ok, added[i].detail);
        }
        free(added);
        m->audited = true;
    }
    *count = m->check_count;
    *ok = true;
    for (size_t i = 0; i < m->check_count; i++) {
        *ok = *ok && m->checks[i].ok;
    }
    return m->checks;
}

const struct column metrics_check_columns[] = {
    {"name", COLUMN_TEXT, offsetof(struct metrics_check, name), "", "check", "What must agree."},
    {"ok", COLUMN_INT32, offsetof(struct metrics_check, ok), "1", "holds", "1 if it does, else 0."},
    {"detail", COLUMN_TEXT, offsetof(struct metrics_check, detail), "", "numbers",
     "Both sides, with their numbers."},
    {0},
};
