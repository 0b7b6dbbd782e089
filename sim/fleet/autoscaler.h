/* Autoscalers: how many replicas a pool should have. A policy is a const struct of callbacks in its
 * own file, registered by one line in autoscaler.c. State is per pool. */
#ifndef FLEETSIM_SIM_FLEET_AUTOSCALER_H
#define FLEETSIM_SIM_FLEET_AUTOSCALER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/time.h"

/* When what a policy sees was read: the `signals:` mapping of an autoscaler. */
struct autoscaler_signal_config {
    int64_t interval_ps; /* between scrapes; 0: at every decision */
    int64_t delay_ps;    /* from a scrape until a decision can see it */
};
extern const struct field autoscaler_signal_fields[];

/* Limits that a policy counts requests by; FIELD_INT_UNSET: no limit. */
struct autoscaler_slo {
    int64_t ttft_ps, tpot_ps;
};

/* What a policy sees at a decision. What is of the window lies between the newest scrape that can
 * be seen and the one before it; replicas and `active` are the control plane's own and fresh. */
struct autoscaler_signal {
    int64_t now_ps;
    uint32_t ready, starting, draining; /* replicas; ready ones take requests */
    bool active;        /* a replica is starting or a request is in flight: no time for none */
    int64_t idle_ps;    /* how long decisions have seen nothing in flight and nothing arrive */
    bool missing;       /* no scrape can be seen yet: what follows is 0 and means nothing */
    uint64_t in_flight; /* requests running or waiting anywhere in the pool */
    uint64_t waiting;   /* of them not in a batch: at replicas or in the pool's queue */
    int64_t kv_used;    /* KV blocks, summed over held replicas */
    int64_t kv_blocks;  /* of one replica; INT64_MAX: unlimited */
    int64_t window_ps;  /* 0: there is one scrape only */
    int128 work_ps;     /* work executed in the window (obs_steps.work_ps), summed over replicas */
    int64_t seen_ps;    /* when that scrape was */
    uint64_t arrived_total; /* requests that had arrived by then */
    int128 work_total_ps;   /* and the work that had been executed */
    /* Of the window, for policies with slo: first tokens, and requests whose TPOT is known; late:
     * over the limit; hopeless: of the late, those that an idle replica would have served late
     * too. waiting_late: waiting at the scrape for longer than the TTFT limit. */
    uint64_t ttft_count, ttft_late, ttft_hopeless, tpot_count, tpot_late, tpot_hopeless;
    uint64_t waiting_late;
};

struct autoscaler_decision {
    uint32_t wished;    /* by the signal, before windows and limits */
    uint32_t target;    /* replicas to have, ready + starting */
    double metric;      /* the signal per ready replica; NaN where there is none */
    const char *reason; /* static text */
    bool announce;      /* worth an event though nothing may change */
};

/* What a policy may know of its pool beyond its own config. */
struct autoscaler_env {
    int64_t lead_ps;    /* what a cold start is expected to take */
    int64_t day_ps;     /* the time of day, in UTC, at time 0 */
    int64_t horizon_ps; /* no decision at or after it */
    /* Replicas the plan needs in the hour that begins at hour_ps, from the workload's expected
     * rate (docs/output.md, need); NULL or NaN: not known. For `ideal` only: the others see
     * nothing but signals. */
    double (*need)(const void *self, int64_t hour_ps);
    const void *need_self; /* borrowed */
};

struct autoscaler_type {
    /* Per-pool state from the filled config, both borrowed while it lives; NULL where none is
     * needed. */
    void *(*create)(const void *config, const struct autoscaler_env *env);
    void (*destroy)(void *state);
    /* What is wrong with a filled config that its table cannot tell, as text; NULL: nothing. The
     * function itself may be NULL. */
    const char *(*refuse)(const void *config);
    /* Between decisions; the first is at time 0, after the arrivals of that instant. TIME_NEVER:
     * none is ever taken. */
    int64_t (*interval)(const void *config);
    /* The time of the next decision after now, for policies that keep no fixed interval; NULL:
     * now + interval. */
    int64_t (*next)(const void *state, int64_t now_ps);
    /* Fewest and most replicas; initial: what initial_replicas defaults to, or UINT32_MAX when the
     * need at hour 0 decides. */
    void (*limits)(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial);
    /* How signals are scraped; NULL: at every decision, without delay. */
    const struct autoscaler_signal_config *(*signals)(const void *config);
    /* The limits that latencies are counted by; NULL: none are. */
    void (*slo)(const void *config, struct autoscaler_slo *slo);
    bool plans; /* asks env.need: without a known capacity the scenario is refused */
    void (*decide)(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision);
    /* Mean absolute error of the policy's own forecasts over the mean they were of; NaN: nothing
     * was forecast. NULL: it forecasts nothing. */
    double (*forecast_error)(const void *state);
};

/* One file each. */
extern const struct variant autoscaler_static_variant;
extern const struct variant autoscaler_ideal_variant;
extern const struct variant autoscaler_target_variant;
extern const struct variant autoscaler_queue_variant;
extern const struct variant autoscaler_kv_variant;
extern const struct variant autoscaler_slo_variant;
extern const struct variant autoscaler_schedule_variant;
extern const struct variant autoscaler_predictive_variant;
extern const struct variant autoscaler_warm_pool_variant;

/* The registry behind autoscaler.policy. */
extern const struct variant *const autoscaler_variants[];

#endif
