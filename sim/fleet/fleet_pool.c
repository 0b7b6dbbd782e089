#include "sim/fleet/fleet_pool.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

void fleet_pool_init(struct fleet *f, uint32_t index, const struct fleet_pool_config *config,
                     uint32_t span_max)
{
    struct fleet_pool *pool = &f->pools[index];
    engine_init(&pool->engine, config->engine, &config->model, config->max_queue);
    pool->engine.span_max = span_max;
    pool->engine.pool = index;
    pool->engine.sequences = &f->sequences;
    pool->engine.tally = &pool->tally;
    pool->engine.sinks = f->sinks;
    pool->engine.sink_count = f->sink_count;
    pool->engine.central = f->router->central ? &pool->queue : NULL;
    pool->autoscaler = config->autoscaler->type->ops;
    pool->autoscaler_config = config->autoscaler->config;
    if (pool->autoscaler->create != NULL) {
        pool->autoscaler_state = pool->autoscaler->create(pool->autoscaler_config);
    }
    pool->cold_start = config->cold_start;
    pool->initial_replicas = config->initial_replicas;
    pool->decided_ps = TIME_NONE;
    pool->queue = sequence_list_empty();
}

void fleet_pool_free(struct fleet_pool *pool)
{
    if (pool->autoscaler_state != NULL) {
        pool->autoscaler->destroy(pool->autoscaler_state);
    }
}

static void count_state(struct fleet_pool *pool, enum replica_state state, int32_t by)
{
    switch (state) {
    case REPLICA_PROVISIONING:
    case REPLICA_LOADING:
        pool->starting += (uint32_t)by;
        break;
    case REPLICA_SERVING:
    case REPLICA_IDLE:
        pool->ready += (uint32_t)by;
        break;
    case REPLICA_DRAINING:
        pool->draining += (uint32_t)by;
        break;
    default:
        break;
    }
}

static void set_state(struct fleet *f, uint32_t slot, enum replica_state to, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    struct obs_state change = {
        .from = s->state, .to = to, .since_ps = s->since_ps, .launched_ps = s->launched_ps};
    struct obs obs = {.kind = OBS_REPLICA,
                      .pool = s->pool,
                      .replica = s->launch,
                      .time_ps = t,
                      .u.state = &change};
    count_state(&f->pools[s->pool], s->state, -1);
    count_state(&f->pools[s->pool], to, +1);
    s->state = to;
    s->since_ps = t;
    obs_emit_all(f->sinks, f->sink_count, &obs);
}

static bool is_ready(const struct fleet_slot *s)
{
    return s->state == REPLICA_SERVING || s->state == REPLICA_IDLE;
}

static bool is_starting(const struct fleet_slot *s)
{
    return s->state == REPLICA_PROVISIONING || s->state == REPLICA_LOADING;
}

static uint32_t slot_acquire(struct fleet *f)
{
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state == REPLICA_RELEASED) {
            return i;
        }
    }
    uint32_t old = f->slot_count;
    f->slot_count = old == 0 ? 8 : 2 * old;
    f->slots = memory_grow(f->slots, f->slot_count * sizeof *f->slots);
    memset(&f->slots[old], 0, (f->slot_count - old) * sizeof *f->slots);
    event_queue_resize(f->queue, f->slot_count);
    if (f->router_state != NULL) {
        f->router->resize(f->router_state, f->slot_count);
    }
    return old;
}

static void slot_release(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    if (!is_starting(s)) {
        struct fleet_pool *pool = &f->pools[s->pool];
        check(replica_in_flight(&s->replica) == 0);
        f->totals.kv_blocks_leaked += s->replica.kv.used;
        pool->kv_peak = s->replica.kv.peak > pool->kv_peak ? s->replica.kv.peak : pool->kv_peak;
        replica_free(&s->replica);
        event_queue_step(f->queue, slot, TIME_NEVER);
    }
    set_state(f, slot, REPLICA_RELEASED, t);
}

/* Requests that waited for a replica go out by the router, in order of arrival. They were accepted
 * when they came: a full replica takes them all the same. */
static void queue_dispatch(struct fleet *f, uint32_t pool, int64_t t)
{
    struct sequence_list *queue = &f->pools[pool].queue;
    while (queue->count > 0) {
        uint32_t sequence = queue->head;
        const struct request *request = &sequence_at(&f->sequences, sequence)->record.request;
        uint32_t slot = f->router->pick(f->router_state, request, &pool, 1);
        if (slot == ROUTER_NONE) {
            return;
        }
        sequence_list_remove(&f->sequences, queue, sequence);
        fleet_dispatch(f, slot, sequence, t);
    }
}

