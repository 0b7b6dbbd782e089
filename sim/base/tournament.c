#include "sim/base/tournament.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

/* Plays every match anew; O(slots). */
static void tournament_rebuild(struct tournament *t)
{
    for (uint32_t node = t->slots - 1; node >= 1; node--) {
        uint32_t left = 2 * node, right = left + 1;
        bool first = tournament_rank(t->keys[left], t->winners[left]) <
                     tournament_rank(t->keys[right], t->winners[right]);
        t->keys[node] = t->keys[first ? left : right];
        t->winners[node] = t->winners[first ? left : right];
    }
}

void tournament_init(struct tournament *t, uint32_t slots)
{
    *t = (struct tournament){0};
    tournament_resize(t, slots);
}

void tournament_free(struct tournament *t)
{
    free(t->keys);
    free(t->winners);
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
    t->keys = memory_grow(t->keys, 2 * (size_t)slots * sizeof *t->keys);
    t->winners = memory_grow(t->winners, 2 * (size_t)slots * sizeof *t->winners);
    t->keys[0] = 0; /* not a node; set so that no copy of the arrays reads an unset word */
    t->winners[0] = 0;
    memmove(&t->keys[slots], &t->keys[old], old * sizeof *t->keys);
    for (uint32_t slot = 0; slot < slots; slot++) {
        t->winners[slots + slot] = slot;
        if (slot >= old) {
            t->keys[slots + slot] = TOURNAMENT_IDLE;
        }
    }
    t->slots = slots;
    tournament_rebuild(t);
}
