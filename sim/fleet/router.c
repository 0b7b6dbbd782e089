#include "sim/fleet/router.h"

#include <stddef.h>

const struct variant *const router_variants[] = {
    &router_least_loaded_variant,
    &router_round_robin_variant,
    &router_random_variant,
    &router_central_queue_variant,
    NULL,
};

const char *const router_later[] = {"power_of_two", "session_sticky", "prefix_aware", "weighted",
                                    NULL};
