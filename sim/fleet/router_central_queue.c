/* One queue per pool, pulled by whichever replica first has a seat, budget and KV for the head: the
 * shared queue of queueing theory (M/M/c). */
#include <stddef.h>

#include "sim/fleet/router.h"

static const struct router_type central_queue = {.central = true};

const struct variant router_central_queue_variant = {
    .name = "central_queue",
    .doc = "One queue per pool, pulled by free seats",
    .ops = &central_queue,
};
