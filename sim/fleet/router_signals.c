#include "sim/fleet/router_signals.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

void router_signals_init(struct router_signals *s, const struct router_signal_config *config,
                         const struct router_type *type, void *state)
{
    *s = (struct router_signals){.type = type, .state = state};
    if (config == NULL || config->interval_ps == 0) {
        return;
    }
    s->config = *config;
    check(config->delay_ps / config->interval_ps <= ROUTER_READINGS_MAX);
    /* One that is being read beside those under way. */
    s->capacity = (uint32_t)(config->delay_ps / config->interval_ps) + 2;
    s->queue = memory_zero(s->capacity, sizeof *s->queue);
}

void router_signals_free(struct router_signals *s)
{
    for (uint32_t i = 0; i < s->capacity; i++) {
        free(s->queue[i].slots);
    }
    free(s->queue);
    free(s->slots);
}

void router_signals_resize(struct router_signals *s, uint32_t slots)
{
    s->slots = memory_grow(s->slots, slots * sizeof *s->slots);
    for (; s->slot_count < slots; s->slot_count++) {
        s->slots[s->slot_count] = (struct router_slot){0};
    }
    for (uint32_t i = 0; i < s->capacity; i++) {
        s->queue[i].slots = memory_grow(s->queue[i].slots, slots * sizeof *s->queue[i].slots);
    }
    s->type->resize(s->state, slots);
}

void router_signals_ready(struct router_signals *s, uint32_t pool, uint32_t slot, bool ready)
{
    struct router_slot *known = &s->slots[slot];
    *known = (struct router_slot){.life = known->life + 1, .ready = ready};
    s->type->ready(s->state, pool, slot, ready);
}

/* The policy is told a load; where loads are read, the one it has, for its dispatch counts. */
static void tell(struct router_signals *s, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    if (s->type->load != NULL) {
        s->type->load(s->state, pool, slot,
                      router_signals_polled(s) ? s->slots[slot].known : in_flight);
    }
}

void router_signals_sent(struct router_signals *s, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    if (router_signals_polled(s)) {
        s->slots[slot].sent++;
        s->slots[slot].known += s->config.count_own;
    }
    tell(s, pool, slot, in_flight);
}

void router_signals_refused(struct router_signals *s, uint32_t pool, uint32_t slot,
                            uint32_t in_flight)
{
    tell(s, pool, slot, in_flight);
}

void router_signals_load(struct router_signals *s, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    if (!router_signals_polled(s)) {
        tell(s, pool, slot, in_flight);
    }
}

void router_signals_decided(struct router_signals *s, uint32_t slot, uint32_t in_flight)
{
    if (router_signals_polled(s)) {
        s->decisions++;
        s->stale += s->slots[slot].known != in_flight;
    }
}

void router_signals_begin(struct router_signals *s)
{
    check(s->count < s->capacity);
    s->queue[(s->first + s->count++) % s->capacity].count = 0;
}

void router_signals_read(struct router_signals *s, uint32_t pool, uint32_t slot,
                         const struct router_reading *reading)
{
    struct router_readings *newest = &s->queue[(s->first + s->count - 1) % s->capacity];
    const struct router_slot *known = &s->slots[slot];
    newest->slots[newest->count++] = (struct router_read){
        .reading = *reading, .pool = pool, .slot = slot, .life = known->life, .sent = known->sent};
}

void router_signals_deliver(struct router_signals *s)
{
    check(s->count > 0);
    const struct router_readings *oldest = &s->queue[s->first];
    s->first = (s->first + 1) % s->capacity;
    s->count--;
    for (uint32_t i = 0; i < oldest->count; i++) {
        const struct router_read *read = &oldest->slots[i];
        uint32_t slot = read->slot;
        struct router_slot *known = &s->slots[slot];
        if (!known->ready || known->life != read->life) {
            continue; /* another replica is there by now */
        }
        uint64_t own = s->config.count_own ? known->sent - read->sent : 0;
        known->known = read->reading.in_flight + (uint32_t)own;
        if (s->type->reading != NULL) {
            s->type->reading(s->state, read->pool, slot, &read->reading);
        }
        s->type->load(s->state, read->pool, slot, known->known);
    }
}
