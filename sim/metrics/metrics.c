/* Taking observations: the hot path of sim/metrics. Integer sums only; no allocation but at the two
 * places marked. Rows and summaries are made in metrics_rows.c, the audit in metrics_audit.c. */
#include "sim/metrics/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/check.h"
#include "sim/metrics/metrics_internal.h"

/* --- creation ----------------------------------------------------------------------------------
 */

static size_t interval_count(int64_t horizon_ps, int64_t interval_ps)
{
    return (size_t)((horizon_ps - 1) / interval_ps) + 1;
}

void metrics_set_clear(struct metrics_set *set)
{
    histogram_clear(&set->ttft);
    histogram_clear(&set->tpot);
    histogram_clear(&set->itl);
    histogram_clear(&set->e2e);
    histogram_clear(&set->queue);
}

static struct metrics_set *sets_create(size_t count)
{
    struct metrics_set *sets = memory_zero(count, sizeof *sets);
    for (size_t i = 0; i < count; i++) {
        histogram_init_zeroed(&sets[i].ttft);
        histogram_init_zeroed(&sets[i].tpot);
        histogram_init_zeroed(&sets[i].itl);
        histogram_init_zeroed(&sets[i].e2e);
        histogram_init_zeroed(&sets[i].queue);
    }
    return sets;
}

static void cells_init(struct metrics_cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cells[i].kv_max = -1;
    }
}

static void config_copy(struct metrics *m, const struct metrics_config *config)
{
    m->pool_count = config->pool_count;
    m->class_count = config->class_count;
    m->pools = arena_alloc(&m->arena, m->pool_count * sizeof *m->pools);
    m->classes = arena_alloc(&m->arena, m->class_count * sizeof *m->classes);
    for (size_t p = 0; p < m->pool_count; p++) {
        m->pools[p] = config->pools[p];
        m->pools[p].name = arena_copy(&m->arena, config->pools[p].name);
        check(m->pools[p].gpus_per_replica >= 1);
    }
    for (size_t c = 0; c < m->class_count; c++) {
        m->classes[c] = config->classes[c];
        m->classes[c].name = arena_copy(&m->arena, config->classes[c].name);
    }
    m->warmup_ps = config->warmup_ps;
    m->counted_ps = (uint64_t)(config->horizon_ps - config->warmup_ps);
    m->horizon_ps = config->horizon_ps;
    m->interval_ps = config->interval_ps;
}

static void segment_place(const struct metrics *m, struct metrics_segment *segment,
                          int64_t start_ps)
{
    segment->start_ps = start_ps;
    segment->end_ps = metrics_edge_after(m, start_ps);
    segment->row = start_ps >= m->horizon_ps ? m->intervals : (size_t)(start_ps / m->interval_ps);
    segment->cells = metrics_cells_at(m, start_ps);
    segment->class_cells = m->per_class ? metrics_class_cells_at(m, start_ps) : NULL;
}

static void rows_label(struct metrics *m)
{
    for (size_t row = 0; row <= m->intervals; row++) {
        for (size_t c = 0; m->per_class && c < m->class_count; c++) {
            struct metrics_class_hour *hour = &m->class_hours[row * m->class_count + c];
            hour->name = m->classes[c].name;
            hour->start_ps = metrics_interval_start(m, row);
            hour->end_ps = row < m->intervals ? metrics_interval_start(m, row + 1) : m->horizon_ps;
        }
        for (size_t p = 0; p <= m->pool_count; p++) {
            struct metrics_hour *hour =
                p < m->pool_count ? &m->hours[row * m->pool_count + p] : &m->hours_all[row];
            hour->pool = p < m->pool_count ? m->pools[p].name : "all";
            hour->start_ps = metrics_interval_start(m, row);
            hour->end_ps = row < m->intervals ? metrics_interval_start(m, row + 1) : m->horizon_ps;
            hour->is_drain = row == m->intervals;
            hour->ttft = hour->tpot = hour->itl = hour->e2e = hour->queue = metrics_latency_none;
            hour->expected_rate = NAN;
            hour->need_gpus = NAN;
        }
    }
}

