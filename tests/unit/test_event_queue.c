/* The event queue: one total order, ties on purpose, cancelling, and a random search against a
 * plain list. */
#include <string.h>

#include "sim/base/event_queue.h"
#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "tests/unit/suite_run.h"

enum { REPLICAS = 13, LIST_MAX = 4096 };

/* The list the queue is held against: unsorted, searched from end to end. */
struct list_item {
    struct event event;
    event_handle handle; /* 0 for steps */
};
struct list {
    struct list_item items[LIST_MAX];
    size_t count;
};

/* The order written out once more, on purpose not by event_compare. */
static bool comes_before(const struct event *a, const struct event *b)
{
    if (a->time_ps != b->time_ps) {
        return a->time_ps < b->time_ps;
    }
    if (a->class != b->class) {
        return a->class < b->class;
    }
    return a->sequence < b->sequence;
}

static size_t list_first(const struct list *list)
{
    size_t first = 0;
    for (size_t i = 1; i < list->count; i++) {
        if (comes_before(&list->items[i].event, &list->items[first].event)) {
            first = i;
        }
    }
    return first;
}

static void list_remove(struct list *list, size_t at)
{
    list->items[at] = list->items[--list->count];
}

/* Sets, moves or clears the replica's step in the list. */
static void list_step(struct list *list, uint32_t replica, int64_t time_ps)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct event *event = &list->items[i].event;
        if (event->class == EVENT_STEP && event->payload == replica) {
            list_remove(list, i);
            break;
        }
    }
    if (time_ps != TIME_NEVER) {
        struct event event = {time_ps, replica, EVENT_STEP, 0, replica};
        list->items[list->count++] = (struct list_item){event, 0};
    }
}

static void ck_event(const struct event *found, const struct event *expected)
{
    ck_assert_int_eq(found->time_ps, expected->time_ps);
    ck_assert_int_eq(found->class, expected->class);
    ck_assert_uint_eq(found->sequence, expected->sequence);
    ck_assert_uint_eq(found->kind, expected->kind);
    ck_assert_uint_eq(found->payload, expected->payload);
}

/* One random operation on both. Times are few, so that ties are the rule. */
static void random_operation(struct event_queue *q, struct list *list, struct rng_pair bits,
                             uint64_t *pushed, uint64_t times)
{
    static const enum event_class classes[] = {EVENT_ARRIVAL, EVENT_CANCEL, EVENT_TIMER};
    int64_t time_ps = (int64_t)(bits.b % times);
    uint64_t action = bits.a % 16;
    if (action < 6 && list->count < LIST_MAX - REPLICAS) {
        struct event event = {time_ps, *pushed, classes[(bits.a >> 8) % 3],
                              (uint32_t)(bits.a >> 16), bits.b};
        ++*pushed;
        event_handle handle =
            event_queue_push(q, event.time_ps, event.class, event.kind, event.payload);
        ck_assert_uint_ne(handle, 0);
        list->items[list->count++] = (struct list_item){event, handle};
    } else if (action < 9) {
        uint32_t replica = (uint32_t)(bits.a >> 8) % REPLICAS;
        time_ps = action == 6 ? TIME_NEVER : time_ps;
        event_queue_step(q, replica, time_ps);
        list_step(list, replica, time_ps);
    } else if (action < 12 && list->count > 0) {
        size_t victim = (size_t)(bits.a >> 8) % list->count;
        if (list->items[victim].handle != 0) {
            event_queue_cancel(q, list->items[victim].handle);
            list_remove(list, victim);
        }
    } else {
        struct event event;
        bool found = event_queue_pop(q, &event);
        ck_assert_int_eq(found, list->count > 0);
        if (found) {
            size_t first = list_first(list);
            ck_event(&event, &list->items[first].event);
            list_remove(list, first);
        }
    }
    if (bits.b >> 62 != 0) {
        return; /* a look at the queue settles what it put off: mostly, do not look */
    }
    int64_t next_ps = list->count > 0 ? list->items[list_first(list)].event.time_ps : TIME_NEVER;
    ck_assert_int_eq(event_queue_peek_time(q), next_ps);
}

START_TEST(random_operations_against_a_list)
{
    struct list *list = malloc(sizeof(*list));
    ck_assert_ptr_nonnull(list);
    for (uint64_t round = 0; round < 40; round++) {
        struct event_queue q;
        event_queue_init(&q, REPLICAS);
        list->count = 0;
        uint64_t pushed = 0, times = round % 4 == 0 ? 3 : round % 4 == 1 ? 40 : UINT64_C(1) << 62;
        for (uint64_t i = 0; i < 10000; i++) {
            random_operation(&q, list, rng_draw(1, round, i), &pushed, times);
        }
        struct event event, last = {.time_ps = -1};
        while (event_queue_pop(&q, &event)) { /* what is left comes out sorted */
            size_t first = list_first(list);
            ck_event(&event, &list->items[first].event);
            list_remove(list, first);
            ck_assert_int_lt(event_compare(&last, &event), 0);
            last = event;
        }
        ck_assert_uint_eq(list->count, 0);
        event_queue_free(&q);
    }
    free(list);
}
END_TEST

