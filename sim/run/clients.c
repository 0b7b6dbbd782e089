#include "sim/run/clients.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/field.h"
#include "sim/engine/sequence.h"

struct waiting {
    int64_t deadline_ps;
    uint64_t id;       /* of the request, rising */
    uint32_t sequence; /* SEQUENCE_NONE: it has ended */
};

/* A ring in order of id, and so of deadline. Only its head has an event in the queue, and the head
 * has not ended: the deadline of an answered request never moves the clock. */
struct clients_waiting {
    int64_t patience_ps;  /* TIME_NONE: none */
    struct waiting *ring; /* owned; [capacity], a power of two */
    size_t capacity;
    uint64_t head, tail;   /* counts; index modulo capacity */
    event_handle deadline; /* of the head; 0: none */
};

enum { RING_MIN = 64 };

void clients_init(struct clients *clients, struct workload *workload, struct event_queue *queue,
                  const int64_t *patience_ps, size_t class_count)
{
    *clients = (struct clients){.workload = workload, .queue = queue, .class_count = class_count};
    clients->classes = memory_zero(class_count, sizeof *clients->classes);
    for (size_t c = 0; c < class_count; c++) {
        clients->classes[c].patience_ps =
            patience_ps[c] == FIELD_INT_UNSET ? TIME_NONE : patience_ps[c];
    }
}

void clients_free(struct clients *clients)
{
    for (size_t c = 0; c < clients->class_count; c++) {
        free(clients->classes[c].ring);
    }
    free(clients->classes);
}

static struct waiting *waiting_at(const struct clients_waiting *w, uint64_t at)
{
    return &w->ring[at & (w->capacity - 1)];
}

/* Grows only while more wait at once than ever before. */
static void ring_grow(struct clients_waiting *w)
{
    struct waiting *old = w->ring;
    size_t mask = w->capacity - 1;
    w->capacity = w->capacity > 0 ? 2 * w->capacity : RING_MIN;
    w->ring = memory_zero(w->capacity, sizeof *w->ring);
    for (uint64_t at = w->head; at < w->tail; at++) {
        *waiting_at(w, at) = old[at & mask];
    }
    free(old);
}

/* Drops from the head what has ended, and gives the new head its event. */
static void head_settle(struct clients *clients, size_t class)
{
    struct clients_waiting *w = &clients->classes[class];
    while (w->head < w->tail && waiting_at(w, w->head)->sequence == SEQUENCE_NONE) {
        w->head++;
    }
    if (w->head < w->tail) {
        w->deadline = event_queue_push(clients->queue, waiting_at(w, w->head)->deadline_ps,
                                       EVENT_CANCEL, 0, class);
    }
}

void clients_arrived(struct clients *clients, const struct request *request, uint32_t sequence)
{
    struct clients_waiting *w = &clients->classes[request->class_index];
    if (w->patience_ps == TIME_NONE || sequence == SEQUENCE_NONE) {
        return;
    }
    if (w->tail - w->head == w->capacity) {
        ring_grow(w);
    }
    *waiting_at(w, w->tail++) =
        (struct waiting){.deadline_ps = time_add(request->arrival_ps, w->patience_ps),
                         .id = request->id,
                         .sequence = sequence};
    if (w->deadline == 0) {
        head_settle(clients, request->class_index);
    }
}

/* The ring's entry of a request, or NULL. */
static struct waiting *waiting_find(const struct clients_waiting *w, uint64_t id)
{
    uint64_t low = w->head, high = w->tail;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (waiting_at(w, mid)->id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < w->tail && waiting_at(w, low)->id == id ? waiting_at(w, low) : NULL;
}

static void clients_take(void *self, const struct obs *obs)
{
    struct clients *clients = self;
    const struct request_record *record = obs->u.record;
    size_t class = record->request.class_index;
    struct clients_waiting *w = &clients->classes[class];
    struct waiting *waiting = waiting_find(w, record->request.id);
    if (waiting != NULL) {
        bool head = waiting == waiting_at(w, w->head);
        waiting->sequence = SEQUENCE_NONE;
        if (head) {
            if (w->deadline != 0) {
                event_queue_cancel(clients->queue, w->deadline);
                w->deadline = 0;
            }
            head_settle(clients, class);
        }
    }
    if (workload_complete(clients->workload, record)) {
        fleet_session_over(clients->fleet, &record->request);
    }
}

struct obs_sink clients_sink(struct clients *clients)
{
    return (struct obs_sink){.take = clients_take, .self = clients, .kinds = 1 << OBS_END};
}

void clients_leave(struct clients *clients, uint64_t payload, int64_t t)
{
    struct clients_waiting *w = &clients->classes[payload];
    check(w->head < w->tail && waiting_at(w, w->head)->deadline_ps == t);
    w->deadline = 0; /* it was popped */
    fleet_cancel(clients->fleet, waiting_at(w, w->head)->sequence, t);
}