struct metrics *metrics_create(const struct metrics_config *config)
{
    check(config->pool_count >= 1 && config->class_count >= 1);
    check(config->interval_ps > 0 && config->horizon_ps > 0);
    check(config->warmup_ps >= 0 && config->warmup_ps < config->horizon_ps);
    struct metrics *m = memory_zero(1, sizeof *m);
    arena_init(&m->arena);
    config_copy(m, config);
    m->intervals = interval_count(m->horizon_ps, m->interval_ps);
    check_msg(m->intervals <= METRICS_INTERVALS_MAX, "%zu intervals: make trace_interval larger",
              m->intervals);
    m->stray_pool = m->pool_count == 1 ? 0 : (uint32_t)m->pool_count;
    m->per_class = m->class_count > 1;
    size_t rows = m->intervals + 1, columns = m->pool_count + 1;
    m->cells = memory_zero(rows * columns, sizeof *m->cells);
    m->outside = memory_zero(columns, sizeof *m->outside);
    cells_init(m->cells, rows * columns);
    cells_init(m->outside, columns);
    m->hours = memory_zero(rows * m->pool_count, sizeof *m->hours);
    m->hours_all = memory_zero(rows, sizeof *m->hours_all);
    m->class_work = memory_zero(m->class_count * columns, sizeof *m->class_work);
    if (m->per_class) {
        m->class_cells = memory_zero(rows * m->class_count, sizeof *m->class_cells);
        m->class_outside = memory_zero(m->class_count, sizeof *m->class_outside);
        m->class_hours = memory_zero(rows * m->class_count, sizeof *m->class_hours);
    }
    rows_label(m);
    m->live = memory_zero(columns, sizeof *m->live);
    for (size_t p = 0; p < columns; p++) {
        m->live[p].kv_peak = -1;
        m->live[p].floor_h = m->live[p].ideal_h = m->live[p].peak_h = NAN;
        m->live[p].forecast_error = NAN;
    }
    m->totals = sets_create(columns);
    m->scratch = sets_create(1);
    m->class_sets = sets_create(m->per_class ? m->class_count : 1);
    m->class_live = memory_zero(m->class_count, sizeof *m->class_live);
    m->summaries = memory_zero(columns, sizeof *m->summaries);
    m->class_summaries = memory_zero(m->class_count, sizeof *m->class_summaries);
    m->current.sets = sets_create(m->pool_count);
    m->next.sets = sets_create(m->pool_count);
    segment_place(m, &m->current, 0);
    segment_place(m, &m->next, m->current.end_ps);
    return m;
}

void metrics_free(struct metrics *m)
{
    if (!m) {
        return;
    }
    for (size_t p = 0; p <= m->pool_count; p++) {
        free(m->live[p].launches);
    }
    void *owned[] = {m->cells,       m->outside,      m->hours,           m->hours_all,
                     m->live,        m->totals,       m->scratch,         m->class_sets,
                     m->class_live,  m->class_work,   m->class_cells,     m->class_outside,
                     m->class_hours, m->summaries,    m->class_summaries, m->current.sets,
                     m->next.sets,   m->scale_events, m->checks};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free(owned[i]);
    }
    arena_free(&m->arena);
    free(m);
}

/* --- the time line ------------------------------------------------------------------------------
 */

size_t metrics_interval_count(const struct metrics *m)
{
    return m->intervals;
}

int64_t metrics_interval_start(const struct metrics *m, size_t row)
{
    return row >= m->intervals ? m->horizon_ps : (int64_t)row * m->interval_ps;
}

int64_t metrics_edge_after(const struct metrics *m, int64_t time_ps)
{
    if (time_ps >= m->horizon_ps) {
        return TIME_NEVER;
    }
    int64_t row = time_ps / m->interval_ps;
    int64_t edge = metrics_interval_start(m, (size_t)row + 1);
    return time_ps < m->warmup_ps && m->warmup_ps < edge ? m->warmup_ps : edge;
}

struct metrics_cell *metrics_cells_at(const struct metrics *m, int64_t time_ps)
{
    if (time_ps < m->warmup_ps) {
        return m->outside;
    }
    size_t row = time_ps >= m->horizon_ps ? m->intervals : (size_t)(time_ps / m->interval_ps);
    return m->cells + row * (m->pool_count + 1);
}

