/* The pending events of a run, in one total order: (time, class, sequence). Step events, one live
 * per replica, sit in a winner tree and have their replica's index as sequence (a scheduling
 * counter would differ between span and step mode); everything else sits in a binary heap with
 * handles, so that a cancelled event vanishes and never moves the clock. Push, pop and cancel are
 * O(log n). */
#ifndef FLEETSIM_SIM_BASE_EVENT_QUEUE_H
#define FLEETSIM_SIM_BASE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/rank_tree.h"
#include "sim/base/time.h"

/* The order of simultaneous events. */
enum event_class { EVENT_ARRIVAL, EVENT_CANCEL, EVENT_STEP, EVENT_TIMER };

struct event {
    int64_t time_ps;
    uint64_t sequence; /* among equals in time and class; STEP: the replica's index */
    enum event_class class;
    uint32_t kind;    /* the caller's; STEP: 0 */
    uint64_t payload; /* the caller's; STEP: the replica's index */
};

typedef uint32_t event_handle; /* 0: none */

struct event_entry;
struct event_queue {
    /* Step events: a key is the time since an epoch, which moves along with the run. What lies too
     * far behind it for a key has the key `far`, the greatest but idle, and its time in far_ps. */
    struct rank_tree steps;
    int64_t epoch_ps;
    uint64_t far;
    int64_t *far_ps;          /* owned; [steps.slots]; set where the key is `far` */
    struct event_entry *heap; /* owned; binary heap, [heap_capacity] */
    uint32_t *place;          /* owned; handle → heap index, UINT32_MAX when free */
    uint32_t *free_handles;   /* owned stack */
    uint32_t heap_count, heap_capacity, free_count;
    uint32_t taken; /* replica whose step was popped and still stands in the tree; UINT32_MAX: none.
                       Its next step nearly always follows at once, and one way up is saved */
    uint64_t pushed; /* sequence of the next push */
};

/* replicas: slots for step events; may grow by event_queue_resize. */
void event_queue_init(struct event_queue *q, uint32_t replicas);
void event_queue_free(struct event_queue *q);
void event_queue_resize(struct event_queue *q, uint32_t replicas);

/* Adds an event of any class but STEP; sequence is the order of pushing. The heap grows when full
 * (amortised; size it with the first pushes). */
event_handle event_queue_push(struct event_queue *q, int64_t time_ps, enum event_class class,
                              uint32_t kind, uint64_t payload);
/* Removes a pending event. The handle must be live. */
void event_queue_cancel(struct event_queue *q, event_handle handle);
/* For event_queue_step: none, or one before the epoch or too far behind it. */
void event_queue_step_unusual(struct event_queue *q, uint32_t replica, int64_t time_ps);
/* Sets, moves or (TIME_NEVER) clears the one step event of a replica. */
static inline void event_queue_step(struct event_queue *q, uint32_t replica, int64_t time_ps)
{
    /* Every match above a slot is replayed when it is set, so the key that stood too long is gone
     * without a trace. */
    if (q->taken == replica) {
        q->taken = UINT32_MAX;
    }
    uint64_t since_epoch = (uint64_t)time_ps - (uint64_t)q->epoch_ps; /* before it: enormous */
    if (since_epoch < q->far) {
        rank_tree_set(&q->steps, replica, since_epoch);
    } else {
        event_queue_step_unusual(q, replica, time_ps);
    }
}
/* Takes the first event; false when none is pending. A step event is cleared from its slot; a heap
 * event's handle dies. */
bool event_queue_pop(struct event_queue *q, struct event *event);
/* The same, if the first event comes before limit_ps; false, and nothing is taken, when not. */
bool event_queue_pop_before(struct event_queue *q, int64_t limit_ps, struct event *event);
/* The first event's time, TIME_NEVER when none. */
int64_t event_queue_peek_time(struct event_queue *q);
/* The one order: negative, zero, positive as a comes before, equals, follows b. */
int event_compare(const struct event *a, const struct event *b);

#endif
