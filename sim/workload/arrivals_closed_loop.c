/* closed_loop: a fixed number of virtual users, each of whom asks, waits for the end of the answer,
 * thinks, and asks again. Request n of the class has the draws of number n, whoever asks it; when
 * it comes follows from the fleet. */
#include "sim/workload/arrivals.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"

struct closed_config {
    int64_t concurrency;
    int64_t think_ps;
    int think_dist;
    int64_t ramp_ps, retry_ps;
    int64_t count; /* FIELD_INT_UNLIMITED: until the horizon */
};

enum { THINK_CONSTANT, THINK_EXPONENTIAL };
static const char *const think_choices[] = {"constant", "exponential", NULL};

static const struct field closed_fields[] = {
    {.name = "concurrency",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct closed_config, concurrency),
     .min = 1,
     .max = 10000000,
     .doc = "Virtual users, each with at most one request in flight."},
    {.name = "think_time",
     .kind = FIELD_TIME,
     .offset = offsetof(struct closed_config, think_ps),
     .fallback = "0 s",
     .min = 0,
     .max = 8640000,
     .doc =
         "Mean time from the end of an answer to the user's next request; at least 1 ps passes."},
    {.name = "think_distribution",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct closed_config, think_dist),
     .fallback = "constant",
     .doc = "How think times vary.",
     .choices = think_choices},
    {.name = "ramp",
     .kind = FIELD_TIME,
     .offset = offsetof(struct closed_config, ramp_ps),
     .fallback = "0 s",
     .min = 0,
     .max = 8640000,
     .doc =
         "Users begin one by one, evenly over this time from the class's start; 0: all at once."},
    {.name = "retry",
     .kind = FIELD_TIME,
     .offset = offsetof(struct closed_config, retry_ps),
     .fallback = "1 s",
     .min = 0.001,
     .max = 86400,
     .doc = "Shortest pause of a user whose request was refused."},
    {.name = "count",
     .kind = FIELD_INT,
     .flags = FIELD_UNLIMITED | FIELD_MIN_OPEN,
     .offset = offsetof(struct closed_config, count),
     .fallback = "unlimited",
     .doc = "Requests in all; then nobody asks again."},
    {0}};

/* A user about to ask. */
struct pending {
    int64_t time_ps;
    uint32_t user;
};

struct closed {
    const struct closed_config *config; /* borrowed */
    int64_t from_ps, to_ps;             /* of the class */
    uint64_t key;
    uint64_t number;      /* of the next request */
    struct pending *heap; /* owned; by (time, user); [concurrency] */
    uint32_t heap_count;
    int64_t *think_ps; /* owned; of each user after the request in flight */
    uint32_t *turn;    /* owned; of each user's next request */
    int64_t horizon_ps;
};

static void *closed_open(const void *config, const struct arrivals_setup *setup)
{
    const struct closed_config *c = config;
    const struct traffic_config *class = setup->config->classes[setup->site.class_index];
    int64_t to_ps = class->end_ps == FIELD_INT_UNSET ? TIME_NEVER : class->end_ps;
    if (to_ps <= class->start_ps) {
        site_error(&setup->site, "end", "the class ends before it starts");
        return NULL;
    }
    if (strcmp(class->time_zone, "UTC") != 0) {
        site_error(&setup->site, "time_zone",
                   "time_zone is not for a closed loop: it has no curve");
        return NULL;
    }
    struct closed *l = memory_zero(1, sizeof *l);
    l->config = c;
    l->from_ps = class->start_ps;
    l->to_ps = to_ps;
    l->key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                     (uint32_t)setup->site.class_index);
    return l;
}

static void closed_close(void *self)
{
    struct closed *l = self;
    free(l->heap);
    free(l->think_ps);
    free(l->turn);
    free(l);
}

/* ---- the heap ---- */

static bool is_before(const struct pending *a, const struct pending *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->user < b->user;
}

