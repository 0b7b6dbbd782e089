/* From a policy's wish to replicas: limits, stabilisation windows, and how fast a fleet may grow
 * and shrink, by the rules of the Kubernetes Horizontal Pod Autoscaler (`behavior` of its
 * documentation), plus two of our own: scale-down asks whether the survivors stay below a limit,
 * and the last replica goes only after an idle time. All policies that react to signals share it.
 * All comparisons are exact, in millionths. */
#ifndef FLEETSIM_SIM_FLEET_BEHAVIOR_H
#define FLEETSIM_SIM_FLEET_BEHAVIOR_H

#include "sim/fleet/autoscaler.h"

enum { BEHAVIOR_MILLION = 1000000 };

struct behavior_config {
    int64_t min_replicas, max_replicas;
    int64_t interval_ps;
    int64_t idle_timeout_ps;
    int64_t scale_up_window_ps, scale_down_window_ps;
    int64_t scale_up_step, scale_down_step;      /* replicas; FIELD_INT_UNSET: no such limit */
    double scale_up_percent, scale_down_percent; /* shares; NaN: no such limit */
    int64_t step_period_ps;
    struct autoscaler_signal_config signals;
    double scale_down_limit; /* NaN: off. Its field is each policy's own: their defaults differ */
};

/* For FIELD_INLINE: all but scale_down_limit. */
extern const struct field behavior_fields[];

#define BEHAVIOR_DOWN_LIMIT_DOC                                                                    \
    "Scale down only so far that utilization, spread over the survivors, stays below this"

/* Replicas at a time: wishes for the windows, changes for the steps. */
struct behavior_mark {
    int64_t time_ps;
    int64_t replicas;
};
struct behavior_ring {
    struct behavior_mark *marks; /* owned */
    uint32_t capacity, first, count;
};

struct behavior {
    const struct behavior_config *config; /* borrowed */
    int64_t up_millionths, down_millionths, limit_millionths;
    struct behavior_ring wishes, changes;
};

void behavior_init(struct behavior *behavior, const struct behavior_config *config);
void behavior_free(struct behavior *behavior);
/* Starts a decision: replicas present, and a decision that changes nothing, for want of a signal.
 * The windows begin with what there is. */
uint32_t behavior_begin(struct behavior *behavior, const struct autoscaler_signal *signal,
                        struct autoscaler_decision *decision);
/* Ends it: decision->wished and, through windows, steps and limits, decision->target. */
void behavior_apply(struct behavior *behavior, const struct autoscaler_signal *signal,
                    int128 wished, struct autoscaler_decision *decision);
/* For a policy's limits callback. */
void behavior_limits(const struct behavior_config *config, uint32_t *min, uint32_t *max,
                     uint32_t *initial);

#endif
