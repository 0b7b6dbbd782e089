#include "sim/fleet/fleet_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"

/* Of a store's progress, per byte. */
static const double STORE_UNITS = 1024;

static void store_init(struct fleet_store *store, const struct cold_start_config *config)
{
    double bytes;
    store->shared = cold_start_store(config, &store->bandwidth, &store->own_limit, &bytes);
    if (store->shared) {
        store->size = (int128)ceil(bytes * STORE_UNITS) * PS_PER_SECOND;
    }
}

void fleet_pool_init(struct fleet *f, uint32_t index, const struct fleet_config *fleet)
{
    struct fleet_pool *pool = &f->pools[index];
    const struct fleet_pool_config *config = &fleet->pools[index];
    engine_init(&pool->engine, config->engine, &config->model, config->max_queue);
    pool->engine.span_max = fleet->span_max;
    pool->engine.pool = index;
    pool->engine.sequences = &f->sequences;
    pool->engine.tally = &pool->tally;
    pool->engine.fan = &f->fan;
    pool->engine.listener = f->router->cached != NULL ? &f->listener : NULL;
    pool->engine.central = f->router->central ? &pool->queue : NULL;
    pool->autoscaler = config->autoscaler->type->ops;
    pool->autoscaler_config = config->autoscaler->config;
    if (pool->autoscaler->create != NULL) {
        pool->autoscaler_state = pool->autoscaler->create(pool->autoscaler_config, &config->env);
    }
    signals_init(&pool->signals, pool->autoscaler, pool->autoscaler_config);
    uint32_t max, initial;
    pool->autoscaler->limits(pool->autoscaler_config, &pool->min_replicas, &max, &initial);
    pool->cold_start = config->cold_start;
    pool->cold_start_key = rng_key(fleet->seed, fleet->replication, RNG_COLD_START, index);
    store_init(&pool->store, config->cold_start);
    pool->initial_replicas = config->initial_replicas;
    pool->victim = config->victim;
    pool->queue = sequence_list_empty();
}

void fleet_pool_free(struct fleet_pool *pool)
{
    if (pool->autoscaler_state != NULL) {
        pool->autoscaler->destroy(pool->autoscaler_state);
    }
    signals_free(&pool->signals);
}

static bool is_ready(const struct fleet_slot *s)
{
    return s->state == REPLICA_SERVING || s->state == REPLICA_IDLE;
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
    bool stays_ready = is_ready(s);
    s->state = to;
    stays_ready &= is_ready(s);
    if (!stays_ready) {
        count_state(&f->pools[s->pool], change.from, -1);
        count_state(&f->pools[s->pool], to, +1);
    }
    s->since_ps = t;
    obs_fan_emit(&f->fan, &obs);
}

static bool is_starting(const struct fleet_slot *s)
{
    return s->state == REPLICA_PROVISIONING || s->state == REPLICA_LOADING;
}

void fleet_slots_reserve(struct fleet *f, uint32_t count)
{
    uint32_t old = f->slot_count;
    if (count <= old) {
        return;
    }
    f->slot_count = count;
    f->slots = memory_grow(f->slots, f->slot_count * sizeof *f->slots);
    memset(&f->slots[old], 0, (f->slot_count - old) * sizeof *f->slots);
    event_queue_resize(f->queue, f->slot_count);
    if (f->router_state != NULL) {
        router_signals_resize(&f->router_signals, f->slot_count);
    }
}

/* The lowest slot that is free. */
static uint32_t slot_acquire(struct fleet *f)
{
    while (f->taken_slots < f->slot_count && f->slots[f->taken_slots].state != REPLICA_RELEASED) {
        f->taken_slots++;
    }
    if (f->taken_slots == f->slot_count) { /* tight: the trees over slots stay low */
        fleet_slots_reserve(f, f->slot_count < 8 ? 8 : f->slot_count + f->slot_count / 4);
    }
    return f->taken_slots;
}

static void slot_release(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    if (!is_starting(s)) {
        struct fleet_pool *pool = &f->pools[s->pool];
        check(replica_in_flight(&s->replica) == 0);
        f->totals.kv_blocks_leaked += s->replica.kv.used;
        pool->kv_peak = s->replica.kv.peak > pool->kv_peak ? s->replica.kv.peak : pool->kv_peak;
        replica_forget(&s->replica);
        replica_free(&s->replica);
        event_queue_step(f->queue, slot, TIME_NEVER);
    }
    set_state(f, slot, REPLICA_RELEASED, t);
    f->taken_slots = slot < f->taken_slots ? slot : f->taken_slots;
}

/* Requests that waited for a replica go out by the router, in order of arrival. They were accepted
 * when they came: a full replica takes them all the same. */
