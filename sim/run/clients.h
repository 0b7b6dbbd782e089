/* The clients behind the requests: users of a closed loop ask again once they are answered, and
 * those with patience leave at their deadline, queued or in the middle of an answer. */
#ifndef FLEETSIM_SIM_RUN_CLIENTS_H
#define FLEETSIM_SIM_RUN_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/event_queue.h"
#include "sim/base/obs.h"
#include "sim/fleet/fleet.h"
#include "sim/workload/workload.h"

struct clients_waiting; /* one class's requests with a deadline */

struct clients {
    struct workload *workload;       /* borrowed */
    struct event_queue *queue;       /* borrowed */
    struct fleet *fleet;             /* borrowed */
    struct clients_waiting *classes; /* owned; [class_count] */
    size_t class_count;
};

/* patience_ps: of each class, FIELD_INT_UNSET: it waits for ever. */
void clients_init(struct clients *clients, struct workload *workload, struct event_queue *queue,
                  const int64_t *patience_ps, size_t class_count);
void clients_free(struct clients *clients);
/* The receiver of ends. */
struct obs_sink clients_sink(struct clients *clients);
/* A request is in flight as this sequence; its class's deadlines come in order of arrival. */
void clients_arrived(struct clients *clients, const struct request *request, uint32_t sequence);
/* The EVENT_CANCEL that was pushed, with the class as payload. */
void clients_leave(struct clients *clients, uint64_t payload, int64_t t);

#endif
