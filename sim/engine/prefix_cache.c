#include "sim/engine/prefix_cache.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/engine/prefix_chain.h"
#include "sim/engine/sequence.h"

enum { NONE = PREFIX_CACHE_NONE };

/* A part's stretch of blocks. Those before `held` are referenced, those before `length` cached; the
 * holders at the deepest depth are counted here (running sequences that end there, and children
 * that are referenced themselves), the others in a list, deepest first: nearly always empty. */
struct prefix_node {
    uint64_t key; /* path key; the table's */
    uint64_t id;
    uint32_t parent; /* NONE: it begins the chain */
    uint32_t first;  /* its first block's number in the chain */
    uint32_t length, held;
    uint32_t holders, partials;
    uint32_t tips, tip; /* open sequences whose next block is here: count, and xor of indices */
    uint32_t children;  /* nodes behind it */
    uint32_t newest;    /* its newest free stretch */
    uint32_t known;     /* blocks that the listener may know of: see prefix_cache_know */
    uint32_t told;      /* blocks that it knows of */
    uint32_t next;      /* in the list of changed nodes, or of unused ones */
    bool queued;        /* in the list of changed nodes */
    bool own;           /* of one request only: nobody else will ever hit it */
};

struct prefix_partial {
    uint32_t depth, holders, next;
};

struct prefix_cache *prefix_cache_create(uint32_t block_size, int64_t total, bool listened)
{
    struct prefix_cache *c = memory_zero(1, sizeof *c);
    *c = (struct prefix_cache){.block_size = block_size,
                               .listened = listened,
                               .spare = NONE,
                               .partial_spare = NONE,
                               .changed = NONE};
    free_queue_init(&c->queue, total);
    return c;
}

void prefix_cache_free(struct prefix_cache *c)
{
    if (c == NULL) {
        return;
    }
    free_queue_free(&c->queue);
    free(c->nodes);
    free(c->table);
    free(c->partials);
    free(c);
}

/* ---- nodes and their table ---------------------------------------------------------------------
 */

static void table_put(struct prefix_cache *c, uint32_t index)
{
    uint32_t mask = c->table_size - 1;
    uint32_t i = (uint32_t)c->nodes[index].key & mask;
    while (c->table[i] != NONE) {
        i = (i + 1) & mask;
    }
    c->table[i] = index;
}

/* At most half of the table is in use, so that searches stay short. */
static void table_reserve(struct prefix_cache *c)
{
    if (2 * (c->count + 1) <= c->table_size) {
        return;
    }
    uint32_t *old = c->table;
    uint32_t old_size = c->table_size;
    c->table_size = old_size == 0 ? 32 : 2 * old_size;
    check_limit(c->table_size > old_size, "a replica's prefix cache has %u entries", c->count);
    c->table = memory_alloc(c->table_size * sizeof *c->table);
    for (uint32_t i = 0; i < c->table_size; i++) {
        c->table[i] = NONE;
    }
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i] != NONE) {
            table_put(c, old[i]);
        }
    }
    free(old);
}

/* Closes the gap that a removal leaves in a run of linear probing. */
static void table_remove(struct prefix_cache *c, uint32_t index)
{
    uint32_t mask = c->table_size - 1;
    uint32_t gap = (uint32_t)c->nodes[index].key & mask;
    while (c->table[gap] != index) {
        gap = (gap + 1) & mask;
    }
    for (uint32_t i = (gap + 1) & mask; c->table[i] != NONE; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)c->nodes[c->table[i]].key & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            c->table[gap] = c->table[i];
            gap = i;
        }
    }
    c->table[gap] = NONE;
}

static uint64_t key_behind(const struct prefix_cache *c, uint32_t parent,
                           const struct prefix_part *part)
{
    return prefix_chain_key(parent == NONE ? 0 : c->nodes[parent].key, part);
}

static uint32_t find(const struct prefix_cache *c, uint32_t parent, uint64_t key,
                     const struct prefix_part *part)
{
    if (c->table_size == 0) {
        return NONE;
    }
    uint32_t mask = c->table_size - 1;
    for (uint32_t i = (uint32_t)key & mask; c->table[i] != NONE; i = (i + 1) & mask) {
        const struct prefix_node *node = &c->nodes[c->table[i]];
        if (node->key == key && node->parent == parent && node->id == part->id) {
            return c->table[i];
        }
    }
    return NONE;
}

/* The node of a part behind parent, made if need be. Grows the arrays: the one place where contents
 * cost memory. */
