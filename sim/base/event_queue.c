#include "sim/base/event_queue.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/time.h"

/* (class, sequence) in one word, so that the order is two comparisons: the class in the top two
 * bits, the sequence below. */
enum { ORDER_CLASS_SHIFT = 62 };
#define ORDER_SEQUENCE_MASK ((UINT64_C(1) << ORDER_CLASS_SHIFT) - 1)
#define PLACE_FREE          UINT32_MAX
#define REPLICA_NONE        UINT32_MAX

struct event_entry {
    int64_t time_ps;
    uint64_t order;
    uint64_t payload;
    uint32_t kind;
    event_handle handle;
};

static inline bool entry_before(const struct event_entry *a, const struct event_entry *b)
{
    return (a->time_ps < b->time_ps) | ((a->time_ps == b->time_ps) & (a->order < b->order));
}

int event_compare(const struct event *a, const struct event *b)
{
    if (a->time_ps != b->time_ps) {
        return a->time_ps < b->time_ps ? -1 : 1;
    }
    if (a->class != b->class) {
        return a->class < b->class ? -1 : 1;
    }
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

/* Doubles the heap and hands out the new handles, lowest first. */
static void event_queue_grow(struct event_queue *q)
{
    uint32_t old = q->heap_capacity, capacity = old > 0 ? 2 * old : 64;
    check(capacity > old && capacity < PLACE_FREE);
    q->heap = memory_grow(q->heap, capacity * sizeof(*q->heap));
    q->place = memory_grow(q->place, ((size_t)capacity + 1) * sizeof(*q->place));
    q->free_handles = memory_grow(q->free_handles, capacity * sizeof(*q->free_handles));
    q->place[0] = PLACE_FREE;
    for (uint32_t handle = capacity; handle > old; handle--) {
        q->place[handle] = PLACE_FREE;
        q->free_handles[q->free_count++] = handle;
    }
    q->heap_capacity = capacity;
}

void event_queue_init(struct event_queue *q, uint32_t replicas)
{
    *q = (struct event_queue){.taken = REPLICA_NONE};
    event_queue_resize(q, replicas > 1 ? replicas : 1);
    event_queue_grow(q);
}

void event_queue_free(struct event_queue *q)
{
    rank_tree_free(&q->steps);
    free(q->far_ps);
    free(q->heap);
    free(q->place);
    free(q->free_handles);
    *q = (struct event_queue){0};
}

static int64_t step_time(const struct event_queue *q, uint32_t replica)
{
    uint64_t key = rank_tree_key_at(&q->steps, replica);
    return key < q->far                       ? q->epoch_ps + (int64_t)key
           : key == rank_tree_idle(&q->steps) ? TIME_NEVER
                                              : q->far_ps[replica];
}

/* Sets all keys anew from the times in far_ps, which are those of all step events for once. The
 * epoch is put before the first of them, so that keys reach as far behind it as before it: a later
 * event may be set to come first. O(replicas), and rare: keys for 1,000 replicas reach five hours,
 * for a million still 18 seconds. */
static void epoch_set(struct event_queue *q)
{
    int64_t first_ps = TIME_NEVER;
    for (uint32_t i = 0; i < q->steps.slots; i++) {
        first_ps = q->far_ps[i] < first_ps ? q->far_ps[i] : first_ps;
    }
    int64_t before_ps = (int64_t)(q->far / 2);
    q->epoch_ps = first_ps > before_ps ? first_ps - before_ps : 0;
    for (uint32_t i = 0; i < q->steps.slots; i++) {
        uint64_t since_epoch = (uint64_t)(q->far_ps[i] - q->epoch_ps);
        rank_tree_set(&q->steps, i,
                      q->far_ps[i] == TIME_NEVER ? rank_tree_idle(&q->steps)
                      : since_epoch < q->far     ? since_epoch
                                                 : q->far);
    }
}

static void epoch_move(struct event_queue *q)
{
    for (uint32_t i = 0; i < q->steps.slots; i++) {
        q->far_ps[i] = step_time(q, i);
    }
    epoch_set(q);
}

void event_queue_step_unusual(struct event_queue *q, uint32_t replica, int64_t time_ps)
{
    bool none = time_ps == TIME_NEVER;
    rank_tree_set(&q->steps, replica, none ? rank_tree_idle(&q->steps) : q->far);
    q->far_ps[replica] = time_ps;
    if (time_ps < q->epoch_ps) {
        epoch_move(q);
    }
}

void event_queue_resize(struct event_queue *q, uint32_t replicas)
{
    uint32_t old = q->steps.slots;
    check(replicas >= old);
    q->far_ps = memory_grow(q->far_ps, replicas * sizeof *q->far_ps);
    for (uint32_t i = 0; i < replicas; i++) {
        q->far_ps[i] = i < old ? step_time(q, i) : TIME_NEVER;
    }
    rank_tree_free(&q->steps);
    rank_tree_init(&q->steps, replicas);
    q->far = rank_tree_idle(&q->steps) - 1;
    epoch_set(q);
}

static inline void heap_put(struct event_queue *q, uint32_t index, const struct event_entry *entry)
{
    q->heap[index] = *entry;
    q->place[entry->handle] = index;
}

/* Puts entry at index or above. */
static void heap_up(struct event_queue *q, uint32_t index, struct event_entry entry)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;
        if (!entry_before(&entry, &q->heap[parent])) {
            break;
        }
        heap_put(q, index, &q->heap[parent]);
        index = parent;
    }
    heap_put(q, index, &entry);
}

