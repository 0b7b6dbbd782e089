#include "sim/fleet/router.h"

#include <stddef.h>

/* Both tables but for the interval's own default and limits. */
#define SIGNAL_REST                                                                                \
    {.name = "delay",                                                                              \
     .kind = FIELD_TIME,                                                                           \
     .offset = offsetof(struct router_signal_config, delay_ps),                                    \
     .fallback = "0 s",                                                                            \
     .max = 60,                                                                                    \
     .doc = "Time from a reading until the router has it"},                                        \
    {                                                                                              \
        .name = "count_own", .kind = FIELD_BOOL,                                                   \
        .offset = offsetof(struct router_signal_config, count_own), .fallback = "true",            \
        .doc = "Whether the router adds what it has sent since the reading"                        \
    }

const struct field router_signal_fields[] = {
    {.name = "interval",
     .kind = FIELD_TIME,
     .offset = offsetof(struct router_signal_config, interval_ps),
     .fallback = "0 s",
     .max = 3600,
     .doc = "Time between readings of all replicas' loads; 0: the router always knows them"},
    SIGNAL_REST,
    {0},
};

const struct field router_reading_fields[] = {
    {.name = "interval",
     .kind = FIELD_TIME,
     .offset = offsetof(struct router_signal_config, interval_ps),
     .fallback = "50 ms",
     .min = 0.001,
     .max = 3600,
     .doc = "Time between readings of all replicas' loads"},
    SIGNAL_REST,
    {0},
};

const struct variant *const router_variants[] = {
    &router_least_loaded_variant, &router_round_robin_variant,    &router_random_variant,
    &router_power_of_two_variant, &router_session_sticky_variant, &router_prefix_aware_variant,
    &router_weighted_variant,     &router_central_queue_variant,  NULL,
};
