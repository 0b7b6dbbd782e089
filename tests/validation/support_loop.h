/* A measured serving point run again: its users in a closed loop, through the traffic, the fleet
 * and the engine that scenarios use. */
#ifndef FLEETSIM_TESTS_VALIDATION_SUPPORT_LOOP_H
#define FLEETSIM_TESTS_VALIDATION_SUPPORT_LOOP_H

#include <stdint.h>

#include "tests/validation/support_points.h"

struct loop_result {
    double ttft_mean_s, ttft_median_s; /* what passes outside the engine included */
    double tpot_mean_s;                /* of a request: (end − first token) / (outputs − 1) */
    uint64_t requests;
};

/* waves × concurrency requests at the point's concurrency, all users at once at first; the means
 * are over all requests, that burst included. Inside a Check test. */
struct loop_result loop_run(const struct point *point, int64_t waves);

#endif
