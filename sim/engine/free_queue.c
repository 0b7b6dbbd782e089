#include "sim/engine/free_queue.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

void free_queue_init(struct free_queue *queue, int64_t total)
{
    *queue = (struct free_queue){.spare = FREE_QUEUE_NONE,
                                 .head = FREE_QUEUE_NONE,
                                 .tail = FREE_QUEUE_NONE,
                                 .never = total,
                                 .kept = total != INT64_MAX};
}

void free_queue_free(struct free_queue *queue)
{
    free(queue->items);
    *queue = (struct free_queue){0};
}

/* An unused entry. Grows the table when there is none: the one place where stretches cost memory.
 */
static uint32_t acquire(struct free_queue *queue)
{
    if (queue->spare == FREE_QUEUE_NONE) {
        uint32_t old = queue->capacity;
        queue->capacity = old == 0 ? 16 : 2 * old;
        check_limit(queue->capacity > old, "a replica has more than %u free stretches of KV", old);
        queue->items = memory_grow(queue->items, queue->capacity * sizeof *queue->items);
        for (uint32_t i = queue->capacity; i > old; i--) {
            queue->items[i - 1].next = queue->spare;
            queue->spare = i - 1;
        }
    }
    uint32_t index = queue->spare;
    queue->spare = queue->items[index].next;
    return index;
}

static void append(struct free_queue *queue, uint32_t node, uint32_t older, int64_t blocks)
{
    uint32_t index = acquire(queue);
    queue->items[index] = (struct free_stretch){.blocks = blocks,
                                                .node = node,
                                                .previous = queue->tail,
                                                .next = FREE_QUEUE_NONE,
                                                .newer = FREE_QUEUE_NONE,
                                                .older = older};
    if (queue->tail == FREE_QUEUE_NONE) {
        queue->head = index;
    } else {
        queue->items[queue->tail].next = index;
    }
    queue->tail = index;
}

static void leave(struct free_queue *queue, uint32_t index)
{
    struct free_stretch *s = &queue->items[index];
    if (s->previous == FREE_QUEUE_NONE) {
        queue->head = s->next;
    } else {
        queue->items[s->previous].next = s->next;
    }
    if (s->next == FREE_QUEUE_NONE) {
        queue->tail = s->previous;
    } else {
        queue->items[s->next].previous = s->previous;
    }
    s->next = queue->spare;
    queue->spare = index;
}

void free_queue_push_bare(struct free_queue *queue, int64_t blocks)
{
    if (!queue->kept || blocks == 0) {
        return;
    }
    queue->listed += blocks;
    if (queue->tail != FREE_QUEUE_NONE && queue->items[queue->tail].node == FREE_QUEUE_NONE) {
        queue->items[queue->tail].blocks += blocks;
    } else {
        append(queue, FREE_QUEUE_NONE, FREE_QUEUE_NONE, blocks);
    }
}

void free_queue_push(struct free_queue *queue, uint32_t node, uint32_t *newest, int64_t blocks)
{
    if (!queue->kept) {
        return;
    }
    queue->listed += blocks;
    uint32_t older = *newest;
    if (older != FREE_QUEUE_NONE && older == queue->tail) {
        queue->items[older].blocks += blocks; /* the deeper ones come first there too */
        return;
    }
    append(queue, node, older, blocks);
    if (older != FREE_QUEUE_NONE) {
        queue->items[older].newer = queue->tail;
    }
    *newest = queue->tail;
}

void free_queue_pull(struct free_queue *queue, uint32_t *newest, int64_t blocks)
{
    if (!queue->kept) {
        return;
    }
    queue->listed -= blocks;
    while (blocks > 0) {
        struct free_stretch *s = &queue->items[*newest];
        if (s->blocks > blocks) {
            s->blocks -= blocks;
            return;
        }
        blocks -= s->blocks;
        uint32_t older = s->older;
        leave(queue, *newest);
        *newest = older;
        if (older != FREE_QUEUE_NONE) {
            queue->items[older].newer = FREE_QUEUE_NONE;
        }
    }
}

int64_t free_queue_pop(struct free_queue *queue, int64_t most, uint32_t *node, bool *gone)
{
    *node = FREE_QUEUE_NONE;
    *gone = false;
    if (queue->never > 0) {
        int64_t count = queue->never < most ? queue->never : most;
        queue->never -= count;
        return count;
    }
    check(queue->head != FREE_QUEUE_NONE);
    uint32_t index = queue->head;
    struct free_stretch *s = &queue->items[index];
    int64_t count = s->blocks < most ? s->blocks : most;
    queue->listed -= count;
    s->blocks -= count;
    *node = s->node;
    if (s->blocks == 0) {
        debug_check(s->older == FREE_QUEUE_NONE);
        *gone = s->newer == FREE_QUEUE_NONE;
        if (!*gone) {
            queue->items[s->newer].older = FREE_QUEUE_NONE;
        }
        leave(queue, index);
    }
    return count;
}
