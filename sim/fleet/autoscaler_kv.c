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
    {.kind = FIELD_INLINE, .offset = 0, .fields = autoscaler_target_case_fields},
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