struct metrics_class_cell *metrics_class_cells_at(const struct metrics *m, int64_t time_ps)
{
    if (time_ps < m->warmup_ps) {
        return m->class_outside;
    }
    size_t row = time_ps >= m->horizon_ps ? m->intervals : (size_t)(time_ps / m->interval_ps);
    return m->class_cells + row * m->class_count;
}

int64_t metrics_next_edge(const struct metrics *m)
{
    return m->current.end_ps;
}

static inline uint32_t pool_index(const struct metrics *m, uint32_t pool)
{
    return pool < m->pool_count ? pool : m->stray_pool;
}

/* 1 for a stamp at the current interval's very end, before that interval is rolled: what happens
 * there belongs to the next one. */
static inline int64_t is_ahead(const struct metrics *m, int64_t time_ps)
{
    return time_ps >= m->current.end_ps;
}

/* The pool of something a replica did. */
static inline uint32_t served_pool(const struct metrics *m, const struct obs *obs)
{
    check(obs->pool < m->pool_count);
    return obs->pool;
}

/* Only requests that arrive in [warmup, horizon) are counted. */
static inline bool request_counted(const struct metrics *m, const struct request *request)
{
    return (uint64_t)(request->arrival_ps - m->warmup_ps) < m->counted_ps;
}

/* --- requests -----------------------------------------------------------------------------------
 */

static inline void order_check(struct metrics_ledger *ledger, int64_t t, int64_t own_ps)
{
    ledger->disordered += (t < ledger->last_ps) | (t != own_ps);
    ledger->last_ps = t;
}

static void take_arrival(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct request *request = obs->u.request;
    int64_t t = obs->time_ps;
    uint32_t pool = pool_index(m, obs->pool);
    check(request->class_index < m->class_count);
    bool counted = request_counted(m, request);
    struct metrics_cell *cells = counted ? metrics_segment_at(m, t)->cells : m->outside;
    cells[pool].arrived++;
    struct metrics_live *live = &m->live[pool];
    live->in_flight++;
    live->in_flight_acc -= t;
    live->ahead += is_ahead(m, t);
    order_check(&m->ledger, t, request->arrival_ps);
    if (m->per_class && counted) {
        m->class_live[request->class_index].arrived++;
        metrics_segment_at(m, t)->class_cells[request->class_index].arrived++;
    }
}

void metrics_route(struct metrics *m, uint32_t pool, const struct request *request)
{
    check(pool < m->pool_count);
    if (pool == m->stray_pool) {
        return; /* the only pool: filed there already */
    }
    int64_t t = request->arrival_ps;
    struct metrics_cell *cells =
        request_counted(m, request) ? metrics_segment_at(m, t)->cells : m->outside;
    cells[m->stray_pool].arrived--;
    cells[pool].arrived++;
    struct metrics_live *from = &m->live[m->stray_pool], *to = &m->live[pool];
    from->in_flight--;
    from->in_flight_acc += t;
    from->ahead -= is_ahead(m, t);
    to->in_flight++;
    to->in_flight_acc -= t;
    to->ahead += is_ahead(m, t);
}

static void take_admit(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct request_record *record = obs->u.record;
    bool counted = request_counted(m, &record->request);
    const struct metrics_segment *segment = metrics_segment_at(m, obs->time_ps);
    uint32_t pool = served_pool(m, obs);
    struct metrics_cell *cell = &(counted ? segment->cells : m->outside)[pool];
    cell->admitted++;
    cell->prompt += record->request.prompt_tokens;
    if (counted) {
        histogram_add(&segment->sets[pool].queue, record->admitted_ps - record->request.arrival_ps);
        if (m->per_class) {
            uint32_t class_index = record->request.class_index;
            m->class_live[class_index].admitted++;
            segment->class_cells[class_index].admitted++;
            segment->class_cells[class_index].prompt += record->request.prompt_tokens;
        }
    }
}

