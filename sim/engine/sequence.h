/* A sequence is a request inside a fleet. They live in one table for the whole fleet and are named
 * by index, so that memory follows the requests in flight and not the requests simulated. */
#ifndef FLEETSIM_SIM_ENGINE_SEQUENCE_H
#define FLEETSIM_SIM_ENGINE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/request.h"
#include "sim/engine/prefix_cache.h"

enum { SEQUENCE_NONE = UINT32_MAX };

enum sequence_phase {
    SEQUENCE_WAITING, /* in a queue: a replica's, or a pool's */
    SEQUENCE_PREFILL, /* running, its target not yet stored */
    SEQUENCE_DECODE,  /* running, one token per iteration */
};

struct sequence {
    struct request_record
        record; /* what the world sees; emitted_tokens lags for decodes (sequence_emitted) */
    int64_t last_token_ps;    /* last token before a preemption, for the gap across it */
    uint64_t start_iteration; /* DECODE: the replica's iteration count when it began to decode */
    uint32_t
        stored; /* KV tokens: as of now (PREFILL), as of start_iteration (DECODE), 0 (WAITING) */
    uint32_t target; /* PREFILL and WAITING: tokens to store before the next token comes out */
    uint32_t
        high; /* most tokens it ever had stored: below that, computing again is recomputation */
    uint32_t previous, next; /* in its list: a waiting queue, or its replica's running list */
    uint32_t slot;           /* replica slot it was sent to; SEQUENCE_NONE in a pool's queue */
    struct prefix_hold hold; /* while it runs, with prefix caching: its place in the cache */
    enum sequence_phase phase;
};

struct sequence_table {
    struct sequence *items; /* owned; moves when the table grows: hold indices, not pointers, across
                               an acquire */
    uint32_t *free;         /* owned stack of free indices */
    uint32_t capacity, free_count, live;
};

/* A doubly linked list of sequences through previous and next, oldest first. */
struct sequence_list {
    uint32_t head, tail, count;
};

void sequence_table_init(struct sequence_table *table, uint32_t capacity);
void sequence_table_free(struct sequence_table *table);
/* A sequence for a request that arrives: waiting, nothing stored. Grows the table when full: the
 * one place where requests in flight cost memory. */
uint32_t sequence_acquire(struct sequence_table *table, const struct request *request);
/* It has ended: its request's hashes are given back. */
void sequence_release(struct sequence_table *table, uint32_t index);

static inline struct sequence *sequence_at(const struct sequence_table *table, uint32_t index)
{
    return &table->items[index];
}

static inline struct sequence_list sequence_list_empty(void)
{
    return (struct sequence_list){SEQUENCE_NONE, SEQUENCE_NONE, 0};
}
void sequence_list_push_tail(struct sequence_table *table, struct sequence_list *list,
                             uint32_t index);
/* At the tail; by_priority: behind the last that comes no later in the order (priority, arrival,
 * id). The order is searched from the tail, so equals cost O(1). */
void sequence_list_insert(struct sequence_table *table, struct sequence_list *list, uint32_t index,
                          bool by_priority);
/* Whether a comes before b in that order. */
bool sequence_precedes(const struct sequence *a, const struct sequence *b);
void sequence_list_push_head(struct sequence_table *table, struct sequence_list *list,
                             uint32_t index);
void sequence_list_remove(struct sequence_table *table, struct sequence_list *list, uint32_t index);

#endif
