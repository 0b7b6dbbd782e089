/* One queue of queueing theory, simulated by the fleet and the traffic that runs use: Poisson
 * arrivals, replicas with so many seats, a step law; replications that share nothing. */
#ifndef FLEETSIM_TESTS_THEORY_SUPPORT_QUEUE_H
#define FLEETSIM_TESTS_THEORY_SUPPORT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/moments.h"
#include "sim/base/time.h"

struct queue_case {
    const char *name;
    const char *rate;   /* of arrivals: "7 /s" */
    const char *prompt; /* "dist key=value" */
    const char *output;
    const char *step; /* "model key=value key=value" */
    const char *router;
    uint32_t replicas;
    uint32_t seats; /* max_num_seqs */
};

/* What one replication gave. Means and percentiles are over the requests kept: the first 5 % of
 * arrivals are dropped. Percentiles are exact, by nearest rank. */
struct queue_sample {
    double wait_mean_s, wait_p99_s; /* admission − arrival */
    double time_mean_s, time_p99_s; /* end − arrival */
    double share_waiting;           /* wait > 0 */
    double in_system; /* time average from the first kept arrival to the last arrival */
    int64_t wait_max_ps;
    int128 area_ps;    /* ∫ N dt from the start to the end, empty at both */
    int128 sojourn_ps; /* Σ(end − arrival), of all requests */
    int64_t end_ps;
    uint64_t requests;
};

void queue_simulate(const struct queue_case *c, uint32_t replication, uint64_t requests,
                    struct queue_sample *sample);

enum { QUEUE_REPLICATIONS = 20, QUEUE_REQUESTS = 100000 };
static const double QUEUE_CONFIDENCE = 0.99;

/* How many times fewer requests a replication has: FLEETSIM_THEORY_SCALE, by default 1, and 10 in
 * builds with sanitizers. Allowed widths grow with its root. */
uint32_t queue_scale(void);

#endif