/* Puts entry at index or below. */
static void heap_down(struct event_queue *q, uint32_t index, struct event_entry entry)
{
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child >= q->heap_count) {
            break;
        }
        if (child + 1 < q->heap_count) {
            child += entry_before(&q->heap[child + 1], &q->heap[child]);
        }
        if (!entry_before(&q->heap[child], &entry)) {
            break;
        }
        heap_put(q, index, &q->heap[child]);
        index = child;
    }
    heap_put(q, index, &entry);
}

/* Takes the entry at index out and closes the gap. */
static void heap_remove(struct event_queue *q, uint32_t index)
{
    event_handle handle = q->heap[index].handle;
    q->place[handle] = PLACE_FREE;
    q->free_handles[q->free_count++] = handle;
    struct event_entry last = q->heap[--q->heap_count];
    if (index == q->heap_count) {
        return;
    }
    if (index > 0 && entry_before(&last, &q->heap[(index - 1) / 2])) {
        heap_up(q, index, last);
    } else {
        heap_down(q, index, last);
    }
}

event_handle event_queue_push(struct event_queue *q, int64_t time_ps, enum event_class class,
                              uint32_t kind, uint64_t payload)
{
    check(time_ps >= 0 && time_ps != TIME_NEVER);
    check(class == EVENT_ARRIVAL || class == EVENT_CANCEL || class == EVENT_TIMER);
    if (q->heap_count == q->heap_capacity) {
        event_queue_grow(q); /* the marked place: the queue's only allocation in the loop */
    }
    debug_check(q->pushed <= ORDER_SEQUENCE_MASK);
    struct event_entry entry = {
        .time_ps = time_ps,
        .order = (uint64_t) class << ORDER_CLASS_SHIFT | q->pushed++,
        .payload = payload,
        .kind = kind,
        .handle = q->free_handles[--q->free_count],
    };
    heap_up(q, q->heap_count++, entry);
    return entry.handle;
}

void event_queue_cancel(struct event_queue *q, event_handle handle)
{
    check(handle > 0 && handle <= q->heap_capacity && q->place[handle] != PLACE_FREE);
    heap_remove(q, q->place[handle]);
}

/* Clears the slot of the step popped last, unless it was set again. */
static inline void clear_taken(struct event_queue *q)
{
    if (q->taken != REPLICA_NONE) {
        event_queue_step(q, q->taken, TIME_NEVER);
    }
}

/* The time of the first step event, TIME_NEVER when none. */
static inline int64_t step_first(struct event_queue *q)
{
    uint64_t key = rank_tree_key(&q->steps);
    if (key < q->far) {
        return q->epoch_ps + (int64_t)key;
    }
    if (key == rank_tree_idle(&q->steps)) {
        return TIME_NEVER;
    }
    epoch_move(q); /* whoever is first is known from far away only */
    return step_time(q, rank_tree_winner(&q->steps));
}

/* Whether the first event is the champion of the step tree. Between a step and a heap entry the
 * class decides a tie in time: no step is ever in the heap. */
static inline bool step_is_first(const struct event_queue *q, int64_t step_ps)
{
    if (q->heap_count == 0) {
        return step_ps != TIME_NEVER;
    }
    const struct event_entry *top = &q->heap[0];
    return step_ps < top->time_ps ||
           (step_ps == top->time_ps && EVENT_STEP < top->order >> ORDER_CLASS_SHIFT);
}

bool event_queue_pop(struct event_queue *q, struct event *event)
{
    return event_queue_pop_before(q, TIME_NEVER, event);
}

bool event_queue_pop_before(struct event_queue *q, int64_t limit_ps, struct event *event)
{
    clear_taken(q);
    int64_t step_ps = step_first(q);
    if (step_is_first(q, step_ps)) {
        if (step_ps >= limit_ps) {
            return false;
        }
        uint32_t replica = rank_tree_winner(&q->steps);
        *event = (struct event){
            .time_ps = step_ps,
            .sequence = replica,
            .class = EVENT_STEP,
            .payload = replica,
        };
        q->taken = replica;
        return true;
    }
    if (q->heap_count == 0 || q->heap[0].time_ps >= limit_ps) {
        return false;
    }
    const struct event_entry *top = &q->heap[0];
    *event = (struct event){
        .time_ps = top->time_ps,
        .sequence = top->order & ORDER_SEQUENCE_MASK,
        .class = (enum event_class)(top->order >> ORDER_CLASS_SHIFT),
        .kind = top->kind,
        .payload = top->payload,
    };
    heap_remove(q, 0);
    return true;
}

int64_t event_queue_peek_time(struct event_queue *q)
{
    clear_taken(q);
    int64_t step_ps = step_first(q);
    if (step_is_first(q, step_ps)) {
        return step_ps;
    }
    return q->heap_count > 0 ? q->heap[0].time_ps : TIME_NEVER;
}
