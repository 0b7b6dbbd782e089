#include "sim/fleet/fleet.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/fleet/fleet_pool.h"

static void emit(const struct fleet *f, const struct obs *obs)
{
    obs_fan_emit(&f->fan, obs);
}

/* An end that no replica reports. */
static void emit_end(struct fleet *f, const struct request_record *record)
{
    struct obs obs = {.kind = OBS_END,
                      .pool = record->pool,
                      .replica = record->replica,
                      .time_ps = record->end_ps,
                      .u.record = record};
    f->pools[record->pool].tally.ended++;
    emit(f, &obs);
}

/* Policies that hold latencies count them as they happen. */
static void watch(void *self, const struct obs *obs)
{
    struct fleet *f = self;
    if (obs->pool < f->pool_count && f->pools[obs->pool].signals.watches) {
        signals_watch(&f->pools[obs->pool].signals, &f->pools[obs->pool].engine, obs);
    }
}

/* Who sees what happens: the receivers given, and the fleet itself where a pool's policy asks for
 * it. */
static void watch_begin(struct fleet *f, const struct fleet_config *config)
{
    obs_fan_init(&f->fan, config->sinks, config->sink_count);
    bool watches = false;
    for (uint32_t i = 0; i < config->pool_count; i++) {
        const struct autoscaler_type *type = config->pools[i].autoscaler->type->ops;
        watches |= type->slo != NULL;
    }
    if (watches) {
        struct obs_sink sink = {
            .take = watch, .self = f, .kinds = 1u << OBS_FIRST_TOKEN | 1u << OBS_END};
        obs_fan_add(&f->fan, &sink);
    }
}

struct fleet *fleet_create(const struct fleet_config *config, struct event_queue *queue)
{
    check(config->pool_count >= 1 && config->pool_count <= ROUTER_POOLS_MAX);
    struct fleet *f = memory_zero(1, sizeof *f);
    f->queue = queue;
    watch_begin(f, config);
    f->horizon_ps = config->horizon_ps;
    f->pool_count = config->pool_count;
    f->pools = memory_zero(f->pool_count, sizeof *f->pools);
    sequence_table_init(&f->sequences, 1024);
    fleet_router_begin(f, config);
    uint32_t replicas = 0;
    for (uint32_t i = 0; i < f->pool_count; i++) {
        fleet_pool_init(f, i, config);
        replicas += config->pools[i].initial_replicas;
    }
    fleet_slots_reserve(f, replicas);
    for (uint32_t i = 0; i < f->pool_count; i++) {
        fleet_pool_start(f, i);
    }
    return f;
}

/* A run that was given up leaves requests behind: their hashes go back all the same. */
static void hashes_release(struct fleet *f, const struct sequence_list *list)
{
    for (uint32_t i = list->head; i != SEQUENCE_NONE; i = sequence_at(&f->sequences, i)->next) {
        struct request *request = &sequence_at(&f->sequences, i)->record.request;
        token_hashes_release(request->hashes);
        request->hashes = NULL;
    }
}

void fleet_free(struct fleet *f)
{
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state >= REPLICA_SERVING) {
            hashes_release(f, &f->slots[i].replica.run);
            hashes_release(f, &f->slots[i].replica.wait);
            replica_free(&f->slots[i].replica);
        }
    }
    for (uint32_t i = 0; i < f->pool_count; i++) {
        hashes_release(f, &f->pools[i].queue);
        fleet_pool_free(&f->pools[i]);
    }
    fleet_router_end(f);
    sequence_table_free(&f->sequences);
    free(f->pools);
    free(f->slots);
    free(f);
}

/* The pools among those allowed whose engines could ever serve the request. */
static uint32_t pools_that_can(const struct fleet *f, const struct request *request,
                               const uint32_t *pools, uint32_t count, uint32_t *can)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (engine_can_serve(&f->pools[pools[i]].engine, request)) {
            can[n++] = pools[i];
        }
    }
    return n;
}

/* The pool with the least in flight per replica that is or will be ready, for requests that no
 * replica takes at once; a pool with no replica at all only when all are like that. */
static uint32_t pool_to_wait_in(const struct fleet *f, const uint32_t *pools, uint32_t count)
{
    uint32_t best = pools[0];
    for (uint32_t i = 1; i < count; i++) {
        const struct fleet_pool *a = &f->pools[pools[i]], *b = &f->pools[best];
        uint64_t a_there = a->ready + a->starting, b_there = b->ready + b->starting;
        uint64_t a_load = fleet_pool_in_flight(a), b_load = fleet_pool_in_flight(b);
        if (a_load * b_there < b_load * a_there || (b_there == 0 && a_there > 0)) {
            best = pools[i];
        }
    }
    return best;
}