static void file_found(struct metrics_found *found, const struct obs_prefix *prefix)
{
    if (prefix->first) {
        found->lookup_tokens += prefix->lookup_tokens;
        found->hit_tokens += prefix->hit_tokens;
        found->lookup_blocks += prefix->lookup_tokens / prefix->block_size;
        found->hit_blocks += prefix->hit_tokens / prefix->block_size;
    } else {
        found->rehit_tokens += prefix->hit_tokens;
    }
}

static void take_prefix(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct obs_prefix *prefix = obs->u.prefix;
    const struct request *request = &prefix->record->request;
    bool counted = request_counted(m, request);
    const struct metrics_segment *segment = metrics_segment_at(m, obs->time_ps);
    struct metrics_cell *cell = &(counted ? segment->cells : m->outside)[served_pool(m, obs)];
    cell->cached += prefix->cached_tokens;
    file_found(&cell->found, prefix);
    if (counted && m->per_class) {
        struct metrics_class_cell *class_cell = &segment->class_cells[request->class_index];
        class_cell->cached += prefix->cached_tokens;
        file_found(&class_cell->found, prefix);
    }
}

static void take_first_token(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct request_record *record = obs->u.record;
    const struct metrics_segment *segment = metrics_segment_at(m, obs->time_ps);
    uint32_t pool = served_pool(m, obs);
    segment->cells[pool].output++;
    m->ledger.first_tokens++;
    if (!request_counted(m, &record->request)) {
        return;
    }
    int64_t ttft_ps = record->first_token_ps - record->request.arrival_ps;
    histogram_add(&segment->sets[pool].ttft, ttft_ps);
    if (m->per_class) {
        histogram_add(&m->class_sets[record->request.class_index].ttft, ttft_ps);
    }
}

static void take_gap(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct metrics_segment *segment = metrics_segment_at(m, obs->time_ps);
    uint32_t pool = served_pool(m, obs);
    segment->cells[pool].output++;
    histogram_add(&segment->sets[pool].itl, obs->u.gap_ps);
}

static void take_preempt(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct request *request = &obs->u.record->request;
    bool counted = request_counted(m, request);
    struct metrics_cell *cells = counted ? metrics_segment_at(m, obs->time_ps)->cells : m->outside;
    cells[pool_index(m, obs->pool)].preemptions++;
    if (m->per_class) {
        m->class_live[request->class_index].preemptions += counted;
    }
}

/* Every stated limit holds; one on a duration that does not exist (TTFT of zero outputs, TPOT of
 * fewer than two) holds too. TPOT is compared without dividing. */
static inline bool slo_attained(const struct metrics_class *slo,
                                const struct request_record *record)
{
    int64_t arrival = record->request.arrival_ps, limit;
    bool ok = slo->slo_e2e_ps == TIME_NONE || record->end_ps - arrival <= slo->slo_e2e_ps;
    if (record->first_token_ps == TIME_NONE) {
        return ok;
    }
    ok &= slo->slo_ttft_ps == TIME_NONE || record->first_token_ps - arrival <= slo->slo_ttft_ps;
    if (slo->slo_tpot_ps != TIME_NONE && record->emitted_tokens > 1 &&
        !__builtin_mul_overflow(slo->slo_tpot_ps, (int64_t)record->emitted_tokens - 1, &limit)) {
        ok &= record->end_ps - record->first_token_ps <= limit;
    }
    return ok;
}

/* Durations of a completed, counted request. */
static inline void file_completed(struct metrics *m, struct metrics_set *set,
                                  const struct request_record *record)
{
    int64_t e2e_ps = record->end_ps - record->request.arrival_ps, tpot_ps = 0;
    histogram_add(&set->e2e, e2e_ps);
    if (record->emitted_tokens > 1) {
        int64_t steps = (int64_t)record->emitted_tokens - 1;
        tpot_ps = (record->end_ps - record->first_token_ps + steps / 2) / steps;
        histogram_add(&set->tpot, tpot_ps);
    } else {
        m->ledger.single_output += record->emitted_tokens;
    }
    if (m->per_class) {
        uint32_t class_index = record->request.class_index;
        histogram_add(&m->class_sets[class_index].e2e, e2e_ps);
        if (record->emitted_tokens > 1) {
            histogram_add(&m->class_sets[class_index].tpot, tpot_ps);
        }
        m->class_live[class_index].zero_output += record->emitted_tokens == 0;
    }
}