static void heap_push(struct closed *l, struct pending pending)
{
    if (pending.time_ps >= l->horizon_ps)
        return;
    check(l->heap_count < l->config->concurrency);
    uint32_t at = l->heap_count++;
    while (at > 0 && is_before(&pending, &l->heap[(at - 1) / 2])) {
        l->heap[at] = l->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    l->heap[at] = pending;
}

static struct pending heap_pop(struct closed *l)
{
    struct pending top = l->heap[0], last = l->heap[--l->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= l->heap_count)
            break;
        child += child + 1 < l->heap_count && is_before(&l->heap[child + 1], &l->heap[child]);
        if (!is_before(&l->heap[child], &last))
            break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = last;
    return top;
}

/* ---- the process ---- */

static bool closed_start(void *self, int64_t start_unix_s, int64_t horizon_ps,
                         struct errors *errors)
{
    (void)start_unix_s;
    (void)errors;
    struct closed *l = self;
    size_t users = (size_t)l->config->concurrency;
    l->horizon_ps = horizon_ps < l->to_ps ? horizon_ps : l->to_ps;
    l->heap = memory_alloc(users * sizeof *l->heap);
    l->think_ps = memory_zero(users, sizeof *l->think_ps);
    l->turn = memory_zero(users, sizeof *l->turn);
    for (uint32_t user = 0; user < users; user++) {
        int64_t wait_ps = (int64_t)((int128)l->config->ramp_ps * user / (int64_t)users);
        heap_push(l, (struct pending){time_add(l->from_ps, wait_ps), user});
    }
    return true;
}

static int64_t closed_peek(const void *self)
{
    const struct closed *l = self;
    return l->heap_count == 0 || l->number >= (uint64_t)l->config->count ? TIME_NEVER
                                                                         : l->heap[0].time_ps;
}

static int64_t think_draw(const struct closed *l, uint64_t number)
{
    if (l->config->think_dist == THINK_CONSTANT)
        return l->config->think_ps;
    double unit = -detmath_log(rng_unit_open(rng_draw(l->key, number, 0).a));
    return (int64_t)(unit * (double)l->config->think_ps);
}

static size_t closed_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    (void)errors;
    struct closed *l = self;
    if (max == 0 || closed_peek(l) == TIME_NEVER)
        return 0;
    struct pending next = heap_pop(l);
    out[0].arrival_ps = next.time_ps;
    out[0].session = next.user;
    out[0].turn = l->turn[next.user]++;
    l->think_ps[next.user] = think_draw(l, l->number++);
    return 1;
}

static void closed_complete(void *self, const struct request_record *record)
{
    struct closed *l = self;
    if (record->outcome == OUTCOME_IN_FLIGHT)
        return; /* the run was cut */
    uint32_t user = (uint32_t)record->request.session;
    check(user < l->config->concurrency);
    int64_t wait_ps = l->think_ps[user] > 1 ? l->think_ps[user] : 1;
    bool refused = record->outcome == OUTCOME_REFUSED || record->outcome == OUTCOME_UNSERVABLE;
    if (refused && wait_ps < l->config->retry_ps)
        wait_ps = l->config->retry_ps;
    heap_push(l, (struct pending){time_add(record->end_ps, wait_ps), user});
}

/* What comes depends on the fleet. */
static double closed_rate(const void *self, int64_t time_ps)
{
    (void)self;
    (void)time_ps;
    return NAN;
}

static double closed_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    (void)self;
    return to_ps <= from_ps ? 0 : NAN;
}

static const struct arrivals_type closed_type = {
    .open = closed_open,
    .close = closed_close,
    .start = closed_start,
    .fill = closed_fill,
    .rate = closed_rate,
    .expected = closed_expected,
    .peek = closed_peek,
    .complete = closed_complete,
};

const struct variant arrivals_closed_loop_variant = {
    .name = "closed_loop",
    .doc = "A fixed number of users who wait for each answer, think, and ask again.",
    .fields = closed_fields,
    .size = sizeof(struct closed_config),
    .ops = &closed_type,
};
