/* A session stays with the replica that had its first turn, as a cookie would have it, as long as
 * that one takes requests; then, and for requests without a session, the least loaded. What it has
 * cached of the session is never looked at.
 *
 * Which replica a session is with lives in one open-addressing table, 16 bytes a session, until the
 * session is over; of a trace's sessions nobody knows when that is. A slot's number is not enough,
 * for a replica may have come in another's place: each carries a count of how often it became
 * ready. */
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/fleet/router.h"
#include "sim/fleet/router_ranked.h"

struct session_sticky_config {
    struct router_signal_config signals;
};

static const struct field fields[] = {
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct session_sticky_config, signals),
     .fields = router_signal_fields,
     .doc = ROUTER_SIGNALS_DOC},
    {0},
};

enum { HOMES_FIRST = 1024, NO_POOL = UINT32_MAX };

/* Where a session is. */
struct home {
    uint64_t session; /* its key; 0: nobody's */
    uint32_t slot, life;
};

/* A slot: whom it belongs to and how often. */
struct place {
    uint32_t pool; /* NO_POOL: takes no requests */
    uint32_t life;
};

struct session_sticky {
    struct router_ranked *ranked; /* owned */
    struct home *homes;           /* owned; [home_mask + 1] */
    uint64_t home_mask, home_count;
    struct place *places; /* owned; [slots] */
    uint32_t slots;
};

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    struct session_sticky *r = memory_zero(1, sizeof *r);
    r->ranked = router_ranked_create(env, true);
    r->homes = memory_zero(HOMES_FIRST, sizeof *r->homes);
    r->home_mask = HOMES_FIRST - 1;
    r->slots = env->slots;
    r->places = memory_alloc(env->slots * sizeof *r->places);
    for (uint32_t i = 0; i < env->slots; i++) {
        r->places[i] = (struct place){.pool = NO_POOL};
    }
    return r;
}

static void destroy(void *state)
{
    struct session_sticky *r = state;
    router_ranked_destroy(r->ranked);
    free(r->homes);
    free(r->places);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    struct session_sticky *r = state;
    router_ranked_resize(r->ranked, slots);
    r->places = memory_grow(r->places, slots * sizeof *r->places);
    for (; r->slots < slots; r->slots++) {
        r->places[r->slots] = (struct place){.pool = NO_POOL};
    }
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    struct session_sticky *r = state;
    router_ranked_ready(r->ranked, pool, slot, is_ready);
    r->places[slot].pool = is_ready ? pool : NO_POOL;
    r->places[slot].life += is_ready;
}

static void load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    router_ranked_load(((struct session_sticky *)state)->ranked, pool, slot, in_flight);
}

/* Never 0. The finalizer of SplitMix64 is a bijection, so sessions of one class never share a key;
 * those of different classes do so by a chance of 2^-64 per pair. */
static uint64_t session_key(const struct request *request)
{
    uint64_t class_mix = ((uint64_t)request->class_index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (uint64_t)request->session ^ class_mix;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return z == 0 ? 1 : z;
}

/* The entry of a session, or the free one where it belongs. */
static struct home *home_find(struct home *homes, uint64_t mask, uint64_t session)
{
    uint64_t at = session & mask;
    while (homes[at].session != 0 && homes[at].session != session) {
        at = (at + 1) & mask;
    }
    return &homes[at];
}

/* Twice the room: the one place where more sessions cost memory. */
static void homes_grow(struct session_sticky *r)
{
    uint64_t mask = 2 * r->home_mask + 1;
    struct home *homes = memory_zero(mask + 1, sizeof *homes);
    for (uint64_t i = 0; i <= r->home_mask; i++) {
        if (r->homes[i].session != 0) {
            *home_find(homes, mask, r->homes[i].session) = r->homes[i];
        }
    }
    free(r->homes);
    r->homes = homes;
    r->home_mask = mask;
}

/* Forgets a session, and closes the gap: those behind it that could stand there move up. */
static void over(void *state, const struct request *request)
{
    struct session_sticky *r = state;
    struct home *home = home_find(r->homes, r->home_mask, session_key(request));
    if (home->session == 0) {
        return; /* it never got a replica */
    }
    uint64_t gap = (uint64_t)(home - r->homes);
    for (uint64_t at = (gap + 1) & r->home_mask; r->homes[at].session != 0;
         at = (at + 1) & r->home_mask) {
        uint64_t wanted = r->homes[at].session & r->home_mask;
        if (((at - wanted) & r->home_mask) >= ((at - gap) & r->home_mask)) {
            r->homes[gap] = r->homes[at];
            gap = at;
        }
    }
    r->homes[gap] = (struct home){0};
    r->home_count--;
}

static bool allowed(uint32_t pool, const uint32_t *pools, uint32_t pool_count)
{
    for (uint32_t i = 0; i < pool_count; i++) {
        if (pools[i] == pool) {
            return true;
        }
    }
    return false;
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    struct session_sticky *r = state;
    if (request->session < 0) {
        return router_ranked_pick(r->ranked, request, pools, pool_count);
    }
    uint64_t session = session_key(request);
    struct home *home = home_find(r->homes, r->home_mask, session);
    if (home->session != 0) {
        const struct place *place = &r->places[home->slot];
        if (place->life == home->life && allowed(place->pool, pools, pool_count)) {
            router_ranked_sent(r->ranked, place->pool, home->slot);
            return home->slot;
        }
    }
    uint32_t slot = router_ranked_pick(r->ranked, request, pools, pool_count);
    if (slot == ROUTER_NONE) {
        return ROUTER_NONE;
    }
    if (home->session == 0 && 4 * ++r->home_count > 3 * r->home_mask) {
        homes_grow(r);
        home = home_find(r->homes, r->home_mask, session);
    }
    *home = (struct home){.session = session, .slot = slot, .life = r->places[slot].life};
    return slot;
}

static const struct router_signal_config *signals(const void *config)
{
    return &((const struct session_sticky_config *)config)->signals;
}

static const struct router_type session_sticky = {
    .create = create,
    .destroy = destroy,
    .resize = resize,
    .ready = ready,
    .load = load,
    .pick = pick,
    .over = over,
    .signals = signals,
};

const struct variant router_session_sticky_variant = {
    .name = "session_sticky",
    .doc = "The replica that had the session's first turn; else the least loaded",
    .fields = fields,
    .size = sizeof(struct session_sticky_config),
    .ops = &session_sticky,
};
