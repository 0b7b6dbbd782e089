/* Target tracking with replicas to spare: what the signal asks for, and `spares` more, ready and
 * paid for like all others, so that a rise meets a warm replica while its successor starts. */
#include <stddef.h>

#include "sim/fleet/autoscaler_target.h"

static const struct field warm_pool_fields[] = {
    {.name = "spares",
     .kind = FIELD_INT,
     .offset = offsetof(struct autoscaler_target_config, spares),
     .fallback = "1",
     .max = 100000,
     .doc = "Replicas beyond what the signal asks for, ready and billed"},
    {.kind = FIELD_INLINE, .fields = autoscaler_target_fields},
    {0},
};

static const struct autoscaler_type warm_pool_type = {
    .refuse = autoscaler_target_refuse,
    .create = autoscaler_target_create,
    .destroy = autoscaler_target_destroy,
    .interval = autoscaler_target_interval,
    .limits = autoscaler_target_limits,
    .signals = autoscaler_target_signals,
    .decide = autoscaler_target_decide,
};

const struct variant autoscaler_warm_pool_variant = {
    .name = "warm_pool",
    .doc = "As target, with spare replicas kept ready on top, at their price",
    .fields = warm_pool_fields,
    .size = sizeof(struct autoscaler_target_config),
    .ops = &warm_pool_type,
};