static void end_at_once(struct fleet *f, const struct request *request, uint32_t pool,
                        uint32_t replica, enum outcome outcome)
{
    struct request_record record = {.request = *request,
                                    .admitted_ps = TIME_NONE,
                                    .first_token_ps = TIME_NONE,
                                    .end_ps = request->arrival_ps,
                                    .pool = pool,
                                    .replica = replica,
                                    .outcome = outcome};
    emit_end(f, &record);
    token_hashes_release(request->hashes);
}

static void observe_arrival(struct fleet *f, const struct request *request, uint32_t pool)
{
    struct obs obs = {.kind = OBS_ARRIVAL,
                      .pool = pool,
                      .replica = UINT32_MAX,
                      .time_ps = request->arrival_ps,
                      .u.request = request};
    f->pools[pool].arrived++;
    f->pools[pool].met_cold_start += f->pools[pool].starting > 0;
    emit(f, &obs);
}

uint32_t fleet_arrive(struct fleet *f, const struct request *request, const uint32_t *pools,
                      uint32_t pool_count)
{
    check_context(request->arrival_ps, -1);
    uint32_t can[ROUTER_POOLS_MAX];
    uint32_t count = pools_that_can(f, request, pools, pool_count, can);
    if (count == 0) {
        observe_arrival(f, request, pools[0]);
        end_at_once(f, request, pools[0], UINT32_MAX, OUTCOME_UNSERVABLE);
        return SEQUENCE_NONE;
    }
    uint32_t slot = ROUTER_NONE;
    if (!f->router->central) {
        slot = fleet_router_pick(f, request, can, count);
    }
    uint32_t pool = slot == ROUTER_NONE ? pool_to_wait_in(f, can, count) : f->slots[slot].pool;
    observe_arrival(f, request, pool);
    bool room = slot == ROUTER_NONE ? fleet_pool_has_room(f, pool)
                                    : replica_has_room(&f->slots[slot].replica);
    if (!room) {
        uint32_t replica = UINT32_MAX;
        if (slot != ROUTER_NONE) {
            replica = f->slots[slot].launch;
            fleet_slot_refused(f, slot);
        }
        end_at_once(f, request, pool, replica, OUTCOME_REFUSED);
        return SEQUENCE_NONE;
    }
    uint32_t sequence = sequence_acquire(&f->sequences, request);
    sequence_at(&f->sequences, sequence)->record.pool = pool;
    if (slot == ROUTER_NONE) {
        fleet_pool_wait(f, pool, sequence, request->arrival_ps);
    } else {
        fleet_dispatch(f, slot, sequence, request->arrival_ps);
    }
    return sequence;
}

void fleet_cancel(struct fleet *f, uint32_t sequence, int64_t t)
{
    struct sequence *s = sequence_at(&f->sequences, sequence);
    if (s->slot != SEQUENCE_NONE) {
        uint32_t slot = s->slot;
        replica_cancel(&f->slots[slot].replica, sequence, t);
        fleet_slot_changed(f, slot, t);
        return;
    }
    uint32_t pool = s->record.pool;
    bool was_head = f->pools[pool].queue.head == sequence;
    sequence_list_remove(&f->sequences, &f->pools[pool].queue, sequence);
    s->record.end_ps = t;
    s->record.outcome = OUTCOME_CANCELLED;
    emit_end(f, &s->record);
    sequence_release(&f->sequences, sequence);
    if (was_head) {
        fleet_pool_offer(f, pool, ROUTER_NONE, t);
    }
}

void fleet_step(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    const struct sequence_list *central = s->replica.engine->central;
    uint32_t queued = central != NULL ? central->count : 0;
    replica_step(&s->replica, t);
    fleet_slot_changed(f, slot, t);
    if (central != NULL && central->count > 0 && central->count < queued) {
        fleet_pool_offer(f, s->pool, slot, t);
    }
}

void fleet_settle(struct fleet *f, int64_t t)
{
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state >= REPLICA_SERVING) {
            replica_settle(&f->slots[i].replica, t);
        }
    }
}

void fleet_edge(struct fleet *f, int64_t t)
{
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state >= REPLICA_SERVING) {
            replica_settle_edge(&f->slots[i].replica, t);
            fleet_slot_changed(f, i, t);
        }
    }
}

static void gauge_load(struct obs_gauge *gauge, const struct replica *r)
{
    uint64_t load = replica_in_flight(r);
    gauge->ready++;
    gauge->load += load;
    gauge->load_max = load > gauge->load_max ? load : gauge->load_max;
}

