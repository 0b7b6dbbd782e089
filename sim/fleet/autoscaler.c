#include "sim/fleet/autoscaler.h"

#include <stddef.h>

const struct variant *const autoscaler_variants[] = {
    &autoscaler_static_variant,
    &autoscaler_target_variant,
    NULL,
};

const char *const autoscaler_later[] = {"ideal",    "queue",      "kv",        "slo",
                                        "schedule", "predictive", "warm_pool", NULL};
