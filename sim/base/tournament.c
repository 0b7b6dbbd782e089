#include "sim/base/tournament.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

static uint32_t tournament_leaves(uint32_t slots)
{
    check(slots <= UINT32_C(1) << 30);
    uint32_t leaves = 1;
    while (leaves < slots) {
        leaves *= 2;
    }
    return leaves;
}

/* Plays every match anew; O(leaves). */
static void tournament_rebuild(struct tournament *t)
{
    for (uint32_t i = 0; i < t->leaves; i++) {
        t->winner[t->leaves + i] = i;
    }
    for (uint32_t node = t->leaves - 1; node >= 1; node--) {
        uint32_t left = t->winner[2 * node], right = t->winner[2 * node + 1];
        t->winner[node] = t->keys[right] < t->keys[left] ? right : left;
    }
}

void tournament_init(struct tournament *t, uint32_t slots)
{
    t->leaves = 0;
    t->slots = 0;
    t->keys = NULL;
    t->winner = NULL;
    tournament_resize(t, slots);
}

void tournament_free(struct tournament *t)
{
    free(t->keys);
    free(t->winner);
    t->keys = NULL;
    t->winner = NULL;
    t->leaves = 0;
    t->slots = 0;
}

void tournament_resize(struct tournament *t, uint32_t slots)
{
    check(slots >= t->slots);
    uint32_t leaves = tournament_leaves(slots), old = t->leaves;
    t->slots = slots;
    if (leaves == old) {
        return; /* the spare leaves are idle already */
    }
    t->keys = memory_grow(t->keys, leaves * sizeof(*t->keys));
    t->winner = memory_grow(t->winner, 2 * (size_t)leaves * sizeof(*t->winner));
    for (uint32_t i = old; i < leaves; i++) {
        t->keys[i] = TOURNAMENT_IDLE;
    }
    t->winner[0] = 0; /* not a node; set so that no copy of the array reads an unset word */
    t->leaves = leaves;
    tournament_rebuild(t);
}