void fleet_gauge(struct fleet *f, int64_t t)
{
    fleet_settle(f, t);
    for (uint32_t p = 0; p < f->pool_count; p++) {
        struct obs_gauge gauge = {.waiting = f->pools[p].queue.count};
        for (uint32_t i = 0; i < f->slot_count; i++) {
            const struct fleet_slot *s = &f->slots[i];
            if (s->pool != p || s->state < REPLICA_SERVING) {
                continue;
            }
            if (s->state != REPLICA_DRAINING) {
                gauge_load(&gauge, &s->replica);
            }
            const struct kv *kv = &s->replica.kv;
            gauge.running += s->replica.run.count;
            gauge.waiting += s->replica.wait.count;
            gauge.kv_blocks += kv->used;
            gauge.kv_blocks_total =
                kv->total == INT64_MAX ? INT64_MAX : gauge.kv_blocks_total + kv->total;
            gauge.kv_blocks_max = kv->used > gauge.kv_blocks_max ? kv->used : gauge.kv_blocks_max;
        }
        struct obs obs = {
            .kind = OBS_GAUGE, .pool = p, .replica = UINT32_MAX, .time_ps = t, .u.gauge = &gauge};
        emit(f, &obs);
    }
}

struct cut_entry {
    uint64_t id;
    uint32_t sequence;
};

static int by_request_id(const void *a_, const void *b_)
{
    const struct cut_entry *a = a_, *b = b_;
    return (a->id > b->id) - (a->id < b->id);
}

static void collect(const struct fleet *f, const struct sequence_list *list,
                    struct cut_entry *entries, size_t *count)
{
    for (uint32_t i = list->head; i != SEQUENCE_NONE;) {
        const struct sequence *s = sequence_at(&f->sequences, i);
        entries[(*count)++] = (struct cut_entry){s->record.request.id, i};
        i = s->next;
    }
}

void fleet_cut(struct fleet *f, int64_t t)
{
    fleet_settle(f, t);
    size_t count = 0;
    struct cut_entry *entries = memory_alloc((f->sequences.live + 1) * sizeof *entries);
    for (uint32_t p = 0; p < f->pool_count; p++) {
        collect(f, &f->pools[p].queue, entries, &count);
    }
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state >= REPLICA_SERVING) {
            collect(f, &f->slots[i].replica.run, entries, &count);
            collect(f, &f->slots[i].replica.wait, entries, &count);
        }
    }
    check(count == f->sequences.live);
    qsort(entries, count, sizeof *entries, by_request_id);
    for (size_t i = 0; i < count; i++) {
        struct sequence *s = sequence_at(&f->sequences, entries[i].sequence);
        if (s->slot != SEQUENCE_NONE) {
            replica_sync(&f->slots[s->slot].replica, entries[i].sequence);
        }
        s->record.end_ps = t;
        s->record.outcome = OUTCOME_IN_FLIGHT;
        emit_end(f, &s->record);
        token_hashes_release(s->record.request.hashes);
        s->record.request.hashes = NULL;
    }
    f->cut = true;
    free(entries);
}

uint64_t fleet_in_flight(const struct fleet *f)
{
    uint64_t in_flight = 0;
    for (uint32_t p = 0; p < f->pool_count; p++) {
        in_flight += fleet_pool_in_flight(&f->pools[p]);
    }
    return in_flight;
}

int64_t fleet_kv_peak(const struct fleet *f, uint32_t pool)
{
    int64_t peak = f->pools[pool].kv_peak;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->pool == pool && s->state >= REPLICA_SERVING && s->replica.kv.peak > peak) {
            peak = s->replica.kv.peak;
        }
    }
    return peak;
}

uint64_t fleet_met_cold_start(const struct fleet *f)
{
    uint64_t met = 0;
    for (uint32_t p = 0; p < f->pool_count; p++) {
        met += f->pools[p].met_cold_start;
    }
    return met;
}

double fleet_forecast_error(const struct fleet *f, uint32_t pool)
{
    const struct fleet_pool *p = &f->pools[pool];
    return p->autoscaler->forecast_error == NULL
               ? NAN
               : p->autoscaler->forecast_error(p->autoscaler_state);
}

struct fleet_totals fleet_totals(const struct fleet *f)
{
    struct fleet_totals totals = f->totals;
    totals.routed = f->router_signals.decisions;
    totals.routed_stale = f->router_signals.stale;
    for (uint32_t p = 0; p < f->pool_count; p++) {
        totals.arrived += f->pools[p].arrived;
        totals.ended += f->pools[p].tally.ended;
        totals.spans += f->pools[p].tally.spans;
        totals.iterations += f->pools[p].tally.iterations;
    }
    for (uint32_t i = 0; i < f->slot_count && !f->cut; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->state >= REPLICA_SERVING && s->replica.run.count == 0) {
            totals.kv_blocks_leaked += s->replica.kv.used;
        }
    }
    return totals;
}