static void slot_ready(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    replica_init(&s->replica, &f->pools[s->pool].engine, slot, s->launch);
    s->event_ps = TIME_NEVER;
    s->load = 0;
    set_state(f, slot, REPLICA_IDLE, t);
    if (f->router->central) {
        uint32_t head = f->pools[s->pool].queue.head;
        if (head != SEQUENCE_NONE) {
            replica_offer(&s->replica, head, t);
            fleet_slot_changed(f, slot, t);
        }
    } else {
        f->router->ready(f->router_state, s->pool, slot, true);
        queue_dispatch(f, s->pool, t);
    }
}

static uint32_t slot_launch(struct fleet *f, uint32_t pool, int64_t t)
{
    uint32_t slot = slot_acquire(f);
    struct fleet_slot *s = &f->slots[slot];
    s->pool = pool;
    s->launch = f->pools[pool].launches++;
    s->launched_ps = s->since_ps = t;
    return slot;
}

static void phase_begin(struct fleet *f, uint32_t slot, enum replica_state state, int64_t t)
{
    const struct cold_start_config *cold = f->pools[f->slots[slot].pool].cold_start;
    int64_t lasts =
        state == REPLICA_PROVISIONING ? cold_start_provisioning(cold) : cold_start_loading(cold);
    set_state(f, slot, state, t);
    f->slots[slot].phase_timer =
        event_queue_push(f->queue, time_add(t, lasts), EVENT_TIMER, FLEET_TIMER_PHASE, slot);
}

static void phase_end(struct fleet *f, uint32_t slot, int64_t t)
{
    f->slots[slot].phase_timer = 0;
    if (f->slots[slot].state == REPLICA_PROVISIONING) {
        phase_begin(f, slot, REPLICA_LOADING, t);
    } else {
        slot_ready(f, slot, t);
    }
}

void fleet_pool_start(struct fleet *f, uint32_t pool)
{
    for (uint32_t i = 0; i < f->pools[pool].initial_replicas; i++) {
        slot_ready(f, slot_launch(f, pool, 0), 0);
    }
    if (f->pools[pool].autoscaler->interval(f->pools[pool].autoscaler_config) != TIME_NEVER) {
        event_queue_push(f->queue, 0, EVENT_TIMER, FLEET_TIMER_DECIDE, pool);
    }
}

bool fleet_pool_has_room(const struct fleet *f, uint32_t index)
{
    const struct fleet_pool *pool = &f->pools[index];
    int64_t queue = pool->engine.max_queue;
    if (pool->ready + pool->starting == 0) {
        return false; /* nobody is there to wait for */
    }
    if (queue == INT64_MAX) {
        return true;
    }
    if (pool->ready == 0) {
        return pool->queue.count < queue;
    }
    int64_t there = pool->queue.count;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].pool == index && is_ready(&f->slots[i])) {
            there += replica_in_flight(&f->slots[i].replica);
        }
    }
    return there < pool->ready * (pool->engine.max_num_seqs + queue);
}

void fleet_pool_wait(struct fleet *f, uint32_t index, uint32_t sequence, int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    sequence_list_insert(&f->sequences, &pool->queue, sequence, pool->engine.by_priority);
    if (!f->router->central) {
        return;
    }
    /* An idle replica takes it, the lowest first; each that is woken takes at least one. */
    for (uint32_t i = 0; i < f->slot_count; i++) {
        struct fleet_slot *s = &f->slots[i];
        if (s->pool == index && s->state == REPLICA_IDLE && s->replica.next_ps == TIME_NEVER) {
            replica_offer(&s->replica, sequence, t);
            fleet_slot_changed(f, i, t);
            break;
        }
    }
    if (pool->queue.head == sequence) {
        fleet_pool_offer(f, index, ROUTER_NONE, t);
    }
}

void fleet_pool_offer(struct fleet *f, uint32_t index, uint32_t by, int64_t t)
{
    uint32_t head = f->pools[index].queue.head;
    if (!f->router->central || head == SEQUENCE_NONE) {
        return;
    }
    for (uint32_t i = 0; i < f->slot_count; i++) {
        struct fleet_slot *s = &f->slots[i];
        if (i != by && s->pool == index && s->state == REPLICA_SERVING) {
            /* Simultaneous steps go by index: whoever comes before the one that changed the head
             * has had its boundary at t. */
            bool passed = by != ROUTER_NONE && i < by;
            replica_offer(&s->replica, head, passed ? t + 1 : t);
            fleet_slot_changed(f, i, t);
        }
    }
}

void fleet_dispatch(struct fleet *f, uint32_t slot, uint32_t sequence, int64_t t)
{
    replica_enqueue(&f->slots[slot].replica, sequence, t);
    fleet_slot_changed(f, slot, t);
}

