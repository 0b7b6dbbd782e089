/* A seasonal forecast of the arrival rate, looking ahead by the pool's own cold start: what came at
 * that time a season ago, scaled by how the last buckets compare with theirs; before there is a
 * season, the last bucket continued along its trend. wished = forecast × the work of a mean request
 * so far / target, or forecast / capacity / target. It knows what it has seen and nothing else, and
 * keeps account of its errors. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/fleet/behavior.h"

struct predictive_config {
    struct behavior_config behavior;
    double target;
    int64_t bucket_ps, season_ps;
    int64_t ahead_ps; /* FIELD_INT_UNSET: a cold start and a bucket */
    double capacity;  /* requests/s of a replica; NaN: the work of a mean request tells */
};

static const struct field predictive_fields[] = {
    {.name = "target",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct predictive_config, target),
     .fallback = "70 %",
     .max = 1,
     .doc = "Utilization that the forecast is to be served at"},
    {.name = "bucket",
     .kind = FIELD_TIME,
     .offset = offsetof(struct predictive_config, bucket_ps),
     .fallback = "5 min",
     .min = 1,
     .max = 86400,
     .doc = "Arrivals are counted, and forecast, in buckets of this length"},
    {.name = "season",
     .kind = FIELD_TIME,
     .offset = offsetof(struct predictive_config, season_ps),
     .fallback = "24 h",
     .min = 60,
     .max = 2678400,
     .doc = "After this time traffic repeats"},
    {.name = "ahead",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct predictive_config, ahead_ps),
     .max = 86400,
     .doc = "How far to look ahead; by default what a cold start is expected to take, and a "
            "bucket"},
    {.name = "capacity",
     .kind = FIELD_REAL,
     .unit = UNIT_RATE,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct predictive_config, capacity),
     .max = 1e9,
     .doc = "Requests per second of a replica, to turn the forecast into replicas; without it the "
            "work of a mean request so far does, which with a step_time other than rate is the "
            "time a replica was busy: too much"},
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct predictive_config, behavior),
     .fields = behavior_fields},
    {.name = "scale_down_limit",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct predictive_config, behavior.scale_down_limit),
     .max = 1,
     .doc = BEHAVIOR_DOWN_LIMIT_DOC "; off by default"},
    {0},
};

/* Buckets compared with those a season ago: one alone would scale by its noise. */
enum { LEVEL_BUCKETS = 3, SPARE_BUCKETS = 8 };

struct predictive_state {
    const struct predictive_config *config; /* borrowed */
    struct behavior behavior;
    int64_t ahead_ps;
    int64_t season, capacity; /* in buckets */
    double *arrived;          /* owned ring, bucket b at b % capacity */
    double *forecast;         /* owned ring: arrivals expected in it; NaN: none */
    int64_t bucket;           /* the one that fills */
    uint64_t arrived_total;   /* counted so far, */
    int64_t counted_ps;       /* and up to when */
    double error, actual;     /* Σ |forecast − arrived|, Σ arrived, over forecast buckets */
};

static void *create(const void *config_, const struct autoscaler_env *env)
{
    const struct predictive_config *config = config_;
    struct predictive_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->ahead_ps = config->ahead_ps != FIELD_INT_UNSET ? config->ahead_ps
                                                      : time_add(env->lead_ps, config->bucket_ps);
    s->season = config->season_ps / config->bucket_ps;
    s->season = s->season > 0 ? s->season : 1;
    s->capacity = s->season + s->ahead_ps / config->bucket_ps + SPARE_BUCKETS;
    s->arrived = memory_zero((size_t)s->capacity, sizeof *s->arrived);
    s->forecast = memory_zero((size_t)s->capacity, sizeof *s->forecast);
    for (int64_t i = 0; i < s->capacity; i++) {
        s->forecast[i] = NAN;
    }
    behavior_init(&s->behavior, &config->behavior);
    return s;
}

static void destroy(void *state)
{
    struct predictive_state *s = state;
    behavior_free(&s->behavior);
    free(s->arrived);
    free(s->forecast);
    free(s);
}

static const char *refuse(const void *config_)
{
    const struct predictive_config *config = config_;
    if (config->season_ps / config->bucket_ps > 1000000) {
        return "more than 1,000,000 buckets in a season";
    }
    if (config->season_ps % config->bucket_ps != 0) {
        return "season must be a whole number of buckets";
    }
    return NULL;
}

static int64_t interval(const void *config)
{
    return ((const struct predictive_config *)config)->behavior.interval_ps;
}

static void limits(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    behavior_limits(&((const struct predictive_config *)config)->behavior, min, max, initial);
}

static const struct autoscaler_signal_config *signals(const void *config)
{
    return &((const struct predictive_config *)config)->behavior.signals;
}

