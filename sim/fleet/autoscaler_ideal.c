/* The oracle: at every hour exactly the replicas that the plan needs in it (docs/output.md, need),
 * ordered a cold start ahead so that they are ready on the hour. It reads the workload's expected
 * rate, which no real policy can: a bound to compare with. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/fleet/autoscaler.h"

struct ideal_config {
    int64_t min_replicas, max_replicas;
};

static const struct field ideal_fields[] = {
    {.name = "min_replicas",
     .kind = FIELD_INT,
     .offset = offsetof(struct ideal_config, min_replicas),
     .fallback = "1",
     .min = 0,
     .max = 100000,
     .doc = "Never fewer replicas"},
    {.name = "max_replicas",
     .kind = FIELD_INT,
     .offset = offsetof(struct ideal_config, max_replicas),
     .fallback = "100000",
     .min = 1,
     .max = 100000,
     .doc = "Never more replicas"},
    {0},
};

struct ideal_state {
    const struct ideal_config *config; /* borrowed */
    struct autoscaler_env env;
};

static void *create(const void *config, const struct autoscaler_env *env)
{
    struct ideal_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->env = *env;
    return s;
}

static int64_t interval(const void *config)
{
    (void)config;
    return PS_PER_HOUR;
}

/* The next hour, or the next time that lies a cold start before one. */
static int64_t next(const void *state, int64_t now_ps)
{
    const struct ideal_state *s = state;
    int64_t hour = (time_hour(now_ps) + 1) * PS_PER_HOUR;
    int64_t ahead = (time_hour(now_ps + s->env.lead_ps) + 1) * PS_PER_HOUR - s->env.lead_ps;
    return ahead < hour ? ahead : hour;
}

static void limits(const void *config_, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    const struct ideal_config *config = config_;
    *min = (uint32_t)config->min_replicas;
    *max = (uint32_t)config->max_replicas;
    *initial = UINT32_MAX;
}

/* Of this hour and of all that begin within a cold start, the most. Hours at or after the horizon
 * need nothing. */
static double need(const struct ideal_state *s, int64_t now_ps)
{
    double most = 0;
    for (int64_t hour = time_hour(now_ps); hour <= time_hour(now_ps + s->env.lead_ps); hour++) {
        int64_t begin_ps = hour * PS_PER_HOUR;
        if (begin_ps < s->env.horizon_ps && s->env.need != NULL) {
            most = fmax(most, s->env.need(s->env.need_self, begin_ps));
        }
    }
    return most;
}

static void decide(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision)
{
    const struct ideal_state *s = state;
    double min = (double)s->config->min_replicas, max = (double)s->config->max_replicas;
    double wished = need(s, signal->now_ps);
    min = min == 0 && signal->active ? 1 : min;
    decision->wished = (uint32_t)fmin(wished, max);
    decision->target = (uint32_t)fmin(fmax(wished, min), max);
    decision->metric = NAN;
    decision->announce = false;
    decision->reason = "the plan";
}

static const struct autoscaler_type ideal_type = {
    .create = create,
    .destroy = free,
    .interval = interval,
    .next = next,
    .limits = limits,
    .plans = true,
    .decide = decide,
};

const struct variant autoscaler_ideal_variant = {
    .name = "ideal",
    .doc = "The oracle: what the plan needs, ready on every hour",
    .fields = ideal_fields,
    .size = sizeof(struct ideal_config),
    .ops = &ideal_type,
};
