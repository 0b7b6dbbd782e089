/* The naive reference engine: the judge of the real one. One object per sequence, one iteration at
 * a time, plain lists, no cleverness: it reads as the scheduler's rules do and shares no code with
 * sim/engine or sim/fleet. It simulates one pool of equal replicas until everything has ended.
 *
 * Where the rules leave a choice open, this file's choice is:
 * - what no replica could ever serve is unservable before the router is asked; the router then
 *   chooses a replica, which may refuse: that is a dispatch all the same; when every replica is
 *   draining, an arrival is refused without a replica;
 * - under central_queue a preempted sequence waits in its own replica's queue, which is served
 *   before the central one; a draining replica takes nothing from the central queue;
 * - a cancel before its request has arrived has no effect;
 * - drains and gauges are timers: they come after the steps of their instant;
 * - peak_blocks looks at an iteration once it is formed, not at the middle of forming;
 * - of a preempted sequence's blocks, all that were published by the tokens taken back lose their
 *   content, those too that it held before;
 * - a chunk takes all its blocks from the queue before the first of them is published;
 * - a token never computed before is recomputed all the same when it is not of the prompt: the last
 *   output before a preemption;
 * - a record counts the tokens of its complete iterations only; executed tokens are those of all
 *   complete iterations, of sequences that have left meanwhile too.
 */
#ifndef FLEETSIM_TESTS_PROP_SUPPORT_NAIVE_H
#define FLEETSIM_TESTS_PROP_SUPPORT_NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/step_time.h"
#include "sim/base/digest.h"
#include "sim/base/histogram.h"
#include "sim/base/request.h"
#include "tests/prop/support_naive_cache.h"

enum naive_router {
    NAIVE_ROUND_ROBIN,   /* the next ready replica by index, cyclic */
    NAIVE_LEAST_LOADED,  /* fewest running + waiting; ties: least recently dispatched, then index */
    NAIVE_CENTRAL_QUEUE, /* one queue, pulled when a replica forms a batch */
    NAIVE_CALLBACK,      /* route() says */
    NAIVE_ROUTER_COUNT
};

struct naive_cancel {
    int64_t time_ps;
    uint64_t id;
};
struct naive_drain {
    int64_t time_ps;
    uint32_t replica;
};
/* A closed loop: request id comes think_ps after request `after` has ended, whatever its outcome.
 */
struct naive_link {
    uint64_t id, after;
    int64_t think_ps; /* ≥ 1 */
};

/* All pointers are borrowed for the run. Lists are sorted by time; equals keep their order. */
struct naive_config {
    struct naive_engine engine;
    const struct step_model *step;
    uint32_t replicas; /* ≥ 1 */
    enum naive_router router;
    uint32_t (*route)(void *self, const struct request *request); /* a replica not draining */
    void *route_self;
    const struct request *requests; /* [request_count], id = index; in order of arrival, those with
                                       a link apart, whose arrival_ps is not looked at */
    size_t request_count;
    const struct naive_link *links; /* no cycles, an id at most once */
    size_t link_count;
    const struct naive_cancel *cancels; /* no effect when the request has ended */
    size_t cancel_count;
    const struct naive_drain *drains;
    size_t drain_count;
    const int64_t *gauge_times_ps;
    size_t gauge_count;
    int64_t cut_ps; /* 0: none; else what is in flight after everything at this time ends there as
                       OUTCOME_IN_FLIGHT, by id, and nothing comes after */
    /* Told of every iteration when it starts; may be NULL. */
    void (*iteration)(void *self, uint32_t replica, int64_t start_ps, int64_t end_ps);
    void *iteration_self;
};

struct naive_gauge {
    uint64_t running, waiting;
    int64_t kv_blocks;     /* summed over replicas, iterations in flight included */
    int64_t kv_blocks_max; /* at the fullest replica */
};

struct naive_result {
    struct request_record *records; /* owned; [record_count] in order of end */
    size_t record_count;
    struct digest digest;
    struct histogram ttft, tpot, itl, e2e, queue;
    uint64_t outcomes[OUTCOME_COUNT];
    uint64_t iterations;
    uint64_t decode_tokens;  /* executed, of sequences cancelled meanwhile too */
    uint64_t prefill_tokens; /* executed, recomputed ones included */
    uint64_t computed_tokens, recomputed_tokens, emitted_tokens, preemptions; /* of all records */
    uint64_t cached_tokens;                                                   /* of all records */
    uint64_t lookups, hit_tokens, lookup_tokens; /* over all admissions; 0 without prefix caching */
    struct digest prefix; /* takes every admission: first, time, id, hit << 32 | lookup tokens */
    struct naive_story story;
    int128 running_ps, waiting_ps; /* Σ running·dt and Σ waiting·dt over all replicas */
    int128 blocks_ps;              /* Σ KV blocks in use·dt */
    int128 busy_ps;                /* Σ iteration durations */
    int128 decode_ps; /* of that, what the decodes alone would have taken; the rest is prefill's */
    int128 work_ps;   /* the model's work of each iteration; without one the iteration itself */
    uint64_t taken_back;       /* preemptions of sequences that had their part of this very batch */
    uint64_t window_straddles; /* chunks with tokens on either side of the model's window */
    uint64_t window_fills;     /* decodes that came to store as much as the window */
    uint64_t law_ends;         /* iterations that were the last of their law's piece */
    int64_t end_ps;            /* the last event but gauges, 0 when there is none */
    int64_t *peak_blocks;      /* owned; [replicas] */
    int64_t *released_ps;      /* owned; [replicas]; TIME_NONE when never drained */
    struct naive_gauge *gauges; /* owned; [gauge_count] */
};

/* The digest takes ADMIT (first admissions; value: replica), FIRST_TOKEN (replica), PREEMPT
 * (emitted) and END (outcome + 16 · emitted), each with time and request id, in order. */
struct naive_result *naive_run(const struct naive_config *config);
void naive_free(struct naive_result *result);

#endif
