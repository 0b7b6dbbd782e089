/* Target tracking after the rules of the Kubernetes Horizontal Pod Autoscaler (algorithm details
 * of its documentation): wished = ceil(total signal / target); nothing changes while the signal is
 * within the tolerance of the target. Replicas that are still starting count as present, or every
 * decision would order them again. All comparisons are exact: in doubles 110 in flight on 10
 * replicas with target 10 is beyond a 10 % tolerance. */
#include "sim/fleet/autoscaler_target.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

static const char *const metric_names[] = {"concurrency", "utilization", "kv", "queue", NULL};

const struct field autoscaler_target_fields[] = {
    {.name = "metric",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct autoscaler_target_config, metric),
     .fallback = "utilization",
     .choices = metric_names,
     .doc = "The signal: concurrency (requests running or waiting), utilization (work executed "
            "between two scrapes over time), kv (KV blocks in use over those of a replica) or "
            "queue (requests waiting)"},
    {.name = "target",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct autoscaler_target_config, target),
     .min = 1e-6,
     .max = 1e6,
     .doc = "The signal per replica to hold: requests for concurrency and queue, a share for "
            "utilization and kv"},
    {.name = "tolerance",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct autoscaler_target_config, tolerance),
     .fallback = "10 %",
     .max = 1,
     .doc = "No change while signal / target is within 1 ± this"},
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct autoscaler_target_config, behavior),
     .fields = behavior_fields},
    {.name = "scale_down_limit",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct autoscaler_target_config, behavior.scale_down_limit),
     .max = 1,
     .doc = BEHAVIOR_DOWN_LIMIT_DOC "; off by default"},
    {0},
};

const struct field autoscaler_target_case_fields[] = {
    {.name = "tolerance",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct autoscaler_target_config, tolerance),
     .fallback = "10 %",
     .max = 1,
     .doc = "No change while signal / target is within 1 ± this"},
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct autoscaler_target_config, behavior),
     .fields = behavior_fields},
    {.name = "scale_down_limit",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct autoscaler_target_config, behavior.scale_down_limit),
     .fallback = "80 %",
     .max = 1,
     .doc = BEHAVIOR_DOWN_LIMIT_DOC},
    {0},
};

struct target_state {
    const struct autoscaler_target_config *config; /* borrowed */
    enum autoscaler_target_metric metric;
    int64_t target_millionths, tolerance_millionths;
    struct behavior behavior;
};

enum { MILLION = BEHAVIOR_MILLION };

void *autoscaler_target_make(const struct autoscaler_target_config *config,
                             enum autoscaler_target_metric metric)
{
    struct target_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->metric = metric;
    s->target_millionths = llround(config->target * MILLION);
    s->tolerance_millionths = llround(config->tolerance * MILLION);
    check(s->target_millionths > 0);
    behavior_init(&s->behavior, &config->behavior);
    return s;
}

void *autoscaler_target_create(const void *config_, const struct autoscaler_env *env)
{
    (void)env;
    const struct autoscaler_target_config *config = config_;
    return autoscaler_target_make(config, (enum autoscaler_target_metric)config->metric);
}

void autoscaler_target_destroy(void *state)
{
    struct target_state *s = state;
    behavior_free(&s->behavior);
    free(s);
}

int64_t autoscaler_target_interval(const void *config)
{
    return ((const struct autoscaler_target_config *)config)->behavior.interval_ps;
}

void autoscaler_target_limits(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    const struct autoscaler_target_config *c = config;
    behavior_limits(&c->behavior, min, max, initial);
    if (*min == 0 && c->spares > 0) {
        *min = 1; /* a spare is never let go */
    }
}

const struct autoscaler_signal_config *autoscaler_target_signals(const void *config)
{
    return &((const struct autoscaler_target_config *)config)->behavior.signals;
}

/* The signal summed over the pool is *numerator / *denominator; whether there is one. */
static bool signal_read(enum autoscaler_target_metric metric,
                        const struct autoscaler_signal *signal, int128 *numerator,
                        int128 *denominator)
{
    *denominator = 1;
    switch (metric) {
    case TARGET_CONCURRENCY:
        *numerator = signal->in_flight;
        break;
    case TARGET_QUEUE:
        *numerator = signal->waiting;
        break;
    case TARGET_KV:
        *numerator = signal->kv_used;
        *denominator = signal->kv_blocks;
        break;
    default:
        *numerator = signal->work_ps;
        *denominator = signal->window_ps;
        break;
    }
    return !signal->missing && *denominator != 0 && *denominator != INT64_MAX;
}

void autoscaler_target_decide(void *state, const struct autoscaler_signal *signal,
                              struct autoscaler_decision *decision)
{
    struct target_state *s = state;
    uint32_t present = behavior_begin(&s->behavior, signal, decision);
    int128 numerator, denominator;
    if (!signal_read(s->metric, signal, &numerator, &denominator)) {
        return;
    }
    if (signal->ready > 0) {
        decision->metric = (double)numerator / (double)denominator / signal->ready;
    }
    /* Spares carry nothing by intent: the signal is held per replica that is not one. */
    int64_t working = (int64_t)present - s->config->spares;
    working = working > 0 ? working : 0;
    int128 signal_millionths = numerator * MILLION;
    int128 target_total = denominator * s->target_millionths * working; /* at the target */
    int128 distance = signal_millionths - target_total;
    distance = distance < 0 ? -distance : distance;
    int128 unit = denominator * s->target_millionths;
    int128 wished = present;
    decision->reason = "within tolerance";
    if (working == 0 || distance * MILLION > target_total * s->tolerance_millionths) {
        wished = (signal_millionths + unit - 1) / unit + s->config->spares;
        decision->reason = metric_names[s->metric];
    }
    behavior_apply(&s->behavior, signal, wished, decision);
}

const char *autoscaler_target_refuse(const void *config_)
{
    const struct autoscaler_target_config *config = config_;
    if (config->metric == TARGET_UTILIZATION && config->target > 1) {
        return "a target above 1 (100 %) is out of reach: utilization is a share";
    }
    if (config->metric == TARGET_KV && config->target > 1) {
        return "a target above 1 (100 %) is out of reach: kv is a share of the blocks";
    }
    return NULL;
}

static const struct autoscaler_type target_type = {
    .refuse = autoscaler_target_refuse,
    .create = autoscaler_target_create,
    .destroy = autoscaler_target_destroy,
    .interval = autoscaler_target_interval,
    .limits = autoscaler_target_limits,
    .signals = autoscaler_target_signals,
    .decide = autoscaler_target_decide,
};

const struct variant autoscaler_target_variant = {
    .name = "target",
    .doc = "Holds a signal per replica at a target, by the rules of the Kubernetes HPA",
    .fields = autoscaler_target_fields,
    .size = sizeof(struct autoscaler_target_config),
    .ops = &target_type,
};