/* Attainment belongs to the interval of arrival, which may be closed long since: its cell stays. */
static inline void file_slo(struct metrics *m, uint32_t pool, const struct request_record *record)
{
    int64_t arrival = record->request.arrival_ps;
    uint32_t class_index = record->request.class_index;
    struct metrics_cell *cells = arrival >= m->current.start_ps && arrival < m->current.end_ps
                                     ? m->current.cells
                                     : metrics_cells_at(m, arrival);
    bool attained =
        record->outcome == OUTCOME_COMPLETED && slo_attained(&m->classes[class_index], record);
    uint64_t *count = attained ? &cells[pool].attained : &cells[pool].missed;
    (*count)++;
    if (m->per_class) {
        m->class_live[class_index].attained += attained;
        m->class_live[class_index].missed += !attained;
        struct metrics_class_cell *class_cell = &metrics_class_cells_at(m, arrival)[class_index];
        class_cell->attained += attained;
        class_cell->missed += !attained;
    }
}

/* Books of a final record that is not the usual one: unfinished, or of an uncounted request. */
static void ledger_unusual(struct metrics *m, const struct request_record *record, bool counted)
{
    struct metrics_ledger *ledger = &m->ledger;
    bool admitted = record->admitted_ps != TIME_NONE;
    bool first = record->first_token_ps != TIME_NONE;
    ledger->sojourn_ps += record->end_ps - record->request.arrival_ps;
    if (record->outcome == OUTCOME_COMPLETED) {
        return;
    }
    uint64_t known = (uint64_t)record->cached_tokens + record->computed_tokens;
    ledger->inconsistent += (first && (!admitted || known != record->request.prompt_tokens)) ||
                            known > record->request.prompt_tokens;
    ledger->record_prompt += admitted ? record->request.prompt_tokens : 0;
    ledger->record_cached += record->cached_tokens;
    ledger->others_admitted += admitted;
    ledger->others_first += first;
    ledger->counted_others_admitted += admitted && counted;
    ledger->counted_others_first += first && counted;
}

static void class_end(struct metrics *m, const struct metrics_segment *segment, uint32_t pool,
                      const struct request_record *record)
{
    uint32_t class_index = record->request.class_index;
    struct metrics_class_live *live = &m->class_live[class_index];
    live->outcomes[record->outcome]++;
    live->computed += record->computed_tokens;
    live->recomputed += record->recomputed_tokens;
    live->emitted += record->emitted_tokens;
    segment->class_cells[class_index].completed += record->outcome == OUTCOME_COMPLETED;
    struct metrics_class_work *work = &m->class_work[class_index * (m->pool_count + 1) + pool];
    work->prefill += (uint64_t)record->computed_tokens + record->recomputed_tokens;
    work->output += record->emitted_tokens;
}

static void take_end(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct request_record *record = obs->u.record;
    int64_t t = obs->time_ps;
    uint32_t pool = pool_index(m, record->pool);
    const struct metrics_segment *segment = metrics_segment_at(m, t);
    bool counted = request_counted(m, &record->request);
    bool completed = record->outcome == OUTCOME_COMPLETED;
    struct metrics_cell *cell = &(counted ? segment->cells : m->outside)[pool];
    struct metrics_live *live = &m->live[pool];
    check((unsigned)record->outcome < OUTCOME_COUNT);
    cell->outcomes[record->outcome]++;
    cell->computed += record->computed_tokens;
    cell->recomputed += record->recomputed_tokens;
    cell->emitted += record->emitted_tokens;
    live->in_flight--;
    live->in_flight_acc += t;
    live->ahead -= is_ahead(m, t);
    order_check(&m->ledger, t, record->end_ps);
    if (__builtin_expect(completed, 1)) {
        check(pool < m->pool_count);
        bool first = record->first_token_ps != TIME_NONE, silent = record->emitted_tokens == 0;
        uint64_t known = (uint64_t)record->cached_tokens + record->computed_tokens;
        m->ledger.inconsistent += (known != record->request.prompt_tokens) |
                                  (record->admitted_ps == TIME_NONE) | (first == silent);
        m->ledger.record_prompt += record->request.prompt_tokens;
        m->ledger.record_cached += record->cached_tokens;
        cell->zero_output += silent;
    }
    if (__builtin_expect(completed && counted, 1)) {
        file_completed(m, &segment->sets[pool], record);
    } else {
        if (record->outcome == OUTCOME_IN_FLIGHT) { /* still in flight where the run was cut */
            live->cut++;
            live->ahead += is_ahead(m, t);
        }
        ledger_unusual(m, record, counted);
    }
    if (counted) {
        if (m->per_class) {
            class_end(m, segment, pool, record);
        }
        if (record->outcome != OUTCOME_IN_FLIGHT) { /* else undecided */
            file_slo(m, pool, record);
        }
    }
}

