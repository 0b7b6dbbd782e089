/* The rows of a trace as requests: repeated or thinned, ticked stamps spread, times scaled. Chance
 * hangs on the row's number (its session's, where it has one), so every pass over the file gives
 * the same requests. */
#ifndef FLEETSIM_SIM_WORKLOAD_TRACE_FEED_H
#define FLEETSIM_SIM_WORKLOAD_TRACE_FEED_H

#include "sim/base/request.h"
#include "sim/workload/rational.h"
#include "sim/workload/trace_reader.h"

struct trace_feed_setup {
    struct rational time_scale;
    double rate_scale; /* > 0 */
    int64_t tick_ps;   /* over which requests with one stamp are spread; 0: they are not */
    uint64_t key;
    struct token_hash_pool *hashes; /* borrowed; NULL: requests come without hashes */
};

struct trace_feed {
    struct trace_feed_setup setup;
    struct trace_reader *reader; /* borrowed */
    struct request row;          /* the present row, times unscaled, without its hashes: … */
    const uint64_t *hash_ids;    /* … the reader's, of full blocks, until the next row; … */
    uint32_t hash_count;
    uint64_t copies, copy; /* … how often it comes, and the next one's number */
    uint64_t rows;         /* read */

    /* Requests with one stamp, and the one behind them. */
    struct request *group; /* owned */
    int64_t *offsets;      /* owned; scratch */
    size_t group_count, group_at, group_capacity;
    struct request ahead;
    enum trace_status ahead_status;
    bool has_ahead;
    uint64_t spread; /* requests spread so far */
};

/* reader may be NULL when nothing will be asked. */
void trace_feed_init(struct trace_feed *feed, struct trace_reader *reader,
                     const struct trace_feed_setup *setup);
void trace_feed_free(struct trace_feed *feed);
/* The next request: arrival, tokens, session, turn and hashes (the caller's to give back) are set,
 * the arrival in scaled time.
 * TIME_NEVER as arrival: past every clock. */
enum trace_status trace_feed_next(struct trace_feed *feed, struct request *request);

#endif
