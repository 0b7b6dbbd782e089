/* Target tracking after the rules of the Kubernetes Horizontal Pod Autoscaler (algorithm details
 * and `behavior` of its documentation): wished = ceil(total signal / target); nothing changes while
 * the signal is within the tolerance of the target; the highest wish within the scale-down window
 * and the lowest within the scale-up window bound the result. Replicas that are still starting
 * count as present, or every decision would order them again. All comparisons are exact: in doubles
 * 110 in flight on 10 replicas with target 10 is beyond a 10 % tolerance. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/fleet/autoscaler.h"

enum target_metric { METRIC_CONCURRENCY, METRIC_UTILIZATION };
static const char *const metric_names[] = {"concurrency", "utilization", NULL};
static const char *const metric_later[] = {"kv", "queue", NULL};

struct target_config {
    int metric;
    double target;
    int64_t min_replicas, max_replicas;
    int64_t interval_ps;
    double tolerance;
    int64_t scale_up_window_ps, scale_down_window_ps;
};

static const struct field target_fields[] = {
    {.name = "metric",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct target_config, metric),
     .fallback = "utilization",
     .choices = metric_names,
     .later = metric_later,
     .doc = "The signal: concurrency (requests running or waiting) or utilization (work executed "
            "since the last decision over time)"},
    {.name = "target",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct target_config, target),
     .min = 1e-6,
     .max = 1e6,
     .doc = "The signal per replica to hold: requests for concurrency, a share for utilization"},
    {.name = "min_replicas",
     .kind = FIELD_INT,
     .offset = offsetof(struct target_config, min_replicas),
     .fallback = "1",
     .min = 1,
     .max = 100000,
     .doc = "Never fewer replicas"},
    {.name = "max_replicas",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct target_config, max_replicas),
     .min = 1,
     .max = 100000,
     .doc = "Never more replicas"},
    {.name = "interval",
     .kind = FIELD_TIME,
     .offset = offsetof(struct target_config, interval_ps),
     .fallback = "15 s",
     .min = 0.1,
     .max = 86400,
     .doc = "Time between decisions"},
    {.name = "tolerance",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct target_config, tolerance),
     .fallback = "10 %",
     .max = 1,
     .doc = "No change while signal / target is within 1 ± this"},
    {.name = "scale_up_window",
     .kind = FIELD_TIME,
     .offset = offsetof(struct target_config, scale_up_window_ps),
     .fallback = "0 s",
     .max = 86400,
     .doc = "Scale up to the lowest wish of this window"},
    {.name = "scale_down_window",
     .kind = FIELD_TIME,
     .offset = offsetof(struct target_config, scale_down_window_ps),
     .fallback = "300 s",
     .max = 86400,
     .doc = "Scale down to the highest wish of this window; a wish exactly this old is outside"},
    {0},
};

struct wish {
    int64_t time_ps;
    uint32_t replicas;
};

struct target_state {
    const struct target_config *config; /* borrowed */
    int64_t target_millionths, tolerance_millionths;
    struct wish *wishes; /* owned ring: as many as fit in the longer window */
    uint32_t capacity, first, count;
};

enum { MILLION = 1000000 };

static void *create(const void *config_)
{
    const struct target_config *config = config_;
    struct target_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->target_millionths = llround(config->target * MILLION);
    s->tolerance_millionths = llround(config->tolerance * MILLION);
    check(s->target_millionths > 0);
    int64_t window = config->scale_up_window_ps > config->scale_down_window_ps
                         ? config->scale_up_window_ps
                         : config->scale_down_window_ps;
    s->capacity = (uint32_t)(window / config->interval_ps) + 2;
    s->wishes = memory_zero(s->capacity, sizeof *s->wishes);
    return s;
}

static void destroy(void *state)
{
    struct target_state *s = state;
    free(s->wishes);
    free(s);
}

static int64_t interval(const void *config)
{
    return ((const struct target_config *)config)->interval_ps;
}

