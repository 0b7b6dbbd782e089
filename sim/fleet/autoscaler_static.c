/* The same number of replicas all day: peak provisioning. */
#include <stddef.h>

#include "sim/fleet/autoscaler.h"

struct static_config {
    int64_t replicas;
};

static const struct field static_fields[] = {
    {.name = "replicas",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct static_config, replicas),
     .min = 1,
     .max = 100000,
     .doc = "Replicas, from start to end"},
    {0},
};

static int64_t interval(const void *config)
{
    (void)config;
    return TIME_NEVER;
}

static void limits(const void *config_, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    const struct static_config *config = config_;
    *min = *max = *initial = (uint32_t)config->replicas;
}

static const struct autoscaler_type static_type = {.interval = interval, .limits = limits};

const struct variant autoscaler_static_variant = {
    .name = "static",
    .doc = "The same number of replicas all day",
    .fields = static_fields,
    .size = sizeof(struct static_config),
    .ops = &static_type,
};