static void router_load(struct fleet *f, uint32_t pool, uint32_t slot, uint32_t load)
{
    if (f->router->load != NULL) {
        f->router->load(f->router_state, pool, slot, load);
    }
}

void fleet_slot_refused(struct fleet *f, uint32_t slot)
{
    router_load(f, f->slots[slot].pool, slot, f->slots[slot].load);
}

void fleet_slot_changed(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    struct replica *r = &s->replica;
    uint32_t load = replica_in_flight(r);
    if (r->next_ps != s->event_ps) {
        s->event_ps = r->next_ps;
        event_queue_step(f->queue, slot, r->next_ps);
    }
    if (s->state == REPLICA_DRAINING) {
        if (load == 0 && !r->running) {
            slot_release(f, slot, t);
        }
        return;
    }
    if (r->running != (s->state == REPLICA_SERVING)) {
        set_state(f, slot, r->running ? REPLICA_SERVING : REPLICA_IDLE, t);
    }
    if (load != s->load) {
        s->load = load;
        router_load(f, s->pool, slot, load);
    }
}

void fleet_drain(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    check(is_ready(s));
    if (f->router_state != NULL) {
        f->router->ready(f->router_state, s->pool, slot, false);
    }
    s->replica.draining = true;
    set_state(f, slot, REPLICA_DRAINING, t);
    fleet_slot_changed(f, slot, t);
}

/* Whom to take out of service: the newest still starting, else of the ready the least loaded,
 * newest. */
static uint32_t slot_to_drop(const struct fleet *f, uint32_t pool, bool starting)
{
    uint32_t best = ROUTER_NONE;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->pool != pool || !(starting ? is_starting(s) : is_ready(s))) {
            continue;
        }
        if (best != ROUTER_NONE) {
            uint32_t load = starting ? 0 : replica_in_flight(&s->replica);
            uint32_t least = starting ? 0 : replica_in_flight(&f->slots[best].replica);
            if (load > least || (load == least && s->launch < f->slots[best].launch)) {
                continue;
            }
        }
        best = i;
    }
    return best;
}

static void scale(struct fleet *f, uint32_t pool, uint32_t target, int64_t t)
{
    uint32_t present = f->pools[pool].ready + f->pools[pool].starting;
    for (; present < target; present++) {
        phase_begin(f, slot_launch(f, pool, t), REPLICA_PROVISIONING, t);
    }
    for (; present > target && f->pools[pool].starting > 0; present--) {
        uint32_t slot = slot_to_drop(f, pool, true);
        event_queue_cancel(f->queue, f->slots[slot].phase_timer);
        slot_release(f, slot, t);
    }
    for (; present > target; present--) {
        fleet_drain(f, slot_to_drop(f, pool, false), t);
    }
}

static void decide(struct fleet *f, uint32_t index, int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    fleet_settle(f, t);
    struct autoscaler_signal signal = {
        .now_ps = t,
        .ready = pool->ready,
        .starting = pool->starting,
        .draining = pool->draining,
        .in_flight = fleet_pool_in_flight(pool),
        .window_ps = pool->decided_ps == TIME_NONE ? 0 : t - pool->decided_ps,
        .work_ps = pool->tally.work_ps - pool->decided_work_ps,
    };
    struct autoscaler_decision decision;
    pool->autoscaler->decide(pool->autoscaler_state, &signal, &decision);
    pool->decided_ps = t;
    pool->decided_work_ps = pool->tally.work_ps;
    if (decision.target != signal.ready + signal.starting) {
        struct obs_scale change = {.ready = signal.ready,
                                   .starting = signal.starting,
                                   .draining = signal.draining,
                                   .wished = decision.wished,
                                   .target = decision.target,
                                   .metric = decision.metric,
                                   .reason = decision.reason};
        struct obs obs = {.kind = OBS_SCALE,
                          .pool = index,
                          .replica = UINT32_MAX,
                          .time_ps = t,
                          .u.scale = &change};
        obs_emit_all(f->sinks, f->sink_count, &obs);
        scale(f, index, decision.target, t);
    }
    int64_t next = time_add(t, pool->autoscaler->interval(pool->autoscaler_config));
    if (next < f->horizon_ps) {
        event_queue_push(f->queue, next, EVENT_TIMER, FLEET_TIMER_DECIDE, index);
    }
}

void fleet_timer(struct fleet *f, enum fleet_timer kind, uint64_t payload, int64_t t)
{
    if (f->cut) {
        return; /* nothing begins after the cut */
    }
    check_context(t, -1);
    f->totals.events++;
    if (kind == FLEET_TIMER_DECIDE) {
        decide(f, (uint32_t)payload, t);
    } else {
        phase_end(f, (uint32_t)payload, t);
    }
}
