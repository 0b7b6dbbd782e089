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

/* The rows that one pass read, for passes after it: short traces are read once. Of a longer one, or
 * one with hash_ids, nothing is kept. */
enum { TRACE_FEED_KEPT_MAX = 1 << 15 };
struct trace_feed_row {
    int64_t arrival_ps, session;
    uint32_t prompt_tokens, output_tokens, turn;
};
struct trace_feed_kept {
    struct trace_feed_row *rows; /* owned */
    size_t count, capacity;
    bool given_up;
};

struct trace_feed {
    struct trace_feed_setup setup;
    struct trace_reader *reader;        /* borrowed; NULL: rows come from kept */
    const struct trace_feed_kept *kept; /* borrowed */
    size_t kept_at;
    struct trace_feed_kept *keep; /* borrowed; where rows that are read go too; NULL: nowhere */
    struct request row;           /* the present row, times unscaled, without its hashes: … */
    const uint64_t *hash_ids;     /* … the reader's, of full blocks, until the next row; … */
    uint32_t hash_count;
    uint64_t copies, copy; /* … how often it comes, and the next one's number */
    uint64_t rows;         /* read */
    uint64_t copies_least; /* rate_scale rounded down … */
    double copies_chance;  /* … and the rest: how likely one more is */

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
/* The same rows again; all of them must have been kept. */
void trace_feed_init_kept(struct trace_feed *feed, const struct trace_feed_kept *kept,
                          const struct trace_feed_setup *setup);
void trace_feed_free(struct trace_feed *feed);
/* The next request: arrival, tokens, session, turn and hashes (the caller's to give back) are set,
 * the arrival in scaled time.
 * TIME_NEVER as arrival: past every clock. */
enum trace_status trace_feed_next(struct trace_feed *feed, struct request *request);

#endif
