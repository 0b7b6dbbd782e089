/* What target tracking shares with the policies that are one of its cases: a total signal over a
 * target per replica, by the rules of the Kubernetes HPA. */
#ifndef FLEETSIM_SIM_FLEET_AUTOSCALER_TARGET_H
#define FLEETSIM_SIM_FLEET_AUTOSCALER_TARGET_H

#include "sim/fleet/behavior.h"

enum autoscaler_target_metric {
    TARGET_CONCURRENCY, /* requests running or waiting */
    TARGET_UTILIZATION, /* work executed over time */
    TARGET_KV,          /* KV blocks in use over those of a replica */
    TARGET_QUEUE,       /* requests waiting */
};

struct autoscaler_target_config {
    struct behavior_config behavior;
    int metric; /* enum autoscaler_target_metric */
    double target;
    double tolerance;
    int64_t spares; /* on top of what the signal asks for */
};

/* State for a policy whose metric is not the user's to choose. config is borrowed. */
void *autoscaler_target_make(const struct autoscaler_target_config *config,
                             enum autoscaler_target_metric metric);

/* The callbacks, on any config that begins with a struct autoscaler_target_config. */
void *autoscaler_target_create(const void *config, const struct autoscaler_env *env);
void autoscaler_target_destroy(void *state);
int64_t autoscaler_target_interval(const void *config);
void autoscaler_target_limits(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial);
const struct autoscaler_signal_config *autoscaler_target_signals(const void *config);
void autoscaler_target_decide(void *state, const struct autoscaler_signal *signal,
                              struct autoscaler_decision *decision);
const char *autoscaler_target_refuse(const void *config);

/* `metric`, `target` and `tolerance`, for FIELD_INLINE at offset 0. */
extern const struct field autoscaler_target_fields[];
/* The rest of the table of a policy with one metric of its own (kv, queue): all but its target. */
extern const struct field autoscaler_target_case_fields[];

#endif
