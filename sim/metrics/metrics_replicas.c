/* Taking what replicas do and autoscalers decide: launches, time in states, billing. */
#include "sim/base/check.h"
#include "sim/metrics/metrics_internal.h"

int64_t metrics_billing_surplus(const struct metrics_pool *pool, int64_t held_ps)
{
    int64_t billed = held_ps;
    if (pool->billing_increment_ps > 1) {
        int64_t over = held_ps % pool->billing_increment_ps;
        billed = over ? time_add(held_ps, pool->billing_increment_ps - over) : held_ps;
    }
    if (billed < pool->billing_minimum_ps) {
        billed = pool->billing_minimum_ps;
    }
    return billed - held_ps;
}

/* Room up to a new launch. Allocates, amortised. Out of line, like counts_change below: what most
 * observations come to then has little to save on the stack. */
static __attribute__((noinline)) void launches_extend(struct metrics_live *live, uint32_t number)
{
    if (number >= live->launch_capacity) {
        size_t capacity = live->launch_capacity ? live->launch_capacity : 64;
        while (capacity <= number) {
            capacity *= 2;
        }
        live->launches = memory_grow(live->launches, capacity * sizeof *live->launches);
        live->launch_capacity = capacity;
    }
    for (; live->launch_count <= number; live->launch_count++) {
        live->launches[live->launch_count] =
            (struct metrics_launch){TIME_NONE, TIME_NONE, TIME_NONE, REPLICA_RELEASED};
    }
}

static struct metrics_launch *launch_get(struct metrics_live *live, uint32_t number)
{
    if (number >= live->launch_count) {
        launches_extend(live, number);
    }
    return &live->launches[number];
}

static void launch_move(struct metrics *m, struct metrics_live *live, const struct obs *obs)
{
    const struct obs_state *s = obs->u.state;
    struct metrics_launch *launch = launch_get(live, obs->replica);
    bool fresh = launch->launched_ps == TIME_NONE;
    /* Contiguous: what it leaves is what it entered, at the time it entered it. */
    bool joined = fresh ? s->from == REPLICA_RELEASED
                        : s->from == launch->state && s->since_ps == launch->since_ps &&
                              s->launched_ps == launch->launched_ps &&
                              launch->released_ps == TIME_NONE;
    m->ledger.state_faults += !joined || obs->time_ps < s->launched_ps;
    if (fresh) {
        m->ledger.state_faults += s->launched_ps != obs->time_ps;
        launch->launched_ps = s->launched_ps;
    }
    launch->state = (uint8_t)s->to;
    launch->since_ps = obs->time_ps;
    if (s->to == REPLICA_RELEASED) {
        launch->released_ps = obs->time_ps;
    }
}

static inline int64_t held_change(enum replica_state state)
{
    return state != REPLICA_RELEASED;
}
static inline int64_t ready_change(enum replica_state state)
{
    return state == REPLICA_SERVING || state == REPLICA_IDLE;
}

/* Largest replica counts since the segment began. */
void metrics_replicas_maxima(const struct metrics *m, struct metrics_cell *cells, uint32_t pool)
{
    const int64_t *count = m->live[pool].state_count;
    uint64_t ready = (uint64_t)(count[REPLICA_SERVING] + count[REPLICA_IDLE]);
    uint64_t held = ready + (uint64_t)(count[REPLICA_PROVISIONING] + count[REPLICA_LOADING] +
                                       count[REPLICA_DRAINING]);
    struct metrics_cell *cell = &cells[pool], *fleet = &cells[m->pool_count];
    cell->held_max = held > cell->held_max ? held : cell->held_max;
    cell->ready_max = ready > cell->ready_max ? ready : cell->ready_max;
    uint64_t all_held = (uint64_t)m->fleet_held, all_ready = (uint64_t)m->fleet_ready;
    fleet->held_max = all_held > fleet->held_max ? all_held : fleet->held_max;
    fleet->ready_max = all_ready > fleet->ready_max ? all_ready : fleet->ready_max;
}

/* More or fewer replicas are held or ready. */
static __attribute__((noinline)) void
counts_change(struct metrics *m, const struct metrics_segment *segment, const struct obs *obs)
{
    const struct obs_state *s = obs->u.state;
    int64_t t = obs->time_ps;
    m->fleet_held += held_change(s->to) - held_change(s->from);
    m->fleet_ready += ready_change(s->to) - ready_change(s->from);
    metrics_replicas_maxima(m, segment->cells, obs->pool);
    bool billed = s->launched_ps < m->horizon_ps && m->current.row < m->intervals;
    if (s->to == REPLICA_RELEASED && billed && t <= m->horizon_ps) {
        /* A release at the horizon itself is still part of what is billed. */
        struct metrics_cell *cells = t == m->horizon_ps ? m->current.cells : segment->cells;
        cells[obs->pool].surplus_ps +=
            metrics_billing_surplus(&m->pools[obs->pool], t - s->launched_ps);
    }
}

void metrics_replicas_take(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct obs_state *s = obs->u.state;
    int64_t t = obs->time_ps;
    uint32_t pool = obs->pool;
    check(pool < m->pool_count && s->from < REPLICA_STATE_COUNT && s->to < REPLICA_STATE_COUNT);
    struct metrics_live *live = &m->live[pool];
    const struct metrics_segment *segment = metrics_segment_at(m, t);
    launch_move(m, live, obs);
    live->state_count[s->from]--;
    live->state_acc[s->from] += t;
    live->state_count[s->to]++;
    live->state_acc[s->to] -= t;
    /* Between serving and idle, which is the usual, no count changes. */
    if (!ready_change(s->from) || !ready_change(s->to) || segment != &m->current) {
        counts_change(m, segment, obs);
    }
}

void metrics_replicas_scale(void *self, const struct obs *obs)
{
    struct metrics *m = self;
    const struct obs_scale *s = obs->u.scale;
    check(obs->pool < m->pool_count);
    if (m->scale_count == m->scale_capacity) { /* allocates: amortised */
        m->scale_capacity = m->scale_capacity ? 2 * m->scale_capacity : 256;
        m->scale_events = memory_grow(m->scale_events, m->scale_capacity * sizeof *m->scale_events);
    }
    m->scale_events[m->scale_count++] = (struct metrics_scale_event){
        .time_ps = obs->time_ps,
        .pool = m->pools[obs->pool].name,
        .pool_index = obs->pool,
        .ready = s->ready,
        .starting = s->starting,
        .draining = s->draining,
        .wished = s->wished,
        .target = s->target,
        .metric = s->metric,
        .reason = s->reason,
    };
}
