/* Latency as users see it: the share of requests within the TTFT and TPOT limits since the scrape
 * before, and those that already wait longer than the TTFT limit. Too many late: the fleet grows by
 * a share. None too late for a whole scale-down window: one replica goes, if the survivors can
 * carry the work. A limit that even an idle replica misses is said to be infeasible and not chased:
 * requests that would be late anywhere do not count. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/fleet/behavior.h"

struct slo_policy_config {
    struct behavior_config behavior;
    int64_t ttft_ps, tpot_ps;
    double attainment, growth;
};

static const struct field slo_policy_fields[] = {
    {.name = "ttft",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct slo_policy_config, ttft_ps),
     .max = 86400,
     .doc = "Limit on the time to first token, waiting included"},
    {.name = "tpot",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct slo_policy_config, tpot_ps),
     .max = 86400,
     .doc = "Limit on the time per output token after the first"},
    {.name = "attainment",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct slo_policy_config, attainment),
     .fallback = "99 %",
     .max = 1,
     .doc = "Share of the requests seen between two scrapes that must be within each limit"},
    {.name = "growth",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct slo_policy_config, growth),
     .fallback = "20 %",
     .max = 10,
     .doc = "Replicas added at a time while too many are late, as a share of those ready, rounded "
            "up"},
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct slo_policy_config, behavior),
     .fields = behavior_fields},
    {.name = "scale_down_limit",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct slo_policy_config, behavior.scale_down_limit),
     .fallback = "80 %",
     .max = 1,
     .doc = BEHAVIOR_DOWN_LIMIT_DOC},
    {0},
};

struct slo_state {
    const struct slo_policy_config *config; /* borrowed */
    struct behavior behavior;
    int64_t seen_ps; /* the scrape of the last decision: none is judged twice */
    bool infeasible; /* what the last decision found */
};

static void *create(const void *config_, const struct autoscaler_env *env)
{
    (void)env;
    const struct slo_policy_config *config = config_;
    struct slo_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->seen_ps = TIME_NONE;
    behavior_init(&s->behavior, &config->behavior);
    return s;
}

static void destroy(void *state)
{
    struct slo_state *s = state;
    behavior_free(&s->behavior);
    free(s);
}

static const char *refuse(const void *config_)
{
    const struct slo_policy_config *config = config_;
    if (config->ttft_ps == FIELD_INT_UNSET && config->tpot_ps == FIELD_INT_UNSET) {
        return "state ttft or tpot: without a limit there is nothing to hold";
    }
    return NULL;
}

static int64_t interval(const void *config)
{
    return ((const struct slo_policy_config *)config)->behavior.interval_ps;
}

static void limits(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    behavior_limits(&((const struct slo_policy_config *)config)->behavior, min, max, initial);
}

static const struct autoscaler_signal_config *signals(const void *config)
{
    return &((const struct slo_policy_config *)config)->behavior.signals;
}

static void slo(const void *config_, struct autoscaler_slo *slo)
{
    const struct slo_policy_config *config = config_;
    *slo = (struct autoscaler_slo){.ttft_ps = config->ttft_ps, .tpot_ps = config->tpot_ps};
}

/* The share of count that is not late; 1 of nothing. */
static double attained(uint64_t late, uint64_t count)
{
    return count == 0 ? 1 : 1 - (double)late / (double)count;
}

static void decide(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision)
{
    struct slo_state *s = state;
    const struct slo_policy_config *config = s->config;
    uint32_t present = behavior_begin(&s->behavior, signal, decision);
    if (signal->missing || signal->window_ps == 0) {
        return;
    }
    bool fresh = signal->seen_ps != s->seen_ps;
    s->seen_ps = signal->seen_ps;
    uint64_t first = signal->ttft_count + signal->waiting_late;
    double ttft = attained(signal->ttft_late - signal->ttft_hopeless + signal->waiting_late, first);
    double tpot = attained(signal->tpot_late - signal->tpot_hopeless, signal->tpot_count);
    double hope = fmin(attained(signal->ttft_hopeless, first),
                       attained(signal->tpot_hopeless, signal->tpot_count));
    decision->metric = fmin(ttft, tpot);
    int128 wished = present;
    bool infeasible = false;
    if (decision->metric < config->attainment) {
        /* What is starting is an answer on its way: the next step is judged without it. */
        wished = signal->ready + (int128)fmax(1, ceil(config->growth * signal->ready - 1e-9));
        wished = wished < present || !fresh ? present : wished;
        decision->reason = ttft < config->attainment ? "ttft" : "tpot";
    } else if (hope < config->attainment) {
        decision->reason = "infeasible: late on an idle replica too";
        infeasible = true;
    } else {
        wished = present == 0 ? 0 : present - 1;
        decision->reason = "within the limits";
    }
    decision->announce = infeasible && !s->infeasible;
    s->infeasible = infeasible;
    behavior_apply(&s->behavior, signal, wished, decision);
}

static const struct autoscaler_type slo_type = {
    .create = create,
    .destroy = destroy,
    .refuse = refuse,
    .interval = interval,
    .limits = limits,
    .signals = signals,
    .slo = slo,
    .decide = decide,
};

const struct variant autoscaler_slo_variant = {
    .name = "slo",
    .doc = "Holds the share of requests within TTFT and TPOT limits, queue waits included",
    .fields = slo_policy_fields,
    .size = sizeof(struct slo_policy_config),
    .ops = &slo_type,
};