START_TEST(classes_at_one_instant)
{
    struct event_queue q;
    event_queue_init(&q, 4);
    event_queue_push(&q, 5, EVENT_TIMER, 1, 0);
    event_queue_step(&q, 3, 5);
    event_queue_step(&q, 1, 5);
    event_queue_push(&q, 5, EVENT_CANCEL, 2, 0);
    event_queue_push(&q, 5, EVENT_ARRIVAL, 3, 0);
    event_queue_push(&q, 5, EVENT_TIMER, 4, 0);
    event_queue_push(&q, 5, EVENT_ARRIVAL, 5, 0);
    event_queue_push(&q, 4, EVENT_TIMER, 6, 0);
    static const struct {
        enum event_class class;
        uint32_t kind;
        uint64_t payload;
    } expected[] = {{EVENT_TIMER, 6, 0},  {EVENT_ARRIVAL, 3, 0}, {EVENT_ARRIVAL, 5, 0},
                    {EVENT_CANCEL, 2, 0}, {EVENT_STEP, 0, 1},    {EVENT_STEP, 0, 3},
                    {EVENT_TIMER, 1, 0},  {EVENT_TIMER, 4, 0}};
    struct event event;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        ck_assert(event_queue_pop(&q, &event));
        ck_assert_int_eq(event.class, expected[i].class);
        ck_assert_uint_eq(event.kind, expected[i].kind);
        ck_assert_uint_eq(event.payload, expected[i].payload);
    }
    ck_assert(!event_queue_pop(&q, &event));
    event_queue_free(&q);
}
END_TEST