/* --- iterations ---------------------------------------------------------------------------------
 */

/* Iterations first … first + n − 1 of a span, all of which end in the segment. */
static inline void file_iterations(const struct metrics_segment *segment, uint32_t pool,
                                   const struct obs_steps *s, uint32_t first, uint32_t n)
{
    struct metrics_cell *cell = &segment->cells[pool];
    cell->iterations += n;
    cell->batch_sum += (uint64_t)n * s->running;
    cell->decode_executed += (uint64_t)n * s->decode_tokens;
    cell->prefill_executed += (uint64_t)n * s->prefill_tokens;
    if (s->decodes == 0) {
        return;
    }
    cell->output += (uint64_t)n * s->decodes;
    struct histogram *itl = &segment->sets[pool].itl;
    int64_t step_ps = s->base_ps + s->slope_ps * (int64_t)first;
    if (n == 1 || s->slope_ps == 0) {
        histogram_add_n(itl, step_ps, (uint64_t)n * s->decodes);
    } else {
        histogram_add_ramp(itl, step_ps, s->slope_ps, n, s->decodes);
    }
}

static inline void file_busy(struct metrics_cell *cell, int64_t busy_ps, int64_t decode_ps,
                             int64_t work_ps)
{
    cell->busy_ps += busy_ps;
    cell->decode_ps += decode_ps;
    cell->work_ps += work_ps;
}

/* How many of a span's iterations end before edge_ps: the largest k with start + T(k) < edge. T is
 * strictly increasing, so bisection decides; only spans that straddle an edge come here. */
static uint32_t iterations_before(const struct obs_steps *s, int64_t edge_ps)
{
    uint32_t low = 0, high = s->count; /* T(low) holds; the answer is in [low, high] */
    while (low < high) {
        uint32_t k = low + (high - low + 1) / 2;
        int128 end = (int128)s->start_ps + (int128)s->base_ps * k +
                     (int128)s->slope_ps * ((int64_t)k * ((int64_t)k - 1) / 2);
        if (end < edge_ps) {
            low = k;
        } else {
            high = k - 1;
        }
    }
    return low;
}

/* The part of total that belongs to the first `part` of `whole`, rounded down: pieces at successive
 * edges are differences of this, so they add up to total. */
static int64_t share_of(int64_t total, int64_t part, int64_t whole)
{
    return (int64_t)((int128)total * part / whole);
}

/* A span across an edge: iterations by their end stamps, busy time by time. Kept out of take_steps,
 * which then has nothing to save on the stack. */
static __attribute__((noinline)) void take_straddling(struct metrics *m, uint32_t pool,
                                                      const struct obs_steps *s)
{
    const struct metrics_segment *current = &m->current, *next = &m->next;
    check_msg(s->end_ps >= current->start_ps && s->end_ps < next->end_ps,
              "an iteration was reported after its interval was closed, or before it opened");
    uint32_t early = iterations_before(s, current->start_ps);
    uint32_t k = iterations_before(s, current->end_ps);
    check_msg(early == 0, "%u iterations were reported after their interval was closed", early);
    if (k > 0) {
        file_iterations(current, pool, s, 0, k);
    }
    if (k < s->count) {
        file_iterations(next, pool, s, k, s->count - k);
    }
    int64_t length = s->end_ps - s->start_ps, decode_done = 0, work_done = 0;
    for (int64_t from = s->start_ps, to; from < s->end_ps; from = to) {
        to = metrics_edge_after(m, from);
        to = to < s->end_ps ? to : s->end_ps;
        int64_t decode_to = share_of(s->decode_ps, to - s->start_ps, length);
        int64_t work_to = share_of(s->work_ps, to - s->start_ps, length);
        file_busy(&metrics_cells_at(m, from)[pool], to - from, decode_to - decode_done,
                  work_to - work_done);
        decode_done = decode_to;
        work_done = work_to;
    }
}