static void queue_dispatch(struct fleet *f, uint32_t pool, int64_t t)
{
    struct sequence_list *queue = &f->pools[pool].queue;
    while (queue->count > 0) {
        uint32_t sequence = queue->head;
        const struct request *request = &sequence_at(&f->sequences, sequence)->record.request;
        uint32_t slot = fleet_router_pick(f, request, &pool, 1);
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
    f->pools[s->pool].was_ready = true;
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
        router_signals_ready(&f->router_signals, s->pool, slot, true);
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

/* ---- cold start ---------------------------------------------------------------------------------
 */

static void phase_until(struct fleet *f, uint32_t slot, int64_t t)
{
    f->slots[slot].phase_timer =
        event_queue_push(f->queue, t, EVENT_TIMER, FLEET_TIMER_PHASE, slot);
}

static void store_settle(struct fleet_store *store, int64_t t)
{
    store->progress += (int128)store->rate * (t - store->settled_ps);
    store->settled_ps = t;
}

/* One more or one fewer loads: the others' ends move. */
static void store_share(struct fleet *f, uint32_t pool, int64_t t)
{
    struct fleet_store *store = &f->pools[pool].store;
    if (store->loading == 0) {
        store->rate = 0;
        return;
    }
    double share = fmin(store->bandwidth / store->loading, store->own_limit);
    store->rate = (int64_t)fmax(floor(share * STORE_UNITS), 1);
    for (uint32_t i = 0; i < f->slot_count; i++) {
        struct fleet_slot *s = &f->slots[i];
        if (s->pool == pool && s->state == REPLICA_LOADING && s->fetching) {
            int128 left = s->fetched_at - store->progress;
            left = left > 0 ? left : 0;
            event_queue_cancel(f->queue, s->phase_timer);
            phase_until(f, i, t + (int64_t)((left + store->rate - 1) / store->rate));
        }
    }
}

static void fetch_begin(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    struct fleet_store *store = &f->pools[s->pool].store;
    store_settle(store, t);
    s->fetching = true;
    s->fetched_at = store->progress + store->size;
    store->loading++;
    phase_until(f, slot, t); /* for store_share to move */
    store_share(f, s->pool, t);
}

static void fetch_end(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    struct fleet_store *store = &f->pools[s->pool].store;
    store_settle(store, t);
    s->fetching = false;
    store->loading--;
    store_share(f, s->pool, t);
}

static void provisioning_begin(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    const struct fleet_pool *pool = &f->pools[s->pool];
    cold_start_draw(pool->cold_start, pool->cold_start_key, s->launch, pool->was_ready, &s->course);
    s->fetching = false;
    set_state(f, slot, REPLICA_PROVISIONING, t);
    phase_until(f, slot, time_add(t, s->course.provisioning_ps));
}

static void start_from_none(struct fleet *f, uint32_t index, int64_t t);

static void provisioning_end(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    struct fleet_pool *pool = &f->pools[s->pool];
    uint32_t index = s->pool;
    if (s->course.fails) {
        slot_release(f, slot, t);
        if (pool->ready + pool->starting == 0 && pool->queue.count > 0) {
            start_from_none(f, index, t);
        }
        return;
    }
    set_state(f, slot, REPLICA_LOADING, t);
    if (pool->store.shared) {
        fetch_begin(f, slot, t);
    } else {
        phase_until(f, slot, time_add(t, time_add(s->course.weights_ps, s->course.loading_ps)));
    }
}

/* What does not end by itself: a starting replica is not wanted any more. */
static void start_drop(struct fleet *f, uint32_t slot, int64_t t)
{
    event_queue_cancel(f->queue, f->slots[slot].phase_timer);
    if (f->slots[slot].fetching) {
        f->slots[slot].phase_timer = 0;
        fetch_end(f, slot, t);
    }
    slot_release(f, slot, t);
}

static void phase_end(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    s->phase_timer = 0;
    if (s->state == REPLICA_PROVISIONING) {
        provisioning_end(f, slot, t);
    } else if (s->fetching) {
        fetch_end(f, slot, t);
        phase_until(f, slot, time_add(t, s->course.loading_ps));
    } else {
        slot_ready(f, slot, t);
        const struct cold_start_config *cold = f->pools[f->slots[slot].pool].cold_start;
        f->slots[slot].replica.slow_until_ps = time_add(t, cold->slow_start_ps);
        f->slots[slot].replica.slow_factor = cold->slow_start_factor;
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
    if (f->pools[pool].signals.interval_ps > 0) {
        event_queue_push(f->queue, 0, EVENT_TIMER, FLEET_TIMER_SCRAPE, pool);
    }
}

bool fleet_pool_has_room(const struct fleet *f, uint32_t index)
{
    const struct fleet_pool *pool = &f->pools[index];
    int64_t queue = pool->engine.max_queue;
    if (pool->ready + pool->starting == 0 && pool->min_replicas > 0) {
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
    if (pool->ready + pool->starting == 0) {
        pool->met_cold_start++;
        start_from_none(f, index, t);
        return;
    }
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
    struct fleet_slot *s = &f->slots[slot];
    replica_enqueue(&s->replica, sequence, t);
    s->load = replica_in_flight(&s->replica);
    router_signals_sent(&f->router_signals, s->pool, slot, s->load);
    fleet_slot_changed(f, slot, t);
}

void fleet_slot_refused(struct fleet *f, uint32_t slot)
{
    const struct fleet_slot *s = &f->slots[slot];
    router_signals_refused(&f->router_signals, s->pool, slot, s->load);
}

void fleet_slot_moved(struct fleet *f, uint32_t slot, int64_t t)
{
    const struct fleet_slot *s = &f->slots[slot];
    const struct replica *r = &s->replica;
    if (s->state != REPLICA_DRAINING) {
        set_state(f, slot, r->running ? REPLICA_SERVING : REPLICA_IDLE, t);
    } else if (replica_in_flight(r) == 0 && !r->running) {
        slot_release(f, slot, t);
    }
}

void fleet_drain(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    check(is_ready(s));
    if (f->router_state != NULL) {
        router_signals_ready(&f->router_signals, s->pool, slot, false);
    }
    s->replica.draining = true;
    set_state(f, slot, REPLICA_DRAINING, t);
    fleet_slot_changed(f, slot, t);
}

/* What a replica that is ready would be missed for; less is dropped first. Steps up to now count.
 */
static uint32_t worth(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    switch (f->pools[s->pool].victim) {
    case FLEET_VICTIM_LEAST_LOADED:
        return replica_in_flight(&s->replica);
    case FLEET_VICTIM_LEAST_CACHED:
        replica_settle(&s->replica, t);
        return replica_cached_blocks(&s->replica);
    default:
        return 0;
    }
}

/* A replica that may be taken out of service. */
struct candidate {
    uint32_t worth, launch, slot;
};

/* Who goes first: what is worth least, the newest of equals. */
static int by_worth(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    if (a->worth != b->worth) {
        return a->worth < b->worth ? -1 : 1;
    }
    return (a->launch < b->launch) - (a->launch > b->launch);
}

/* Takes so many out of service: the newest of those still starting, or of the ready ones by the
 * pool's choice. All are weighed once, for one that goes does not change what another is worth. */
static void drop(struct fleet *f, uint32_t pool, bool starting, uint32_t count, int64_t t)
{
    if (count == 0) {
        return;
    }
    struct candidate *candidates = memory_alloc(f->slot_count * sizeof *candidates);
    uint32_t found = 0;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->pool == pool && (starting ? is_starting(s) : is_ready(s))) {
            candidates[found++] = (struct candidate){
                .worth = starting ? 0 : worth(f, i, t), .slot = i, .launch = s->launch};
        }
    }
    check(found >= count);
    qsort(candidates, found, sizeof *candidates, by_worth);
    for (uint32_t i = 0; i < count; i++) {
        if (starting) {
            start_drop(f, candidates[i].slot, t);
        } else {
            fleet_drain(f, candidates[i].slot, t);
        }
    }
    free(candidates);
}

static void scale(struct fleet *f, uint32_t pool, uint32_t target, int64_t t)
{
    uint32_t present = f->pools[pool].ready + f->pools[pool].starting;
    for (; present < target; present++) {
        provisioning_begin(f, slot_launch(f, pool, t), t);
    }
    uint32_t over = present - target, starting = f->pools[pool].starting;
    uint32_t early = over < starting ? over : starting;
    drop(f, pool, true, early, t);
    drop(f, pool, false, over - early, t);
}

static void observe_scale(struct fleet *f, uint32_t index, const struct autoscaler_decision *d,
                          int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    struct obs_scale change = {.ready = pool->ready,
                               .starting = pool->starting,
                               .draining = pool->draining,
                               .wished = d->wished,
                               .target = d->target,
                               .metric = d->metric,
                               .reason = d->reason};
    struct obs obs = {
        .kind = OBS_SCALE, .pool = index, .replica = UINT32_MAX, .time_ps = t, .u.scale = &change};
    obs_fan_emit(&f->fan, &obs);
}

/* Requests of a waiting list that are over the limit before their first token. A list is in order
 * of arrival unless priorities or preemptions say otherwise: all of it is looked at. */
static uint64_t waiting_late(const struct fleet *f, const struct sequence_list *list,
                             int64_t before_ps)
{
    uint64_t late = 0;
    for (uint32_t i = list->head; i != SEQUENCE_NONE;) {
        const struct sequence *s = sequence_at(&f->sequences, i);
        late += s->record.first_token_ps == TIME_NONE && s->record.request.arrival_ps < before_ps;
        i = s->next;
    }
    return late;
}

static void scrape(struct fleet *f, uint32_t index, int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    if (signals_has(&pool->signals, t)) {
        return;
    }
    fleet_settle(f, t);
    struct signals_scrape scrape = {.time_ps = t,
                                    .in_flight = fleet_pool_in_flight(pool),
                                    .waiting = pool->queue.count,
                                    .arrived = pool->arrived,
                                    .work_ps = pool->tally.work_ps,
                                    .latency = pool->signals.latency};
    bool late = pool->signals.watches && pool->signals.slo.ttft_ps != FIELD_INT_UNSET;
    int64_t before_ps = late ? t - pool->signals.slo.ttft_ps : 0;
    scrape.waiting_late = late ? waiting_late(f, &pool->queue, before_ps) : 0;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->pool == index && s->state >= REPLICA_SERVING) {
            scrape.waiting += s->replica.wait.count;
            scrape.kv_used += s->replica.kv.used;
            scrape.waiting_late += late ? waiting_late(f, &s->replica.wait, before_ps) : 0;
        }
    }
    signals_add(&pool->signals, &scrape);
}

