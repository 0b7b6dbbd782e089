#include "sim/workload/prefix_study.h"

#include <stdbool.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

enum { MAP_MIN = 1 << 12, PLACES_MIN = 1 << 12, FREE = 0 };

struct prefix_study {
    int64_t block_size;

    /* Block ids → number of the block from 1: linear probing, at most half full. */
    uint64_t *keys;   /* owned; [map_size] */
    uint32_t *values; /* owned; [map_size]; FREE: none */
    size_t map_size;  /* a power of two */
    uint32_t blocks;

    /* The stack: places in order of last use, the latest highest. */
    uint32_t *place; /* owned; of each block, from 1; [block_capacity + 1] */
    uint32_t block_capacity;
    uint32_t *owner;  /* owned; block at each place, FREE: none; [place_capacity + 1] */
    uint32_t *counts; /* owned; binary indexed tree over owner; [place_capacity + 1] */
    uint32_t places, place_capacity;

    uint64_t *hits; /* owned; [block_capacity + 1]: hits by depth */
};

struct prefix_study *prefix_study_create(int64_t block_size)
{
    check(block_size >= 1);
    struct prefix_study *s = memory_zero(1, sizeof *s);
    s->block_size = block_size;
    s->map_size = MAP_MIN;
    s->keys = memory_zero(s->map_size, sizeof *s->keys);
    s->values = memory_zero(s->map_size, sizeof *s->values);
    s->place_capacity = PLACES_MIN;
    s->owner = memory_zero(s->place_capacity + 1, sizeof *s->owner);
    s->counts = memory_zero(s->place_capacity + 1, sizeof *s->counts);
    return s;
}

void prefix_study_free(struct prefix_study *s)
{
    if (!s)
        return;
    free(s->keys);
    free(s->values);
    free(s->place);
    free(s->owner);
    free(s->counts);
    free(s->hits);
    free(s);
}

/* ---- the map ---- */

/* Where the id is, or belongs. The mix is SplitMix64's finalizer. */
static size_t slot_of(const struct prefix_study *s, uint64_t id)
{
    uint64_t mixed = (id ^ id >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    size_t slot = (mixed ^ mixed >> 31) & (s->map_size - 1);
    while (s->values[slot] != FREE && s->keys[slot] != id)
        slot = (slot + 1) & (s->map_size - 1);
    return slot;
}

static void map_grow(struct prefix_study *s)
{
    uint64_t *keys = s->keys;
    uint32_t *values = s->values;
    size_t size = s->map_size;
    s->map_size = 2 * size;
    s->keys = memory_zero(s->map_size, sizeof *s->keys);
    s->values = memory_zero(s->map_size, sizeof *s->values);
    for (size_t i = 0; i < size; i++) {
        if (values[i] == FREE)
            continue;
        size_t slot = slot_of(s, keys[i]);
        s->keys[slot] = keys[i];
        s->values[slot] = values[i];
    }
    free(keys);
    free(values);
}

static uint32_t block_create(struct prefix_study *s, uint64_t id)
{
    if (2 * ((size_t)s->blocks + 1) > s->map_size)
        map_grow(s);
    check_limit(s->blocks < UINT32_MAX / 4, "more than 2^30 different blocks in one trace");
    uint32_t block = ++s->blocks;
    if (block > s->block_capacity) {
        uint32_t old = s->block_capacity;
        s->block_capacity = old ? 2 * old : MAP_MIN;
        s->place = memory_grow(s->place, ((size_t)s->block_capacity + 1) * sizeof *s->place);
        s->hits = memory_grow(s->hits, ((size_t)s->block_capacity + 1) * sizeof *s->hits);
        for (size_t i = old ? (size_t)old + 1 : 0; i <= s->block_capacity; i++)
            s->hits[i] = 0;
    }
    size_t slot = slot_of(s, id);
    s->keys[slot] = id;
    s->values[slot] = block;
    s->place[block] = 0;
    return block;
}

/* ---- the stack ---- */

static void count_change(struct prefix_study *s, uint32_t place, uint32_t by)
{
    for (; place <= s->place_capacity; place += place & -place)
        s->counts[place] += by;
}

/* Depth of a block from the top of the stack: 1 is the one used last. */
static uint32_t depth_of(const struct prefix_study *s, uint32_t block)
{
    uint32_t above = s->blocks;
    for (uint32_t place = s->place[block] - 1; place > 0; place -= place & -place)
        above -= s->counts[place];
    return above;
}

/* Closes the gaps, with room for as many new uses as there are blocks. */
static void places_compact(struct prefix_study *s)
{
    uint32_t capacity = s->blocks > PLACES_MIN / 2 ? 2 * s->blocks : PLACES_MIN;
    uint32_t *owner = memory_zero((size_t)capacity + 1, sizeof *owner);
    uint32_t kept = 0;
    for (uint32_t place = 1; place <= s->places; place++) {
        uint32_t block = s->owner[place];
        if (block == FREE)
            continue;
        owner[++kept] = block;
        s->place[block] = kept;
    }
    free(s->owner);
    free(s->counts);
    s->owner = owner;
    s->places = kept;
    s->place_capacity = capacity;
    s->counts = memory_zero((size_t)capacity + 1, sizeof *s->counts);
    for (uint32_t place = 1; place <= kept; place++)
        count_change(s, place, 1);
}

static void block_use(struct prefix_study *s, uint32_t block)
{
    if (s->places == s->place_capacity)
        places_compact(s);
    uint32_t old = s->place[block];
    if (old) {
        s->owner[old] = FREE;
        count_change(s, old, UINT32_MAX); /* −1 */
    }
    s->place[block] = ++s->places;
    s->owner[s->places] = block;
    count_change(s, s->places, 1);
}

void prefix_study_add(struct prefix_study *s, const uint64_t *ids, size_t count,
                      uint32_t prompt_tokens)
{
    size_t full = (size_t)(prompt_tokens / s->block_size);
    size_t usable = prompt_tokens ? (size_t)((prompt_tokens - 1) / s->block_size) : 0;
    count = count < full ? count : full;
    uint32_t deepest = 0;
    for (size_t i = 0; i < count && i < usable; i++) {
        uint32_t block = s->values[slot_of(s, ids[i])];
        if (block == FREE)
            break;
        uint32_t depth = depth_of(s, block);
        deepest = depth > deepest ? depth : deepest;
        s->hits[deepest]++;
    }
    /* The tail first, so that it is the first to go. */
    for (size_t i = count; i-- > 0;) {
        uint32_t block = s->values[slot_of(s, ids[i])];
        block_use(s, block != FREE ? block : block_create(s, ids[i]));
    }
}

uint64_t prefix_study_blocks(const struct prefix_study *s)
{
    return s->blocks;
}

uint64_t prefix_study_hits(const struct prefix_study *s, uint64_t capacity)
{
    uint64_t hits = 0;
    for (uint64_t depth = 1; depth <= s->blocks && depth <= capacity; depth++)
        hits += s->hits[depth];
    return hits;
}