static uint32_t find_or_make(struct prefix_cache *c, uint32_t parent,
                             const struct prefix_part *part)
{
    uint64_t key = key_behind(c, parent, part);
    uint32_t index = find(c, parent, key, part);
    if (index != NONE) {
        return index;
    }
    if (c->spare == NONE) {
        uint32_t old = c->capacity;
        c->capacity = old == 0 ? 16 : old + old / 2;
        check_limit(c->capacity > old, "a replica's prefix cache has %u entries", c->count);
        c->nodes = memory_grow(c->nodes, c->capacity * sizeof *c->nodes);
        for (uint32_t i = c->capacity; i > old; i--) {
            c->nodes[i - 1].next = c->spare;
            c->spare = i - 1;
        }
    }
    index = c->spare;
    c->spare = c->nodes[index].next;
    c->nodes[index] = (struct prefix_node){.key = key,
                                           .id = part->id,
                                           .parent = parent,
                                           .first = part->first,
                                           .partials = NONE,
                                           .newest = FREE_QUEUE_NONE,
                                           .own = part->kind == PREFIX_CHAIN_OWN};
    table_reserve(c);
    table_put(c, index);
    c->count++;
    if (parent != NONE) {
        c->nodes[parent].children++;
    }
    return index;
}

/* Forgets a node that means nothing any more, and those above it that only led there. */
static void drop_if_empty(struct prefix_cache *c, uint32_t index)
{
    while (index != NONE) {
        struct prefix_node *node = &c->nodes[index];
        if (node->length > 0 || node->tips > 0 || node->children > 0 || node->queued) {
            return;
        }
        debug_check(node->held == 0 && node->newest == FREE_QUEUE_NONE);
        uint32_t parent = node->parent;
        table_remove(c, index);
        c->count--;
        node->next = c->spare;
        c->spare = index;
        if (parent != NONE) {
            c->nodes[parent].children--;
        }
        index = parent;
    }
}

static void know(struct prefix_cache *c, uint32_t index, uint32_t blocks)
{
    struct prefix_node *node = &c->nodes[index];
    node->known = blocks;
    if (!node->queued) {
        node->queued = true;
        node->next = c->changed;
        c->changed = index;
    }
}

/* Its cached blocks become more or fewer by `by`. */
static void lengthen(struct prefix_cache *c, uint32_t index, int64_t by)
{
    struct prefix_node *node = &c->nodes[index];
    node->length = (uint32_t)(node->length + by);
    c->common += node->own ? 0 : by;
    if (node->known > node->length) {
        know(c, index, node->length);
    }
}

/* How many blocks of its parent lie before it. */
static uint32_t attached_at(const struct prefix_cache *c, const struct prefix_node *node)
{
    return node->first - c->nodes[node->parent].first;
}

/* ---- who references what -----------------------------------------------------------------------
 */

static uint32_t partial_acquire(struct prefix_cache *c)
{
    if (c->partial_spare == NONE) {
        uint32_t old = c->partial_capacity;
        c->partial_capacity = old == 0 ? 16 : 2 * old;
        c->partials = memory_grow(c->partials, c->partial_capacity * sizeof *c->partials);
        for (uint32_t i = c->partial_capacity; i > old; i--) {
            c->partials[i - 1].next = c->partial_spare;
            c->partial_spare = i - 1;
        }
    }
    uint32_t index = c->partial_spare;
    c->partial_spare = c->partials[index].next;
    return index;
}

/* More holders of the first `depth` blocks of a node, fewer than its `held`. */
static void partial_add(struct prefix_cache *c, uint32_t index, uint32_t depth, uint32_t holders)
{
    uint32_t before = NONE, behind = c->nodes[index].partials;
    while (behind != NONE && c->partials[behind].depth > depth) {
        before = behind;
        behind = c->partials[behind].next;
    }
    if (behind != NONE && c->partials[behind].depth == depth) {
        c->partials[behind].holders += holders;
        return;
    }
    uint32_t made = partial_acquire(c);
    c->partials[made] = (struct prefix_partial){depth, holders, behind};
    *(before == NONE ? &c->nodes[index].partials : &c->partials[before].next) = made;
}

static void partial_remove(struct prefix_cache *c, uint32_t index, uint32_t depth)
{
    uint32_t before = NONE, i = c->nodes[index].partials;
    while (c->partials[i].depth > depth) {
        before = i;
        i = c->partials[i].next;
    }
    debug_check(c->partials[i].depth == depth);
    if (--c->partials[i].holders > 0) {
        return;
    }
    *(before == NONE ? &c->nodes[index].partials : &c->partials[before].next) = c->partials[i].next;
    c->partials[i].next = c->partial_spare;
    c->partial_spare = i;
}