static void scrape_timer(struct fleet *f, uint32_t index, int64_t t)
{
    scrape(f, index, t);
    int64_t next = time_add(t, f->pools[index].signals.interval_ps);
    if (next < f->horizon_ps) {
        event_queue_push(f->queue, next, EVENT_TIMER, FLEET_TIMER_SCRAPE, index);
    }
}

static struct autoscaler_signal signal_now(struct fleet *f, uint32_t index, int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    struct autoscaler_signal signal = {.now_ps = t,
                                       .ready = pool->ready,
                                       .starting = pool->starting,
                                       .draining = pool->draining,
                                       .kv_blocks = pool->engine.num_gpu_blocks};
    /* A scrape that is due at this instant comes first, whatever the order of the timers. */
    if (pool->signals.interval_ps == 0 || t % pool->signals.interval_ps == 0) {
        scrape(f, index, t);
    }
    signals_read(&pool->signals, &signal);
    signals_idle(&pool->signals, fleet_pool_in_flight(pool), pool->arrived, &signal);
    return signal;
}

static void decide(struct fleet *f, uint32_t index, int64_t t)
{
    struct fleet_pool *pool = &f->pools[index];
    struct autoscaler_signal signal = signal_now(f, index, t);
    struct autoscaler_decision decision = {0};
    pool->autoscaler->decide(pool->autoscaler_state, &signal, &decision);
    if (decision.target != signal.ready + signal.starting || decision.announce) {
        observe_scale(f, index, &decision, t);
        scale(f, index, decision.target, t);
    }
    int64_t next = pool->autoscaler->next != NULL
                       ? pool->autoscaler->next(pool->autoscaler_state, t)
                       : time_add(t, pool->autoscaler->interval(pool->autoscaler_config));
    check(next > t);
    if (next < f->horizon_ps) {
        event_queue_push(f->queue, next, EVENT_TIMER, FLEET_TIMER_DECIDE, index);
    }
}

/* A request waits where nobody is or comes: its arrival starts the first replica. */
static void start_from_none(struct fleet *f, uint32_t index, int64_t t)
{
    struct autoscaler_decision decision = {
        .wished = 1, .target = 1, .metric = NAN, .reason = "requests wait and no replica comes"};
    observe_scale(f, index, &decision, t);
    scale(f, index, 1, t);
}

void fleet_timer(struct fleet *f, enum fleet_timer kind, uint64_t payload, int64_t t)
{
    if (f->cut) {
        return; /* nothing begins after the cut */
    }
    check_context(t, -1);
    switch (kind) {
    case FLEET_TIMER_DECIDE:
        decide(f, (uint32_t)payload, t);
        break;
    case FLEET_TIMER_SCRAPE:
        scrape_timer(f, (uint32_t)payload, t);
        break;
    case FLEET_TIMER_READ:
        fleet_router_read(f, t);
        break;
    case FLEET_TIMER_TELL:
        router_signals_deliver(&f->router_signals);
        break;
    default:
        phase_end(f, (uint32_t)payload, t);
        break;
    }
}
