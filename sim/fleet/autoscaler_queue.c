/* Waiting requests per replica, as KEDA feeds a queue's length to the HPA: wished = ceil(waiting /
 * target), within a tolerance. An empty queue asks for nothing, however busy the replicas are; so,
 * unlike KEDA, scale-down asks by default whether the survivors could carry the work. */
#include <stddef.h>

#include "sim/fleet/autoscaler_target.h"

static const struct field queue_fields[] = {
    {.name = "waiting",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct autoscaler_target_config, target),
     .min = 1e-6,
     .max = 1e6,
     .doc = "Waiting requests per replica to hold"},
    {.kind = FIELD_INLINE, .offset = 0, .fields = autoscaler_target_case_fields},
    {0},
};

static void *create(const void *config, const struct autoscaler_env *env)
{
    (void)env;
    return autoscaler_target_make(config, TARGET_QUEUE);
}

static const struct autoscaler_type queue_type = {
    .create = create,
    .destroy = autoscaler_target_destroy,
    .interval = autoscaler_target_interval,
    .limits = autoscaler_target_limits,
    .signals = autoscaler_target_signals,
    .decide = autoscaler_target_decide,
};

const struct variant autoscaler_queue_variant = {
    .name = "queue",
    .doc = "Holds the waiting requests per replica at a target, as KEDA does for a queue",
    .fields = queue_fields,
    .size = sizeof(struct autoscaler_target_config),
    .ops = &queue_type,
};
