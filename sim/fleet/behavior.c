#include "sim/fleet/behavior.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"

const struct field behavior_fields[] = {
    {.name = "min_replicas",
     .kind = FIELD_INT,
     .offset = offsetof(struct behavior_config, min_replicas),
     .fallback = "1",
     .min = 0,
     .max = 100000,
     .doc = "Never fewer replicas; with 0 the last one goes when nothing has come for "
            "idle_timeout, requests are held, and the first to come starts a replica"},
    {.name = "max_replicas",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct behavior_config, max_replicas),
     .min = 1,
     .max = 100000,
     .doc = "Never more replicas"},
    {.name = "interval",
     .kind = FIELD_TIME,
     .offset = offsetof(struct behavior_config, interval_ps),
     .fallback = "15 s",
     .min = 0.1,
     .max = 86400,
     .doc = "Time between decisions"},
    {.name = "idle_timeout",
     .kind = FIELD_TIME,
     .offset = offsetof(struct behavior_config, idle_timeout_ps),
     .fallback = "60 s",
     .max = 86400,
     .doc = "With min_replicas 0: the last replica stays until decisions have seen nothing in "
            "flight and nothing arrive for this long"},
    {.name = "scale_up_window",
     .kind = FIELD_TIME,
     .offset = offsetof(struct behavior_config, scale_up_window_ps),
     .fallback = "0 s",
     .max = 86400,
     .doc = "Scale up to the lowest wish of this window"},
    {.name = "scale_down_window",
     .kind = FIELD_TIME,
     .offset = offsetof(struct behavior_config, scale_down_window_ps),
     .fallback = "300 s",
     .max = 86400,
     .doc = "Scale down to the highest wish of this window; a wish exactly this old is outside"},
    {.name = "scale_up_step",
     .kind = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct behavior_config, scale_up_step),
     .min = 1,
     .max = 100000,
     .doc = "At most this many replicas more within a step_period; of step and percent the larger "
            "holds"},
    {.name = "scale_up_percent",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct behavior_config, scale_up_percent),
     .max = 1000,
     .doc = "At most this share of the replicas at the step_period's begin more, rounded up"},
    {.name = "scale_down_step",
     .kind = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct behavior_config, scale_down_step),
     .min = 1,
     .max = 100000,
     .doc = "At most this many replicas fewer within a step_period; of step and percent the larger "
            "holds"},
    {.name = "scale_down_percent",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct behavior_config, scale_down_percent),
     .max = 1,
     .doc = "At most this share of the replicas at the step_period's begin fewer; what stays is "
            "rounded down"},
    {.name = "step_period",
     .kind = FIELD_TIME,
     .offset = offsetof(struct behavior_config, step_period_ps),
     .fallback = "60 s",
     .min = 1,
     .max = 86400,
     .doc = "What scale_up_step, scale_up_percent and their like are counted over"},
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct behavior_config, signals),
     .fields = autoscaler_signal_fields,
     .doc = "When what a decision sees was read"},
    {0},
};

/* ---- rings --------------------------------------------------------------------------------------
 */

static void ring_init(struct behavior_ring *ring, int64_t window_ps, int64_t interval_ps)
{
    ring->capacity = (uint32_t)(window_ps / interval_ps) + 2;
    ring->marks = memory_zero(ring->capacity, sizeof *ring->marks);
}

static void ring_add(struct behavior_ring *ring, int64_t now_ps, int64_t replicas)
{
    if (ring->count == ring->capacity) {
        ring->first = (ring->first + 1) % ring->capacity;
        ring->count--;
    }
    ring->marks[(ring->first + ring->count++) % ring->capacity] =
        (struct behavior_mark){now_ps, replicas};
}

static const struct behavior_mark *ring_at(const struct behavior_ring *ring, uint32_t i)
{
    return &ring->marks[(ring->first + i) % ring->capacity];
}

/* ---- the behavior -------------------------------------------------------------------------------
 */

static int64_t millionths(double share)
{
    return isnan(share) ? -1 : llround(share * BEHAVIOR_MILLION);
}

void behavior_init(struct behavior *b, const struct behavior_config *config)
{
    *b = (struct behavior){.config = config,
                           .up_millionths = millionths(config->scale_up_percent),
                           .down_millionths = millionths(config->scale_down_percent),
                           .limit_millionths = millionths(config->scale_down_limit)};
    int64_t window = config->scale_up_window_ps > config->scale_down_window_ps
                         ? config->scale_up_window_ps
                         : config->scale_down_window_ps;
    ring_init(&b->wishes, window, config->interval_ps);
    ring_init(&b->changes, config->step_period_ps, config->interval_ps);
}

void behavior_free(struct behavior *b)
{
    free(b->wishes.marks);
    free(b->changes.marks);
}

void behavior_limits(const struct behavior_config *config, uint32_t *min, uint32_t *max,
                     uint32_t *initial)
{
    *min = (uint32_t)config->min_replicas;
    *max = (uint32_t)config->max_replicas;
    *initial = UINT32_MAX;
}

