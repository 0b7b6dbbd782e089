#include "sim/base/tournament.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

/* Plays every match anew; O(slots). */
static void tournament_rebuild(struct tournament *t)
{
    for (uint32_t node = t->slots - 1; node >= 1; node--) {
        uint128 left = t->ranks[2 * node], right = t->ranks[2 * node + 1];
        t->ranks[node] = left < right ? left : right;
    }
}

void tournament_init(struct tournament *t, uint32_t slots)
{
    *t = (struct tournament){0};
    tournament_resize(t, slots);
}

void tournament_free(struct tournament *t)
{
    free(t->ranks);
    *t = (struct tournament){0};
}

void tournament_resize(struct tournament *t, uint32_t slots)
{
    check(slots >= t->slots && slots <= UINT32_C(1) << 30);
    uint32_t old = t->slots;
    slots = slots > 1 ? slots : 1;
    if (slots == old) {
        return;
    }
    t->ranks = memory_grow(t->ranks, 2 * (size_t)slots * sizeof *t->ranks);
    t->ranks[0] = 0; /* not a node; set so that no copy of the array reads an unset word */
    memmove(&t->ranks[slots], &t->ranks[old], old * sizeof *t->ranks);
    for (uint32_t slot = old; slot < slots; slot++) {
        t->ranks[slots + slot] = tournament_rank(TOURNAMENT_IDLE, slot);
    }
    t->slots = slots;
    tournament_rebuild(t);
}