static void take_steps(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct obs_steps *s = obs->u.steps;
    uint32_t pool = served_pool(m, obs);
    debug_check(s->count >= 1 && s->end_ps >= s->start_ps);
    if (__builtin_expect(s->start_ps >= m->current.start_ps && s->end_ps < m->current.end_ps, 1)) {
        file_busy(&m->current.cells[pool], s->end_ps - s->start_ps, s->decode_ps, s->work_ps);
        file_iterations(&m->current, pool, s, 0, s->count);
    } else {
        take_straddling(m, pool, s);
    }
}

/* --- samples ------------------------------------------------------------------------------------
 */

static void take_gauge(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct obs_gauge *g = obs->u.gauge;
    check(obs->pool < m->pool_count);
    struct metrics_cell *cell = &metrics_segment_at(m, obs->time_ps)->cells[obs->pool];
    cell->gauge_samples++;
    cell->running_sum += g->running;
    cell->waiting_sum += g->waiting;
    cell->load_max_sum += g->load_max;
    cell->load_mean_sum += g->ready == 0 ? 0 : g->load * 1000000 / g->ready;
    cell->kv_max = g->kv_blocks_max > cell->kv_max ? g->kv_blocks_max : cell->kv_max;
    if (g->kv_blocks_total == INT64_MAX) {
        cell->kv_unlimited = true;
    } else {
        cell->kv_sum += g->kv_blocks;
        cell->kv_total_sum += g->kv_blocks_total;
    }
}

/* By kind: a fan calls each directly. */
static obs_take *const takers[OBS_KIND_COUNT] = {
    [OBS_ARRIVAL] = take_arrival,
    [OBS_ADMIT] = take_admit,
    [OBS_FIRST_TOKEN] = take_first_token,
    [OBS_GAP] = take_gap,
    [OBS_PREEMPT] = take_preempt,
    [OBS_END] = take_end,
    [OBS_STEPS] = take_steps,
    [OBS_REPLICA] = metrics_replicas_take,
    [OBS_SCALE] = metrics_replicas_scale,
    [OBS_GAUGE] = take_gauge,
    [OBS_PREFIX] = take_prefix,
};

static void metrics_take(void *self, const struct obs *obs)
{
    debug_check((size_t)obs->kind < sizeof takers / sizeof takers[0]);
    takers[obs->kind](self, obs);
}

struct obs_sink metrics_sink(struct metrics *m)
{
    return (struct obs_sink){.take = metrics_take, .self = m, .by_kind = takers};
}

/* --- edges --------------------------------------------------------------------------------------
 */

/* Time integrals of the current segment up to edge_ps go to its cells. */
static void integrals_close(struct metrics *m, int64_t edge_ps)
{
    for (size_t p = 0; p <= m->pool_count; p++) {
        struct metrics_live *live = &m->live[p];
        struct metrics_cell *cell = &m->current.cells[p];
        for (int s = REPLICA_PROVISIONING; s < REPLICA_STATE_COUNT; s++) {
            int128 value = live->state_acc[s] + (int128)live->state_count[s] * edge_ps;
            cell->state_ps[s] += value - live->state_mark[s];
            live->state_mark[s] = value;
        }
        int128 value = live->in_flight_acc + (int128)live->in_flight * edge_ps;
        cell->in_flight_ps += value - live->in_flight_mark;
        live->in_flight_mark = value;
        cell->in_flight_end = (uint64_t)(live->in_flight + live->cut - live->ahead);
        live->ahead = 0;
    }
}