/* The deepest holders have left: the next ones are. Returns how many blocks nobody references. */
static uint32_t partial_rise(struct prefix_cache *c, struct prefix_node *node)
{
    uint32_t held = node->held, i = node->partials;
    if (i == NONE) {
        node->held = node->holders = 0;
        return held;
    }
    node->held = c->partials[i].depth;
    node->holders = c->partials[i].holders;
    node->partials = c->partials[i].next;
    c->partials[i].next = c->partial_spare;
    c->partial_spare = i;
    return held - node->held;
}

/* One more holder of the first `depth` cached blocks of a node and of all before it. Returns how
 * many of these were free. */
static int64_t hold_add(struct prefix_cache *c, uint32_t index, uint32_t depth)
{
    int64_t taken = 0;
    while (index != NONE) {
        struct prefix_node *node = &c->nodes[index];
        bool was_held = node->held > 0;
        if (depth < node->held) {
            partial_add(c, index, depth, 1);
        } else if (depth == node->held) {
            node->holders++;
        } else {
            if (was_held) {
                partial_add(c, index, node->held, node->holders);
            }
            free_queue_pull(&c->queue, &node->newest, depth - node->held);
            taken += depth - node->held;
            node->held = depth;
            node->holders = 1;
        }
        if (was_held || node->parent == NONE) {
            break;
        }
        depth = attached_at(c, node);
        index = node->parent;
    }
    return taken;
}

/* The reverse: blocks that nobody references any more go to the free queue, last to first. */
static int64_t hold_drop(struct prefix_cache *c, uint32_t index, uint32_t depth)
{
    int64_t freed = 0;
    while (index != NONE) {
        struct prefix_node *node = &c->nodes[index];
        if (depth < node->held) {
            partial_remove(c, index, depth);
            break;
        }
        debug_check(depth == node->held && node->holders > 0);
        if (--node->holders > 0) {
            break;
        }
        uint32_t blocks = partial_rise(c, node);
        free_queue_push(&c->queue, index, &node->newest, blocks);
        freed += blocks;
        if (node->held > 0 || node->parent == NONE) {
            break;
        }
        depth = attached_at(c, node);
        index = node->parent;
    }
    return freed;
}

/* A holder of all of a node publishes n blocks more of it: what it held of the parent it holds by
 * way of this node from the first one on. */
static void hold_extend(struct prefix_cache *c, uint32_t index, uint32_t n)
{
    struct prefix_node *node = &c->nodes[index];
    debug_check(node->held == node->length && node->newest == FREE_QUEUE_NONE);
    if (node->holders > 1) {
        partial_add(c, index, node->held, node->holders - 1);
    }
    node->holders = 1;
    node->held += n;
    lengthen(c, index, n);
}

/* ---- sequences ---------------------------------------------------------------------------------
 */

bool prefix_cache_watched(const struct prefix_cache *c, const struct prefix_hold *hold)
{
    if (!hold->open) {
        return false;
    }
    const struct prefix_node *node = &c->nodes[hold->node];
    return node->tips > 1 || hold->depth < node->length;
}

/* An open sequence becomes a tip at the node of its next block. */
static void tip_enter(struct prefix_cache *c, struct prefix_hold *hold, uint32_t sequence,
                      const struct request *request)
{
    if (hold->blocks == hold->end) {
        struct prefix_part part = prefix_chain_part(request, c->block_size, hold->blocks);
        hold->node = find_or_make(c, hold->node, &part);
        hold->depth = 0;
        hold->end = part.end;
    }
    c->nodes[hold->node].tips++;
    c->nodes[hold->node].tip ^= sequence;
    c->watch |= prefix_cache_watched(c, hold);
}

static void tip_leave(struct prefix_cache *c, const struct prefix_hold *hold, uint32_t sequence)
{
    c->nodes[hold->node].tips--;
    c->nodes[hold->node].tip ^= sequence;
}

/* A hold at a node of which it has nothing becomes one at the node above. */
static void hold_lift(struct prefix_cache *c, struct prefix_hold *hold)
{
    uint32_t index = hold->node;
    if (index != NONE && hold->depth == 0) {
        const struct prefix_node *node = &c->nodes[index];
        hold->depth = node->parent == NONE ? 0 : attached_at(c, node);
        hold->node = node->parent;
        drop_if_empty(c, index);
    }
}

