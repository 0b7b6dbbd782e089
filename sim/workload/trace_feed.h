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
};

struct trace_feed {
    struct trace_feed_setup setup;
    struct trace_reader *reader; /* borrowed */
    struct request row;          /* the present row, times unscaled … */
    uint64_t copies, copy;       /* … how often it comes, and the next one's number */
    uint64_t rows;               /* read */

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
/* The next request: arrival, tokens, session and turn are set, the arrival in scaled time.
 * TIME_NEVER as arrival: past every clock. */
enum trace_status trace_feed_next(struct trace_feed *feed, struct request *request);

#endif