/* The fewest replicas now: with a minimum of 0 the last one stays while something is going on, and
 * for idle_timeout after. */
static int64_t fewest(const struct behavior_config *config, const struct autoscaler_signal *signal)
{
    if (config->min_replicas > 0) {
        return config->min_replicas;
    }
    bool fresh = signal->ready + signal->starting > 0 && signal->idle_ps < config->idle_timeout_ps;
    return signal->active || fresh ? 1 : 0;
}

static uint32_t clamp(int128 value, int64_t min, int64_t max)
{
    return (uint32_t)(value < min ? min : value > max ? max : value);
}

uint32_t behavior_begin(struct behavior *b, const struct autoscaler_signal *signal,
                        struct autoscaler_decision *decision)
{
    uint32_t present = signal->ready + signal->starting;
    decision->target = clamp(present, fewest(b->config, signal), b->config->max_replicas);
    decision->wished = present;
    decision->metric = NAN;
    decision->reason = "no signal yet";
    decision->announce = false;
    if (b->wishes.count == 0) {
        ring_add(&b->wishes, signal->now_ps, decision->target);
    }
    return present;
}

/* The wish that the windows allow: between the lowest of the scale-up window (if that is above the
 * present) and the highest of the scale-down window (if below). */
static int64_t stabilised(const struct behavior *b, int64_t now_ps, int64_t present, int64_t wished)
{
    int64_t lowest = wished, highest = wished;
    for (uint32_t i = 0; i < b->wishes.count; i++) {
        const struct behavior_mark *w = ring_at(&b->wishes, i);
        int64_t age = now_ps - w->time_ps;
        if (age < b->config->scale_up_window_ps && w->replicas < lowest) {
            lowest = w->replicas;
        }
        if (age < b->config->scale_down_window_ps && w->replicas > highest) {
            highest = w->replicas;
        }
    }
    int64_t result = present < lowest ? lowest : present;
    return result > highest ? highest : result;
}

/* Replicas when the step period began: what the changes since have made of them undone. */
static int64_t at_period_begin(const struct behavior *b, int64_t now_ps, int64_t present)
{
    int64_t begin = present;
    for (uint32_t i = 0; i < b->changes.count; i++) {
        const struct behavior_mark *change = ring_at(&b->changes, i);
        if (now_ps - change->time_ps < b->config->step_period_ps) {
            begin -= change->replicas;
        }
    }
    return begin;
}

static int64_t stepped(const struct behavior *b, int64_t now_ps, int64_t present, int64_t wished)
{
    const struct behavior_config *config = b->config;
    int64_t begin = at_period_begin(b, now_ps, present);
    int64_t most = INT64_MIN, least = INT64_MAX;
    if (config->scale_up_step != FIELD_INT_UNSET) {
        most = begin + config->scale_up_step;
    }
    if (b->up_millionths >= 0) {
        int64_t share = begin * (BEHAVIOR_MILLION + b->up_millionths);
        int64_t percent = (share + BEHAVIOR_MILLION - 1) / BEHAVIOR_MILLION;
        most = percent > most ? percent : most;
    }
    if (config->scale_down_step != FIELD_INT_UNSET) {
        least = begin - config->scale_down_step;
    }
    if (b->down_millionths >= 0) {
        int64_t percent = begin * (BEHAVIOR_MILLION - b->down_millionths) / BEHAVIOR_MILLION;
        least = percent < least ? percent : least;
    }
    if (most != INT64_MIN && wished > most && wished > present) {
        return most > present ? most : present;
    }
    if (least != INT64_MAX && wished < least && wished < present) {
        return least < present ? least : present;
    }
    return wished;
}

/* The fewest replicas, from wished to present, on which the window's work stays below the limit. */
static int64_t survivors(const struct behavior *b, const struct autoscaler_signal *signal,
                         int64_t present, int64_t wished)
{
    if (b->limit_millionths < 0 || wished >= present) {
        return wished;
    }
    if (signal->missing || signal->window_ps == 0) {
        return present; /* nobody knows what they would have to carry */
    }
    int128 unit = (int128)signal->window_ps * b->limit_millionths;
    int128 enough = unit > 0 ? signal->work_ps * BEHAVIOR_MILLION / unit + 1 : present;
    int64_t least = enough < present ? (int64_t)enough : present;
    return wished > least ? wished : least;
}

void behavior_apply(struct behavior *b, const struct autoscaler_signal *signal, int128 wished_,
                    struct autoscaler_decision *decision)
{
    const struct behavior_config *config = b->config;
    int64_t present = (int64_t)signal->ready + signal->starting;
    int64_t min = fewest(config, signal);
    int64_t wished = clamp(wished_, min, config->max_replicas);
    decision->wished = (uint32_t)wished;
    ring_add(&b->wishes, signal->now_ps, wished);
    int64_t result = stabilised(b, signal->now_ps, present, wished);
    result = stepped(b, signal->now_ps, present, result);
    result = survivors(b, signal, present, result);
    decision->target = clamp(result, min, config->max_replicas);
    if (decision->target != present) {
        ring_add(&b->changes, signal->now_ps, decision->target - present);
    }
}