int64_t prefix_cache_take(struct prefix_cache *c, struct prefix_hold *hold, uint32_t sequence,
                          const struct request *request, const struct prefix_match *match)
{
    debug_check(hold->node == NONE && hold->blocks == 0);
    *hold = (struct prefix_hold){match->node, match->depth, match->blocks, match->end, true};
    int64_t taken = hold_add(c, match->node, match->depth);
    tip_enter(c, hold, sequence, request);
    return taken;
}

uint32_t prefix_cache_rival(const struct prefix_cache *c, const struct prefix_hold *hold,
                            uint32_t sequence)
{
    const struct prefix_node *node = &c->nodes[hold->node];
    return node->tips == 2 ? node->tip ^ sequence : (uint32_t)SEQUENCE_NONE;
}

void prefix_cache_advance(struct prefix_cache *c, struct prefix_hold *hold, uint32_t sequence,
                          const struct request *request, uint32_t blocks)
{
    while (hold->open && hold->blocks < blocks) {
        if (hold->depth < c->nodes[hold->node].length) { /* somebody else was first */
            tip_leave(c, hold, sequence);
            hold->open = false;
            hold_lift(c, hold);
            return;
        }
        uint32_t end = hold->end < blocks ? hold->end : blocks;
        uint32_t n = end - hold->blocks;
        hold_extend(c, hold->node, n);
        hold->depth += n;
        hold->blocks = end;
        if (end == hold->end) {
            tip_leave(c, hold, sequence);
            tip_enter(c, hold, sequence, request);
        }
    }
}

/* The block that a sequence published last loses its content: nobody has seen it. */
static void retract(struct prefix_cache *c, struct prefix_hold *hold)
{
    hold_lift(c, hold);
    uint32_t index = hold->node;
    struct prefix_node *node = &c->nodes[index];
    check(hold->depth == node->length && hold->depth == node->held && node->holders == 1);
    lengthen(c, index, -1);
    hold->depth--;
    hold->blocks--;
    node->held--;
    if (node->held == 0) {
        node->holders = 0; /* what it held above by way of this node it holds directly now */
        hold_lift(c, hold);
    } else if (node->partials != NONE && c->partials[node->partials].depth == node->held) {
        (void)partial_rise(c, node);
        node->holders++;
    }
}

int64_t prefix_cache_release(struct prefix_cache *c, struct prefix_hold *hold, uint32_t sequence,
                             int64_t total, uint32_t keep, bool ended)
{
    if (hold->open) {
        tip_leave(c, hold, sequence);
    }
    if (hold->blocks > keep) {
        check(hold->blocks == keep + 1);
        retract(c, hold);
    }
    hold_lift(c, hold);
    int64_t freed = total - hold->blocks;
    uint32_t index = hold->node, depth = hold->depth;
    if (ended && index != NONE) {
        struct prefix_node *node = &c->nodes[index];
        if (node->own && depth == node->length && node->newest == FREE_QUEUE_NONE) {
            /* Nobody will ever ask for these again: a count will do. */
            freed += depth;
            depth = node->parent == NONE ? 0 : attached_at(c, node);
            hold->node = node->parent;
            node->held = node->holders = 0;
            lengthen(c, index, -(int64_t)node->length);
            drop_if_empty(c, index);
            index = hold->node;
        }
    }
    free_queue_push_bare(&c->queue, freed);
    freed += hold_drop(c, index, depth);
    *hold = prefix_cache_hold();
    return freed;
}

/* ---- looking and evicting ----------------------------------------------------------------------
 */

void prefix_cache_settle(struct prefix_cache *c, int64_t available)
{
    if (!c->queue.kept) {
        return;
    }
    int64_t excess = free_queue_count(&c->queue) - available;
    debug_check(excess >= 0);
    while (excess > 0) {
        uint32_t index;
        bool gone;
        int64_t n = free_queue_pop(&c->queue, excess, &index, &gone);
        excess -= n;
        if (index != FREE_QUEUE_NONE) {
            c->nodes[index].newest = gone ? FREE_QUEUE_NONE : c->nodes[index].newest;
            lengthen(c, index, -n);
            if (c->nodes[index].length == 0) {
                drop_if_empty(c, index);
            }
        }
    }
}