START_TEST(comparison_is_total)
{
    struct event events[3 * 4 * 3];
    size_t n = 0;
    for (int64_t time_ps = 0; time_ps < 3; time_ps++) {
        for (int class = EVENT_ARRIVAL; class <= EVENT_TIMER; class ++) {
            for (uint64_t sequence = 0; sequence < 3; sequence++) {
                events[n++] = (struct event){time_ps, sequence, (enum event_class) class, 9, 9};
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            int order = event_compare(&events[i], &events[j]);
            ck_assert_int_eq((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}
END_TEST

/* 300 s timeouts of requests that complete at 20 s: the run ends at 20 s. */
START_TEST(cancelled_events_do_not_move_the_clock)
{
    enum { REQUESTS = 1000, COMPLETE = 1, TIMEOUT = 2 };
    static event_handle timeouts[REQUESTS];
    struct event_queue q;
    event_queue_init(&q, 1);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        timeouts[i] = event_queue_push(&q, 300 * PS_PER_SECOND, EVENT_CANCEL, TIMEOUT, i);
        event_queue_push(&q, 20 * PS_PER_SECOND - (int64_t)i, EVENT_TIMER, COMPLETE, i);
    }
    struct event event;
    int64_t now_ps = 0;
    uint64_t completed = 0;
    while (event_queue_pop(&q, &event)) {
        ck_assert_int_ge(event.time_ps, now_ps);
        now_ps = event.time_ps;
        ck_assert_uint_eq(event.kind, COMPLETE);
        event_queue_cancel(&q, timeouts[event.payload]);
        completed++;
    }
    ck_assert_uint_eq(completed, REQUESTS);
    ck_assert_int_eq(now_ps, 20 * PS_PER_SECOND);
    ck_assert_int_eq(event_queue_peek_time(&q), TIME_NEVER);
    event_queue_free(&q);
}
END_TEST

/* T08 (a, b): 1,000 arrivals at 0, one server, 1 ms each; and the ends it gave. */
static void serve(uint64_t idle_timers, int64_t ends_ps[1000])
{
    enum { IDLE = 7 };
    struct event_queue q;
    struct event event;
    event_queue_init(&q, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        if (i % 2 == 0 && i / 2 < idle_timers) {
            event_queue_push(&q, 0, EVENT_TIMER, IDLE, i);
        }
        event_queue_push(&q, 0, EVENT_ARRIVAL, 0, i);
    }
    uint64_t queue[1000], head = 0, tail = 0, idle = 0;
    bool busy = false;
    while (event_queue_pop(&q, &event)) {
        idle += event.class == EVENT_TIMER;
        if (event.class == EVENT_ARRIVAL) {
            queue[tail++] = event.payload;
            if (!busy) {
                event_queue_step(&q, 0, event.time_ps);
            }
        } else if (event.class == EVENT_STEP) {
            if (busy) {
                ends_ps[queue[head++]] = event.time_ps;
            }
            busy = head < tail;
            if (busy) {
                event_queue_step(&q, 0, event.time_ps + PS_PER_SECOND / 1000);
            }
        }
    }
    ck_assert_uint_eq(idle, idle_timers);
    event_queue_free(&q);
}

START_TEST(idle_timers_change_nothing)
{
    static int64_t plain[1000], timed[1000];
    serve(0, plain);
    serve(500, timed);
    for (int64_t k = 0; k < 1000; k++) {
        ck_assert_int_eq(plain[k], (k + 1) * (PS_PER_SECOND / 1000));
    }
    ck_assert_mem_eq(plain, timed, sizeof(plain));
}
END_TEST

START_TEST(growing_keeps_pending_events)
{
    struct event_queue q;
    struct event event;
    event_queue_init(&q, 1);
    event_queue_step(&q, 0, 7);
    event_queue_push(&q, 9, EVENT_TIMER, 1, 2);
    event_queue_resize(&q, 5000);
    event_queue_step(&q, 4999, 8);
    static const int64_t expected[] = {7, 8, 9};
    for (int i = 0; i < 3; i++) {
        ck_assert(event_queue_pop(&q, &event));
        ck_assert_int_eq(event.time_ps, expected[i]);
    }
    ck_assert(!event_queue_pop(&q, &event));
    event_queue_free(&q);
}
END_TEST

/* Steps too far apart for keys: with 4,096 replicas those reach 75 minutes. */
START_TEST(steps_beyond_the_reach_of_keys)
{
    enum { MANY = 4096, SHOWN = 400 };
    struct event_queue q;
    struct event event;
    event_queue_init(&q, MANY);
    for (uint32_t i = 0; i < SHOWN; i++) { /* two of each: up to 100 days, down to now */
        int64_t days = (int64_t)(rng_draw(7, i / 2, 0).a % (100 * 86400));
        event_queue_step(&q, MANY - 1 - i, days * (i % 4 < 2 ? PS_PER_SECOND : 1));
    }
    event_queue_step(&q, MANY - 1, TIME_NEVER);
    int64_t last_ps = -1;
    uint64_t last = 0;
    for (uint32_t i = 1; i < SHOWN; i++) {
        ck_assert(event_queue_pop(&q, &event));
        ck_assert(event.time_ps > last_ps || (event.time_ps == last_ps && event.payload > last));
        uint32_t drawn = (uint32_t)(MANY - 1 - event.payload);
        int64_t days = (int64_t)(rng_draw(7, drawn / 2, 0).a % (100 * 86400));
        ck_assert_int_eq(event.time_ps, days * (drawn % 4 < 2 ? PS_PER_SECOND : 1));
        last_ps = event.time_ps;
        last = event.payload;
        if (i == SHOWN / 2) {
            event_queue_resize(&q, 2 * MANY); /* with one popped and not set again */
        }
    }
    ck_assert(!event_queue_pop(&q, &event));
    event_queue_free(&q);
}
END_TEST

static void cancel_twice(void *arg)
{
    struct event_queue *q = arg;
    event_handle handle = event_queue_push(q, 1, EVENT_TIMER, 0, 0);
    event_queue_cancel(q, handle);
    event_queue_cancel(q, handle);
}

static void push_step(void *arg)
{
    event_queue_push(arg, 1, EVENT_STEP, 0, 0);
}

static void push_never(void *arg)
{
    event_queue_push(arg, TIME_NEVER, EVENT_TIMER, 0, 0);
}

START_TEST(misuse_is_a_fault)
{
    char message[256];
    struct event_queue q;
    event_queue_init(&q, 1);
    ck_assert(suite_aborts(cancel_twice, &q, message, sizeof(message)));
    ck_assert(suite_aborts(push_step, &q, message, sizeof(message)));
    ck_assert(suite_aborts(push_never, &q, message, sizeof(message)));
    event_queue_free(&q);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_operations_against_a_list,
                                  classes_at_one_instant,
                                  comparison_is_total,
                                  cancelled_events_do_not_move_the_clock,
                                  idle_timers_change_nothing,
                                  growing_keeps_pending_events,
                                  steps_beyond_the_reach_of_keys,
                                  misuse_is_a_fault,
                                  NULL};
    return suite_run("event_queue", tests, 60);
}
