/* How fast the event queue is: the hold model. With n events pending the first is taken and one is
 * put back, a random time later (exponential, mean 1 ms), over and over.
 *
 *     hold HOLDS N…
 *
 * prints one line for each N: N, nanoseconds per hold among step events (winner tree, one slot per
 * replica), nanoseconds per hold among other events (heap with handles). CPU time. Exits 1 when an
 * event comes out of order or one is lost. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/event_queue.h"
#include "sim/base/time.h"

enum { DELAYS = 4096 }; /* quantiles of the distribution, taken in random order */

struct hold {
    int64_t delays_ps[DELAYS];
    uint64_t state; /* of an xorshift generator: chance here need not be good, but cheap */
};

static int64_t delay_next(struct hold *h)
{
    h->state ^= h->state << 13;
    h->state ^= h->state >> 7;
    h->state ^= h->state << 17;
    return h->delays_ps[h->state >> 52];
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void fault(const char *what, uint32_t pending)
{
    fprintf(stderr, "hold: %s, with %" PRIu32 " pending\n", what, pending);
    exit(1);
}

/* What a run would do: an event leads to the next one. */
static void put(struct event_queue *q, enum event_class class, uint64_t payload, int64_t time_ps)
{
    if (class == EVENT_STEP)
        event_queue_step(q, (uint32_t)payload, time_ps);
    else
        event_queue_push(q, time_ps, class, 0, payload);
}

/* Returns the time of the last event. */
static int64_t holds_run(struct hold *h, struct event_queue *q, enum event_class class,
                         uint32_t pending, uint64_t holds, int64_t now_ps)
{
    struct event event;
    for (uint64_t i = 0; i < holds; i++) {
        if (!event_queue_pop(q, &event))
            fault("an event is lost", pending);
        if (event.time_ps < now_ps || event.class != class)
            fault("an event came out of order", pending);
        now_ps = event.time_ps;
        put(q, class, event.payload, now_ps + delay_next(h));
    }
    return now_ps;
}

/* Nanoseconds per hold. */
static double hold_time(struct hold *h, enum event_class class, uint32_t pending, uint64_t holds)
{
    struct event_queue q;
    struct event event;
    event_queue_init(&q, class == EVENT_STEP ? pending : 1);
    for (uint32_t i = 0; i < pending; i++)
        put(&q, class, i, delay_next(h));
    /* Until the ages of the pending events are as they will stay. */
    int64_t now_ps = holds_run(h, &q, class, pending, 2 * (uint64_t)pending, 0);
    double begun = cpu_ns();
    now_ps = holds_run(h, &q, class, pending, holds, now_ps);
    double taken = (cpu_ns() - begun) / (double)holds;
    uint32_t left = 0;
    for (; event_queue_pop(&q, &event); left++) {
        if (event.time_ps < now_ps)
            fault("an event came out of order", pending);
        now_ps = event.time_ps;
    }
    if (left != pending)
        fault("an event is lost", pending);
    event_queue_free(&q);
    return taken;
}

static uint64_t number_read(const char *text, uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || value == 0 || value > max) {
        fprintf(stderr, "hold: '%s' is not a number from 1 to %" PRIu64 "\n", text, max);
        exit(64);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: hold HOLDS N...\n", stderr);
        return 64;
    }
    struct hold *h = memory_alloc(sizeof *h);
    uint64_t holds = number_read(argv[1], UINT64_C(1) << 40);
    for (int i = 2; i < argc; i++) {
        uint32_t pending = (uint32_t)number_read(argv[i], 100000000);
        for (int k = 0; k < DELAYS; k++)
            h->delays_ps[k] = (int64_t)(-1e9 * detmath_log((k + 0.5) / DELAYS));
        h->state = UINT64_C(0x9e3779b97f4a7c15);
        double steps = hold_time(h, EVENT_STEP, pending, holds);
        double heap = hold_time(h, EVENT_TIMER, pending, holds);
        printf("%" PRIu32 " %.2f %.2f\n", pending, steps, heap);
    }
    free(h);
    return 0;
}