void prefix_cache_look(const struct prefix_cache *c, const struct request *request, uint32_t limit,
                       bool referenced, struct prefix_match *match)
{
    *match = (struct prefix_match){.node = NONE, .publisher = SEQUENCE_NONE};
    while (match->blocks < limit) {
        struct prefix_part part = prefix_chain_part(request, c->block_size, match->blocks);
        uint32_t index = find(c, match->node, key_behind(c, match->node, &part), &part);
        if (index == NONE) {
            return;
        }
        const struct prefix_node *node = &c->nodes[index];
        uint32_t want = (part.end < limit ? part.end : limit) - part.first;
        uint32_t have = referenced ? node->held : node->length;
        have = have < want ? have : want;
        if (have > 0) {
            match->node = index;
            match->depth = have;
            match->end = part.end;
            match->blocks += have;
        }
        if (have < want) {
            match->may_grow = node->tips > 0;
            match->publisher = node->tips == 1 ? node->tip : (uint32_t)SEQUENCE_NONE;
            return;
        }
    }
}

int64_t prefix_cache_common(const struct prefix_cache *c, int64_t available)
{
    int64_t common = c->common;
    int64_t excess = c->queue.kept ? free_queue_count(&c->queue) - available : 0;
    excess -= c->queue.kept ? c->queue.never : 0;
    for (uint32_t i = c->queue.head; excess > 0; i = c->queue.items[i].next) {
        const struct free_stretch *s = &c->queue.items[i];
        int64_t n = s->blocks < excess ? s->blocks : excess;
        common -= s->node != FREE_QUEUE_NONE && !c->nodes[s->node].own ? n : 0;
        excess -= n;
    }
    return common;
}

void prefix_cache_know(struct prefix_cache *c, const struct prefix_hold *hold, uint32_t blocks)
{
    if (!c->listened) {
        return;
    }
    uint32_t end = hold->blocks < blocks ? hold->blocks : blocks;
    for (uint32_t index = hold->node; index != NONE; index = c->nodes[index].parent) {
        const struct prefix_node *node = &c->nodes[index];
        if (node->first >= end) {
            continue;
        }
        uint32_t depth = end - node->first, before = node->known;
        if (depth > before && !node->own) {
            know(c, index, depth);
        }
        if (before > 0) {
            return; /* so all before it is known */
        }
        end = node->first;
    }
}

void prefix_cache_report(struct prefix_cache *c, const struct prefix_listener *listener,
                         uint32_t slot)
{
    uint32_t next;
    for (uint32_t index = c->changed; index != NONE; index = next) {
        struct prefix_node *node = &c->nodes[index];
        next = node->next;
        node->queued = false;
        if (node->known != node->told) {
            node->told = node->known;
            listener->changed(listener->self, slot, node->key, node->known);
        }
        if (node->length == 0) {
            drop_if_empty(c, index);
        }
    }
    c->changed = NONE;
}

static int64_t stretches_of(const struct prefix_cache *c, const struct prefix_node *node)
{
    int64_t blocks = 0;
    for (uint32_t i = node->newest; i != FREE_QUEUE_NONE; i = c->queue.items[i].older) {
        blocks += c->queue.items[i].blocks;
    }
    return blocks;
}

const char *prefix_cache_audit(const struct prefix_cache *c)
{
    int64_t listed = 0, common = 0;
    uint32_t count = 0;
    for (uint32_t i = c->queue.head; i != FREE_QUEUE_NONE; i = c->queue.items[i].next) {
        listed += c->queue.items[i].node == FREE_QUEUE_NONE ? c->queue.items[i].blocks : 0;
    }
    for (uint32_t i = 0; i < c->table_size; i++) {
        if (c->table[i] == NONE) {
            continue;
        }
        const struct prefix_node *node = &c->nodes[c->table[i]];
        count++;
        common += node->own ? 0 : node->length;
        listed += stretches_of(c, node);
        if (node->held > node->length || (node->held == 0) != (node->holders == 0)) {
            return "more is referenced than is cached, or by nobody";
        }
        if (c->queue.kept && stretches_of(c, node) != node->length - node->held) {
            return "cached blocks are neither referenced nor free";
        }
        if (node->length + node->tips + node->children == 0 && !node->queued) {
            return "an empty node is kept";
        }
        if (node->length > 0 && node->parent != NONE &&
            c->nodes[node->parent].length < attached_at(c, node)) {
            return "a block outlived one before it";
        }
        if (node->held > 0 && node->parent != NONE &&
            c->nodes[node->parent].held < attached_at(c, node)) {
            return "a block before a referenced one is free";
        }
        if (node->known > node->length || (node->known > 0 && node->parent != NONE &&
                                           c->nodes[node->parent].known < attached_at(c, node))) {
            return "a block is known that is not cached, or without one before it";
        }
    }
    return count != c->count           ? "nodes are lost"
           : common != c->common       ? "cached blocks are miscounted"
           : listed != c->queue.listed ? "free blocks are miscounted"
                                       : NULL;
}
