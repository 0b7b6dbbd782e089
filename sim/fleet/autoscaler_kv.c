/* KV blocks in use over those of a replica, by the rules of target tracking: the signal of a fleet
 * that memory binds. Where blocks are unlimited there is no signal, and nothing changes. */
#include <stddef.h>

#include "sim/fleet/autoscaler_target.h"

static const struct field kv_fields[] = {
    {.name = "utilization",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct autoscaler_target_config, target),
     .min = 1e-6,
     .max = 1,
     .doc = "Share of a replica's KV blocks in use to hold"},
    {.name = "tolerance",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct autoscaler_target_config, tolerance),
     .fallback = "10 %",
     .max = 1,
     .doc = "No change while signal / target is within 1 ± this"},
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct autoscaler_target_config, behavior),
     .fields = behavior_fields},
    {.name = "scale_down_limit",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct autoscaler_target_config, behavior.scale_down_limit),
     .fallback = "80 %",
     .max = 1,
     .doc = BEHAVIOR_DOWN_LIMIT_DOC},
    {0},
};

static void *create(const void *config, const struct autoscaler_env *env)
{
    (void)env;
    return autoscaler_target_make(config, TARGET_KV);
}

static const struct autoscaler_type kv_type = {
    .create = create,
    .destroy = autoscaler_target_destroy,
    .interval = autoscaler_target_interval,
    .limits = autoscaler_target_limits,
    .signals = autoscaler_target_signals,
    .decide = autoscaler_target_decide,
};

const struct variant autoscaler_kv_variant = {
    .name = "kv",
    .doc = "Holds the share of KV blocks in use at a target",
    .fields = kv_fields,
    .size = sizeof(struct autoscaler_target_config),
    .ops = &kv_type,
};
