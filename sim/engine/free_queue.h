/* The KV blocks of a replica that nobody references, in the order in which they are taken for new
 * use: never-used ones first, then in order of freeing. What was freed together stands as one
 * *stretch*: of a node of the prefix cache (its blocks can still be hit, and leave the queue then),
 * or *bare*, a mere count of blocks that nobody can hit.
 *
 * The free stretches of one node lie behind one another in the node: the newest next to what is
 * still referenced, the oldest at the deep end. So counts are enough; which blocks they are follows
 * from the node. A stretch loses blocks at its deep end when they are taken for new use, and at the
 * other end when they are hit. */
#ifndef FLEETSIM_SIM_ENGINE_FREE_QUEUE_H
#define FLEETSIM_SIM_ENGINE_FREE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

enum { FREE_QUEUE_NONE = UINT32_MAX };

struct free_stretch {
    int64_t blocks;          /* ≥ 1 */
    uint32_t node;           /* FREE_QUEUE_NONE: bare */
    uint32_t previous, next; /* in the queue; next links those not in use */
    uint32_t newer, older;   /* of the same node */
};

struct free_queue {
    struct free_stretch *items; /* owned; grows with the most stretches ever */
    uint32_t capacity, spare;
    uint32_t head, tail;
    int64_t never;  /* never-used blocks */
    int64_t listed; /* blocks in stretches */
    bool kept;      /* false with unlimited blocks: nothing is ever taken, so no order is kept */
};

/* total: blocks of the replica; INT64_MAX: unlimited. */
void free_queue_init(struct free_queue *queue, int64_t total);
void free_queue_free(struct free_queue *queue);

static inline int64_t free_queue_count(const struct free_queue *queue)
{
    return queue->never + queue->listed;
}
/* blocks ≥ 0 of them go to the back, bare. */
void free_queue_push_bare(struct free_queue *queue, int64_t blocks);
/* blocks ≥ 1 of a node, directly before its newest stretch *newest (which changes), go to the back
 * in order from the deep end. */
void free_queue_push(struct free_queue *queue, uint32_t node, uint32_t *newest, int64_t blocks);
/* Takes blocks of a node out, from the newest stretch on: they are referenced again. */
void free_queue_pull(struct free_queue *queue, uint32_t *newest, int64_t blocks);
/* Takes up to most ≥ 1 blocks off the front. Returns how many: all never used, or all of one
 * stretch. *node: the stretch's, or FREE_QUEUE_NONE; *gone: it was the node's last one. */
int64_t free_queue_pop(struct free_queue *queue, int64_t most, uint32_t *node, bool *gone);

#endif