/* What launches still held at the horizon owe for their started increments and minimum. */
static void surplus_close(struct metrics *m)
{
    for (size_t p = 0; p < m->pool_count; p++) {
        const struct metrics_live *live = &m->live[p];
        for (size_t i = 0; i < live->launch_count; i++) {
            const struct metrics_launch *launch = &live->launches[i];
            if (launch->released_ps == TIME_NONE && launch->launched_ps != TIME_NONE &&
                launch->launched_ps < m->horizon_ps) {
                m->current.cells[p].surplus_ps +=
                    metrics_billing_surplus(&m->pools[p], m->horizon_ps - launch->launched_ps);
            }
        }
    }
}

void metrics_roll(struct metrics *m, int64_t edge_ps)
{
    check_msg(edge_ps == m->current.end_ps && edge_ps != TIME_NEVER && !m->finished,
              "metrics_roll must be called at metrics_next_edge");
    integrals_close(m, edge_ps);
    if (edge_ps == m->horizon_ps) {
        surplus_close(m);
    }
    metrics_rows_close(m, &m->current);
    if (edge_ps != m->warmup_ps || edge_ps % m->interval_ps == 0) {
        m->rows_finished = m->current.row + 1;
    }
    struct metrics_set *recycled = m->current.sets;
    for (size_t p = 0; p < m->pool_count; p++) {
        metrics_set_clear(&recycled[p]);
    }
    m->current = m->next;
    m->next.sets = recycled;
    if (m->current.end_ps != TIME_NEVER) {
        segment_place(m, &m->next, m->current.end_ps);
    } else {
        m->next.start_ps = m->next.end_ps = TIME_NEVER; /* never reached */
    }
    for (uint32_t p = 0; p < m->pool_count; p++) {
        metrics_replicas_maxima(m, m->current.cells, p);
    }
}

void metrics_finish(struct metrics *m, int64_t end_ps)
{
    check_msg(end_ps >= m->horizon_ps && !m->finished, "a run is finished once, past its horizon");
    while (m->current.end_ps <= end_ps) {
        metrics_roll(m, m->current.end_ps);
    }
    m->end_ps = end_ps;
    integrals_close(m, end_ps);
    for (size_t p = 0; p < m->pool_count; p++) {
        m->hours[m->intervals * m->pool_count + p].end_ps = end_ps;
    }
    m->hours_all[m->intervals].end_ps = end_ps;
    for (size_t c = 0; m->per_class && c < m->class_count; c++) {
        m->class_hours[m->intervals * m->class_count + c].end_ps = end_ps;
    }
    metrics_rows_close(m, &m->current);
    m->rows_finished = m->intervals + 1;
    m->finished = true;
    metrics_refresh(m);
    metrics_rows_summarise(m);
}

/* --- what others know ---------------------------------------------------------------------------
 */

void metrics_set_references(struct metrics *m, uint32_t pool, double gpu_hours_floor,
                            double gpu_hours_ideal, double gpu_hours_peak)
{
    check(pool < m->pool_count);
    m->live[pool].floor_h = gpu_hours_floor;
    m->live[pool].ideal_h = gpu_hours_ideal;
    m->live[pool].peak_h = gpu_hours_peak;
}

void metrics_set_need(struct metrics *m, uint32_t pool, size_t row, double expected_rate,
                      double need_gpus)
{
    check(pool < m->pool_count && row < m->intervals);
    m->hours[row * m->pool_count + pool].expected_rate = expected_rate;
    m->hours[row * m->pool_count + pool].need_gpus = need_gpus;
}

void metrics_set_forecast_error(struct metrics *m, uint32_t pool, double error)
{
    check(pool < m->pool_count);
    m->live[pool].forecast_error = error;
}

void metrics_set_routing(struct metrics *m, uint64_t decisions, uint64_t stale)
{
    m->router_decisions = decisions;
    m->router_stale = stale;
}

void metrics_set_kv_peak(struct metrics *m, uint32_t pool, int64_t blocks)
{
    check(pool < m->pool_count && blocks >= 0);
    m->live[pool].kv_peak = blocks;
}
