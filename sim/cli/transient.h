/* Whether the start of a run under constant load is a transient, and how long it is. */
#ifndef FLEETSIM_SIM_CLI_TRANSIENT_H
#define FLEETSIM_SIM_CLI_TRANSIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/run/run_outcome.h"

/* Means by interval, from warmup on. */
enum transient_series {
    TRANSIENT_IN_FLIGHT, /* requests in flight */
    TRANSIENT_TTFT,      /* time to first token, s */
};

enum transient_state {
    TRANSIENT_NOT_ASKED, /* the load is not constant, or it is unknown */
    TRANSIENT_TOO_SHORT, /* too few intervals to tell */
    TRANSIENT_NONE,      /* none that differs from the rest by more than chance */
    TRANSIENT_FOUND,     /* from warmup to end_ps */
    TRANSIENT_UNSETTLED, /* more than the first half: the run does not settle */
};

struct transient {
    bool constant; /* the expected rate is the same at the start of every interval */
    enum transient_state state;
    enum transient_series series; /* that decides it */
    int64_t end_ps;               /* FOUND: what `warmup` would leave it out; else TIME_NONE */
    size_t intervals;             /* looked at */
};

/* Of a complete run, by warmup_mser_find on both series: the longer of the two. */
struct transient transient_find(const struct run_outcome *outcome);
/* The series of whole intervals after warmup; values has room for hour_count. Returns how many; 0
 * where an interval has no value. */
size_t transient_series(const struct run_outcome *outcome, enum transient_series which,
                        double *values);

#endif