/* Arrivals of a bucket that is complete and still kept. */
static double arrived_in(const struct predictive_state *s, int64_t bucket)
{
    return s->arrived[bucket % s->capacity];
}

/* Counts what arrived since the scrape before, spread evenly over the buckets it reaches into, and
 * closes those that are over: an interval that does not divide a bucket leaves no beat. */
static void count(struct predictive_state *s, const struct autoscaler_signal *signal)
{
    int64_t length = s->config->bucket_ps, now = signal->seen_ps / length;
    int64_t since = s->counted_ps, span = signal->seen_ps - since;
    double more = (double)(signal->arrived_total - s->arrived_total);
    s->arrived_total = signal->arrived_total;
    s->counted_ps = signal->seen_ps;
    for (;; s->bucket++) {
        int64_t at = s->bucket % s->capacity, begin = s->bucket * length, end = begin + length;
        begin = begin > since ? begin : since;
        end = end < signal->seen_ps ? end : signal->seen_ps;
        if (end > begin) {
            s->arrived[at] += more * ((double)(end - begin) / (double)span);
        }
        if (s->bucket >= now) {
            return;
        }
        if (!isnan(s->forecast[at])) {
            s->error += fabs(s->forecast[at] - s->arrived[at]);
            s->actual += s->arrived[at];
            s->forecast[at] = NAN;
        }
        s->arrived[(s->bucket + 1) % s->capacity] = 0;
    }
}

/* Arrivals expected in a bucket after the last complete one. */
static double expect(const struct predictive_state *s, int64_t bucket)
{
    int64_t last = s->bucket - 1;
    double now = 0, then = 0;
    for (int64_t b = last; b > last - LEVEL_BUCKETS && b >= s->season; b--) {
        now += arrived_in(s, b);
        then += arrived_in(s, b - s->season);
    }
    if (bucket - s->season >= 0 && bucket - s->season <= last && then > 0) {
        return arrived_in(s, bucket - s->season) * now / then;
    }
    double trend = last > 0 ? arrived_in(s, last) - arrived_in(s, last - 1) : 0;
    return fmax(0, arrived_in(s, last) + trend * (double)(bucket - last));
}

/* Arrivals per bucket to provide for: what is expected a cold start ahead, and no less than what
 * comes now. */
static double demand(struct predictive_state *s, const struct autoscaler_signal *signal)
{
    int64_t length = s->config->bucket_ps;
    if (s->bucket == 0) {
        return (double)s->arrived_total * (double)length / (double)signal->seen_ps;
    }
    int64_t ahead = (signal->seen_ps + s->ahead_ps) / length;
    double expected = expect(s, ahead);
    s->forecast[ahead % s->capacity] = expected;
    return fmax(expected, arrived_in(s, s->bucket - 1));
}

/* Replicas at full utilisation for what is forecast; NaN: not known yet. */
static double replicas_for(struct predictive_state *s, const struct autoscaler_signal *signal)
{
    double bucket_ps = (double)s->config->bucket_ps;
    if (!isnan(s->config->capacity)) {
        return demand(s, signal) / (bucket_ps / (double)PS_PER_SECOND) / s->config->capacity;
    }
    if (signal->arrived_total > 0 && signal->work_total_ps == 0) {
        return NAN; /* what a request costs is not known before one has been computed */
    }
    double work_ps = signal->arrived_total == 0
                         ? 0
                         : (double)signal->work_total_ps / (double)signal->arrived_total;
    return demand(s, signal) * work_ps / bucket_ps;
}

static void decide(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision)
{
    struct predictive_state *s = state;
    behavior_begin(&s->behavior, signal, decision);
    if (signal->missing || signal->seen_ps == 0) {
        return;
    }
    count(s, signal);
    double replicas = replicas_for(s, signal);
    if (isnan(replicas)) {
        return;
    }
    decision->metric = signal->ready > 0 ? replicas / signal->ready : NAN;
    decision->reason = "forecast";
    double wished = fmin(ceil(replicas / s->config->target - 1e-9), 1e9);
    behavior_apply(&s->behavior, signal, (int128)wished, decision);
}

static double forecast_error(const void *state)
{
    const struct predictive_state *s = state;
    return s->actual > 0 ? s->error / s->actual : NAN;
}

static const struct autoscaler_type predictive_type = {
    .create = create,
    .destroy = destroy,
    .refuse = refuse,
    .interval = interval,
    .limits = limits,
    .signals = signals,
    .decide = decide,
    .forecast_error = forecast_error,
};

const struct variant autoscaler_predictive_variant = {
    .name = "predictive",
    .doc = "A seasonal forecast that looks ahead by a cold start",
    .fields = predictive_fields,
    .size = sizeof(struct predictive_config),
    .ops = &predictive_type,
};
