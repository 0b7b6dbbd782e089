/* The fleet's side of its router: what it may know, and when. */
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/fleet/fleet_pool.h"

/* The router forgets a replica when that ceases to be ready. */
static void forget(void *self, uint32_t slot)
{
    (void)self, (void)slot;
}

void fleet_router_begin(struct fleet *f, const struct fleet_config *config)
{
    const void *own = config->router->config;
    f->router = config->router->type->ops;
    f->router_pools = memory_zero(config->pool_count, sizeof *f->router_pools);
    for (uint32_t i = 0; i < config->pool_count; i++) {
        const struct engine_config *engine = config->pools[i].engine;
        f->router_pools[i] = (struct router_pool){.block_size = (uint32_t)engine->block_size,
                                                  .max_num_seqs = (uint32_t)engine->max_num_seqs};
    }
    struct router_env env = {.pool_count = config->pool_count,
                             .pools = f->router_pools,
                             .slots = 1,
                             .seed = config->seed,
                             .replication = config->replication};
    f->router_state = f->router->central ? NULL : f->router->create(own, &env);
    bool aged = f->router->signals != NULL && own != NULL;
    router_signals_init(&f->router_signals, aged ? f->router->signals(own) : NULL, f->router,
                        f->router_state);
    f->listener = (struct prefix_listener){
        .changed = f->router->cached, .forget = forget, .self = f->router_state};
    if (router_signals_polled(&f->router_signals)) {
        event_queue_push(f->queue, 0, EVENT_TIMER, FLEET_TIMER_READ, 0);
    }
}

void fleet_router_end(struct fleet *f)
{
    router_signals_free(&f->router_signals);
    if (f->router_state != NULL) {
        f->router->destroy(f->router_state);
    }
    free(f->router_pools);
}

uint32_t fleet_router_pick(struct fleet *f, const struct request *request, const uint32_t *pools,
                           uint32_t pool_count)
{
    uint32_t slot = f->router->pick(f->router_state, request, pools, pool_count);
    if (slot != ROUTER_NONE) {
        router_signals_decided(&f->router_signals, slot, f->slots[slot].load);
    }
    return slot;
}

void fleet_session_over(struct fleet *f, const struct request *request)
{
    if (f->router->over != NULL) {
        f->router->over(f->router_state, request);
    }
}

/* kv: the policy wants to know how full it is at t. */
static struct router_reading reading_of(const struct replica *r, bool kv, int64_t t)
{
    struct router_reading reading = {.in_flight = replica_in_flight(r), .waiting = r->wait.count};
    if (kv && r->kv.total != INT64_MAX) {
        reading.kv_millionths = (int64_t)((int128)replica_kv_used(r, t) * 1000000 / r->kv.total);
    }
    return reading;
}

void fleet_router_read(struct fleet *f, int64_t t)
{
    struct router_signals *signals = &f->router_signals;
    router_signals_begin(signals);
    for (uint32_t i = 0; i < f->slot_count; i++) {
        const struct fleet_slot *s = &f->slots[i];
        if (s->state == REPLICA_SERVING || s->state == REPLICA_IDLE) {
            struct router_reading reading = reading_of(&s->replica, f->router->reading != NULL, t);
            router_signals_read(signals, s->pool, i, &reading);
        }
    }
    if (signals->config.delay_ps == 0) {
        router_signals_deliver(signals);
    } else if (time_add(t, signals->config.delay_ps) < f->horizon_ps) {
        event_queue_push(f->queue, t + signals->config.delay_ps, EVENT_TIMER, FLEET_TIMER_TELL, 0);
    }
    int64_t next = time_add(t, signals->config.interval_ps);
    if (next < f->horizon_ps) {
        event_queue_push(f->queue, next, EVENT_TIMER, FLEET_TIMER_READ, 0);
    }
}
