#include "sim/fleet/prefix_index.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"

/* Nearly every node (a conversation) is held by one replica, which is kept in place; the few that
 * many hold (a shared prompt) have an array, sorted by slot. */
struct entry {
    uint64_t node;
    uint32_t count, capacity; /* holders; 0: a free place; capacity 0: `one` */
    union {
        struct prefix_holder one;
        struct prefix_holder *many; /* owned */
    } u;
};

struct prefix_index {
    struct entry *entries; /* owned; [mask + 1], linear probing */
    uint64_t mask, used;
    uint32_t *lives; /* owned; [slots] */
    uint32_t slots;
};

enum { ENTRIES_FIRST = 1024, MANY_FIRST = 4 };

struct prefix_index *prefix_index_create(uint32_t slots)
{
    struct prefix_index *index = memory_zero(1, sizeof *index);
    index->entries = memory_zero(ENTRIES_FIRST, sizeof *index->entries);
    index->mask = ENTRIES_FIRST - 1;
    prefix_index_resize(index, slots);
    return index;
}

void prefix_index_free(struct prefix_index *index)
{
    for (uint64_t i = 0; i <= index->mask; i++) {
        if (index->entries[i].capacity > 0) {
            free(index->entries[i].u.many);
        }
    }
    free(index->entries);
    free(index->lives);
    free(index);
}

void prefix_index_resize(struct prefix_index *index, uint32_t slots)
{
    index->lives = memory_grow(index->lives, slots * sizeof *index->lives);
    for (; index->slots < slots; index->slots++) {
        index->lives[index->slots] = 0;
    }
}

void prefix_index_forget(struct prefix_index *index, uint32_t slot)
{
    index->lives[slot]++;
}

bool prefix_index_holds(const struct prefix_index *index, const struct prefix_holder *holder)
{
    return index->lives[holder->slot] == holder->life;
}

static struct prefix_holder *holders(struct entry *e)
{
    return e->capacity == 0 ? &e->u.one : e->u.many;
}

/* The entry of a node, or the free one where it belongs. Keys are hashes already. */
static struct entry *entry_find(struct entry *entries, uint64_t mask, uint64_t node)
{
    uint64_t at = node & mask;
    while (entries[at].count > 0 && entries[at].node != node) {
        at = (at + 1) & mask;
    }
    return &entries[at];
}

/* Frees an entry and closes the gap: those behind it that could stand there move up. */
static void entry_remove(struct prefix_index *index, struct entry *e)
{
    if (e->capacity > 0) {
        free(e->u.many);
    }
    uint64_t gap = (uint64_t)(e - index->entries);
    for (uint64_t at = gap;;) {
        at = (at + 1) & index->mask;
        const struct entry *next = &index->entries[at];
        if (next->count == 0) {
            break;
        }
        uint64_t home = next->node & index->mask;
        if (((at - home) & index->mask) >= ((at - gap) & index->mask)) {
            index->entries[gap] = *next;
            gap = at;
        }
    }
    index->entries[gap] = (struct entry){0};
    index->used--;
}

/* Drops holders that are gone; returns how many are left. */
static uint32_t entry_prune(const struct prefix_index *index, struct entry *e)
{
    struct prefix_holder *held = holders(e);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (prefix_index_holds(index, &held[i])) {
            held[kept++] = held[i];
        }
    }
    return kept;
}

/* Makes room: forgets what replicas that are gone held, and doubles the table if that was not
 * enough. The one place where more prompts cost memory. */
static void index_grow(struct prefix_index *index)
{
    uint64_t alive = 0;
    for (uint64_t i = 0; i <= index->mask; i++) {
        struct entry *e = &index->entries[i];
        if (e->count > 0) {
            uint32_t kept = entry_prune(index, e);
            if (kept == 0 && e->capacity > 0) {
                free(e->u.many);
            }
            e->count = kept;
            alive += kept > 0;
        }
    }
    uint64_t mask = 2 * alive > index->mask ? 2 * index->mask + 1 : index->mask;
    struct entry *entries = memory_zero(mask + 1, sizeof *entries);
    for (uint64_t i = 0; i <= index->mask; i++) {
        if (index->entries[i].count > 0) {
            *entry_find(entries, mask, index->entries[i].node) = index->entries[i];
        }
    }
    free(index->entries);
    index->entries = entries;
    index->mask = mask;
    index->used = alive;
}

/* The first of its holders whose slot is not below this one. */
static uint32_t holder_place(const struct prefix_holder *held, uint32_t count, uint32_t slot)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (held[middle].slot < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void holder_add(struct entry *e, uint32_t at, struct prefix_holder holder)
{
    if (e->count == 0) {
        e->u.one = holder;
        e->count = 1;
        return;
    }
    if (e->count == 1 && e->capacity == 0) {
        struct prefix_holder one = e->u.one;
        e->u.many = memory_alloc(MANY_FIRST * sizeof *e->u.many);
        e->u.many[0] = one;
        e->capacity = MANY_FIRST;
    } else if (e->count == e->capacity) {
        e->capacity *= 2;
        e->u.many = memory_grow(e->u.many, e->capacity * sizeof *e->u.many);
    }
    memmove(&e->u.many[at + 1], &e->u.many[at], (e->count - at) * sizeof *e->u.many);
    e->u.many[at] = holder;
    e->count++;
}

void prefix_index_put(struct prefix_index *index, uint32_t slot, uint64_t node, uint32_t blocks)
{
    struct entry *e = entry_find(index->entries, index->mask, node);
    if (e->count == 0) {
        if (blocks == 0) {
            return;
        }
        if (4 * (index->used + 1) > 3 * index->mask) {
            index_grow(index);
            e = entry_find(index->entries, index->mask, node);
        }
        e->node = node;
        index->used++;
    }
    struct prefix_holder *held = holders(e);
    uint32_t at = holder_place(held, e->count, slot);
    bool there = at < e->count && held[at].slot == slot;
    struct prefix_holder holder = {.slot = slot, .blocks = blocks, .life = index->lives[slot]};
    if (blocks > 0 && there) {
        held[at] = holder;
    } else if (blocks > 0) {
        holder_add(e, at, holder);
    } else if (there) {
        e->count--;
        if (e->count == 0) {
            entry_remove(index, e);
        } else {
            memmove(&held[at], &held[at + 1], (e->count - at) * sizeof *held);
        }
    }
}

const struct prefix_holder *prefix_index_holders(const struct prefix_index *index, uint64_t node,
                                                 size_t *count)
{
    struct entry *e = entry_find(index->entries, index->mask, node);
    *count = e->count;
    return e->count == 0 ? NULL : holders(e);
}

uint32_t prefix_index_blocks(const struct prefix_index *index, uint64_t node, uint32_t slot)
{
    struct entry *e = entry_find(index->entries, index->mask, node);
    if (e->count == 0) {
        return 0;
    }
    const struct prefix_holder *held = holders(e);
    uint32_t at = holder_place(held, e->count, slot);
    return at < e->count && held[at].slot == slot && prefix_index_holds(index, &held[at])
               ? held[at].blocks
               : 0;
}
