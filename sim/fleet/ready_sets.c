#include "sim/fleet/ready_sets.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

struct ready_set *ready_sets_create(uint32_t pool_count)
{
    return memory_zero(pool_count, sizeof(struct ready_set));
}

void ready_sets_free(struct ready_set *sets, uint32_t pool_count)
{
    for (uint32_t i = 0; i < pool_count; i++) {
        free(sets[i].slots);
    }
    free(sets);
}

/* The first place whose slot is not below this one. */
static uint32_t place(const struct ready_set *set, uint32_t slot)
{
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->slots[middle] < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void ready_sets_put(struct ready_set *set, uint32_t slot, bool ready)
{
    uint32_t at = place(set, slot);
    bool there = at < set->count && set->slots[at] == slot;
    check(there != ready);
    if (ready) {
        if (set->count == set->capacity) {
            set->capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
            set->slots = memory_grow(set->slots, set->capacity * sizeof *set->slots);
        }
        memmove(&set->slots[at + 1], &set->slots[at], (set->count - at) * sizeof *set->slots);
        set->slots[at] = slot;
        set->count++;
    } else {
        set->count--;
        memmove(&set->slots[at], &set->slots[at + 1], (set->count - at) * sizeof *set->slots);
    }
}

uint64_t ready_sets_count(const struct ready_set *sets, const uint32_t *pools, uint32_t pool_count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < pool_count; i++) {
        total += sets[pools[i]].count;
    }
    return total;
}

uint32_t ready_sets_at(const struct ready_set *sets, const uint32_t *pools, uint64_t index)
{
    for (uint32_t i = 0;; i++) {
        const struct ready_set *set = &sets[pools[i]];
        if (index < set->count) {
            return set->slots[index];
        }
        index -= set->count;
    }
}
