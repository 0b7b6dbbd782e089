#include "sim/fleet/autoscaler.h"

#include <stddef.h>

const struct field autoscaler_signal_fields[] = {
    {.name = "interval",
     .kind = FIELD_TIME,
     .offset = offsetof(struct autoscaler_signal_config, interval_ps),
     .fallback = "0 s",
     .max = 86400,
     .doc = "Time between scrapes of the pool's signals; 0: read at every decision"},
    {.name = "delay",
     .kind = FIELD_TIME,
     .offset = offsetof(struct autoscaler_signal_config, delay_ps),
     .fallback = "0 s",
     .max = 3600,
     .doc = "Time from a scrape until a decision can see it"},
    {0},
};

const struct variant *const autoscaler_variants[] = {
    &autoscaler_static_variant,    &autoscaler_ideal_variant,
    &autoscaler_target_variant,    &autoscaler_queue_variant,
    &autoscaler_kv_variant,        &autoscaler_slo_variant,
    &autoscaler_schedule_variant,  &autoscaler_predictive_variant,
    &autoscaler_warm_pool_variant, NULL,
};
