/* The prefix cache of one replica: which contents its KV blocks hold, who references them, and in
 * which order they are taken for new use (docs/engine.md has the rules).
 *
 * Contents form a tree whose nodes are the parts of prefix_chain.h: one stretch of blocks each,
 * however long. A node knows how many of its blocks are cached (always its first ones), how many of
 * those are referenced (its first ones again: whoever holds a block holds all before it), and where
 * the rest stands in the free queue. A sequence holds one place in the tree, and everything above.
 *
 * A running sequence that has published all its full blocks so far is *open*: it is a tip at the
 * node of its next block. As long as a node has one tip, at its end, nobody but that sequence can
 * change what comes next there: its later blocks can be told whenever somebody looks. With more
 * tips, or cached blocks beyond the tip, whoever comes first counts: such a sequence is *watched*,
 * and has to be advanced at the start of every iteration, in the order of the batch.
 *
 * Blocks taken for new use are not reported one by one either: they are evicted when it matters, by
 * prefix_cache_settle. */
#ifndef FLEETSIM_SIM_ENGINE_PREFIX_CACHE_H
#define FLEETSIM_SIM_ENGINE_PREFIX_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/request.h"
#include "sim/engine/free_queue.h"

enum { PREFIX_CACHE_NONE = UINT32_MAX };

/* What a sequence holds. All zero with `node` PREFIX_CACHE_NONE: nothing. */
struct prefix_hold {
    uint32_t node;   /* the deepest it is at */
    uint32_t depth;  /* blocks of it that it holds; 0: those of its parent above it, if any */
    uint32_t blocks; /* published blocks it holds in all */
    uint32_t end;    /* of its chain, where the part of `node` ends for it; while open */
    bool open;       /* a tip of `node`; else its further blocks are private */
};

/* Who wants to know what is cached where: a router. It may know of a block, as long as it is
 * cached, once a sequence that holds it says so (prefix_cache_know): of its prompt with its first
 * token, of its outputs when it leaves the batch. Both calls come from inside the replica's steps
 * and cancels; changes of one visible boundary come in no particular order, each node once. */
struct prefix_listener {
    /* `blocks` of the part with that path key (prefix_chain.h) are cached; 0: none. */
    void (*changed)(void *self, uint32_t slot, uint64_t path_key, uint32_t blocks);
    void (*forget)(void *self, uint32_t slot); /* the replica is gone, with all it had */
    void *self;                                /* borrowed */
};

struct prefix_match {
    uint32_t node,
        depth; /* where it ends: `depth` ≥ 1 blocks of node; PREFIX_CACHE_NONE: nowhere */
    uint32_t blocks;
    uint32_t end;       /* where the part that it ends in ends */
    bool may_grow;      /* a running sequence may publish the next block */
    uint32_t publisher; /* the one that does, if it is alone; else SEQUENCE_NONE */
};

struct prefix_node;
struct prefix_partial;

struct prefix_cache {
    uint32_t block_size;
    bool listened; /* somebody wants to know of changes */
    bool watch;    /* a running sequence may be watched: see above */
    struct free_queue queue;
    struct prefix_node *nodes; /* owned; grows with the most contents ever cached at once */
    uint32_t capacity, spare, count;
    uint32_t *table; /* owned; [table_size] open addressing by path key, on first use */
    uint32_t table_size;
    struct prefix_partial *partials; /* owned; see the source */
    uint32_t partial_capacity, partial_spare;
    uint32_t changed; /* list of nodes of which there may be something to tell */
    int64_t common;   /* cached blocks of nodes that other requests may hit */
};

/* total: blocks of the replica; INT64_MAX: unlimited, and nothing is ever evicted. */
struct prefix_cache *prefix_cache_create(uint32_t block_size, int64_t total, bool listened);
/* NULL is fine. */
void prefix_cache_free(struct prefix_cache *cache);

static inline struct prefix_hold prefix_cache_hold(void)
{
    return (struct prefix_hold){.node = PREFIX_CACHE_NONE};
}

/* Evicts what has been taken for new use: afterwards `available` blocks are free. Before anything
 * that looks at the cache or frees blocks. */
void prefix_cache_settle(struct prefix_cache *cache, int64_t available);
/* The longest run of the request's first blocks, at most limit, that are cached; referenced: that
 * are referenced by running sequences. */
void prefix_cache_look(const struct prefix_cache *cache, const struct request *request,
                       uint32_t limit, bool referenced, struct prefix_match *match);
/* A sequence that holds nothing takes what was found and becomes open. Returns how many of these
 * blocks were free. */
int64_t prefix_cache_take(struct prefix_cache *cache, struct prefix_hold *hold, uint32_t sequence,
                          const struct request *request, const struct prefix_match *match);
/* Who else is a tip where an open sequence is, if it is one sequence; else SEQUENCE_NONE. It was
 * alone there until now, so it may have more to publish: advance it first. */
uint32_t prefix_cache_rival(const struct prefix_cache *cache, const struct prefix_hold *hold,
                            uint32_t sequence);
/* A sequence has been given tokens that fill its first `blocks` blocks: publishes them as far as
 * nobody else has. Settle first, if it is watched. */
void prefix_cache_advance(struct prefix_cache *cache, struct prefix_hold *hold, uint32_t sequence,
                          const struct request *request, uint32_t blocks);
/* Whether it has to be advanced in the order of the batch. */
bool prefix_cache_watched(const struct prefix_cache *cache, const struct prefix_hold *hold);
/* A sequence gives up its `total` blocks, last to first. Of its published ones only the first
 * `keep` stay so. ended: it never comes back. Settle first. Returns how many are free now. */
int64_t prefix_cache_release(struct prefix_cache *cache, struct prefix_hold *hold,
                             uint32_t sequence, int64_t total, uint32_t keep, bool ended);
/* The listener may know of the first `blocks` blocks of a sequence, as far as it holds published
 * ones. Advance it first. */
void prefix_cache_know(struct prefix_cache *cache, const struct prefix_hold *hold, uint32_t blocks);
/* Tells what has changed since the last time of what the listener may know. Settle first. */
void prefix_cache_report(struct prefix_cache *cache, const struct prefix_listener *listener,
                         uint32_t slot);
/* How many cached blocks other requests may hit, if `available` are free: exact without a settle.
 */
int64_t prefix_cache_common(const struct prefix_cache *cache, int64_t available);
/* Recounts everything and compares (tests): NULL, or what is wrong. */
const char *prefix_cache_audit(const struct prefix_cache *cache);

#endif