static void limits(const void *config_, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    const struct target_config *config = config_;
    *min = (uint32_t)config->min_replicas;
    *max = (uint32_t)config->max_replicas;
    *initial = UINT32_MAX;
}

static void wish_record(struct target_state *s, int64_t now_ps, uint32_t replicas)
{
    if (s->count == s->capacity) {
        s->first = (s->first + 1) % s->capacity;
        s->count--;
    }
    s->wishes[(s->first + s->count++) % s->capacity] = (struct wish){now_ps, replicas};
}

/* The wish that the windows allow: between the lowest of the scale-up window (if that is above the
 * present) and the highest of the scale-down window (if below). */
static uint32_t wish_stabilised(const struct target_state *s, int64_t now_ps, uint32_t present,
                                uint32_t wished)
{
    uint32_t lowest = wished, highest = wished;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct wish *w = &s->wishes[(s->first + i) % s->capacity];
        int64_t age = now_ps - w->time_ps;
        if (age < s->config->scale_up_window_ps && w->replicas < lowest) {
            lowest = w->replicas;
        }
        if (age < s->config->scale_down_window_ps && w->replicas > highest) {
            highest = w->replicas;
        }
    }
    uint32_t result = present;
    if (result < lowest) {
        result = lowest;
    }
    if (result > highest) {
        result = highest;
    }
    return result;
}

static uint32_t clamp(int128 value, int64_t min, int64_t max)
{
    return (uint32_t)(value < min ? min : value > max ? max : value);
}

static void decide(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision)
{
    struct target_state *s = state;
    const struct target_config *config = s->config;
    uint32_t present = signal->ready + signal->starting;
    decision->target = clamp(present, config->min_replicas, config->max_replicas);
    decision->wished = present;
    decision->metric = NAN;
    decision->reason = "no signal yet";
    /* The signal summed over the pool is numerator / denominator. */
    int128 numerator = signal->in_flight, denominator = 1;
    if (config->metric == METRIC_UTILIZATION) {
        numerator = signal->work_ps;
        denominator = signal->window_ps;
    }
    if (s->count == 0) {
        wish_record(s, signal->now_ps, decision->target); /* the windows begin with what there is */
    }
    if (denominator == 0) {
        return;
    }
    if (signal->ready > 0) {
        decision->metric = (double)numerator / (double)denominator / signal->ready;
    }
    int128 signal_millionths = numerator * MILLION;
    int128 target_total = denominator * s->target_millionths * present; /* at the target */
    int128 distance = signal_millionths - target_total;
    distance = distance < 0 ? -distance : distance;
    int128 unit = denominator * s->target_millionths;
    uint32_t wished = present;
    decision->reason = "within tolerance";
    if (present == 0 || distance * MILLION > target_total * s->tolerance_millionths) {
        wished = clamp((signal_millionths + unit - 1) / unit, config->min_replicas,
                       config->max_replicas);
        decision->reason = metric_names[config->metric];
    }
    decision->wished = wished;
    wished = clamp(wished, config->min_replicas, config->max_replicas);
    wish_record(s, signal->now_ps, wished);
    decision->target = clamp(wish_stabilised(s, signal->now_ps, present, wished),
                             config->min_replicas, config->max_replicas);
}

static const char *refuse(const void *config_)
{
    const struct target_config *config = config_;
    if (config->metric == METRIC_UTILIZATION && config->target > 1) {
        return "a target above 1 (100 %) is out of reach: utilization is a share";
    }
    return NULL;
}

static const struct autoscaler_type target_type = {
    .refuse = refuse,
    .create = create,
    .destroy = destroy,
    .interval = interval,
    .limits = limits,
    .decide = decide,
};

const struct variant autoscaler_target_variant = {
    .name = "target",
    .doc = "Holds a signal per replica at a target, by the rules of the Kubernetes HPA",
    .fields = target_fields,
    .size = sizeof(struct target_config),
    .ops = &target_type,
};
