#include "sim/base/rank_tree.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

void rank_tree_init(struct rank_tree *t, uint32_t slots)
{
    check(slots >= 1 && slots <= RANK_TREE_SLOTS_MAX);
    *t = (struct rank_tree){
        .slots = slots,
        .slot_bits = slots > 1 ? 32u - (uint32_t)__builtin_clz(slots - 1) : 1,
        .nodes = memory_alloc(2 * (size_t)slots * sizeof *t->nodes),
    };
    t->nodes[0] = 0; /* not a node; set so that no copy of the array reads an unset word */
    for (uint32_t slot = 0; slot < slots; slot++) {
        t->nodes[slots + slot] = rank_tree_idle(t) << t->slot_bits | slot;
    }
    for (uint32_t node = slots - 1; node >= 1; node--) {
        uint64_t left = t->nodes[2 * node], right = t->nodes[2 * node + 1];
        t->nodes[node] = left < right ? left : right;
    }
}

void rank_tree_free(struct rank_tree *t)
{
    free(t->nodes);
    *t = (struct rank_tree){0};
}
