/* What an autoscaler reads of its pool: scrapes kept for as long as a delayed decision may ask for
 * them, and requests counted against the policy's latency limits. */
#ifndef FLEETSIM_SIM_FLEET_SIGNALS_H
#define FLEETSIM_SIM_FLEET_SIGNALS_H

#include "sim/base/obs.h"
#include "sim/engine/engine.h"
#include "sim/fleet/autoscaler.h"

/* Requests against the limits, since the start. */
struct signals_latency {
    uint64_t ttft_count, ttft_late, ttft_hopeless, tpot_count, tpot_late, tpot_hopeless;
};

/* One scrape. Counters are totals since the start. */
struct signals_scrape {
    int64_t time_ps;
    uint64_t in_flight, waiting, waiting_late, arrived;
    int64_t kv_used;
    int128 work_ps;
    struct signals_latency latency;
};

struct signals {
    int64_t interval_ps, delay_ps; /* interval 0: a scrape per decision */
    bool watches;                  /* latencies are counted */
    struct autoscaler_slo slo;
    struct signals_latency latency; /* so far */
    struct signals_scrape *scrapes; /* owned, oldest first */
    uint32_t count, capacity;
    /* Of the last decision, for idle_ps. */
    uint64_t idle_arrived;
    int64_t idle_since_ps; /* TIME_NONE: not idle */
};

void signals_init(struct signals *signals, const struct autoscaler_type *type, const void *config);
void signals_free(struct signals *signals);
/* Keeps a scrape, newer than all; forgets what no decision from its time on can ask for. */
void signals_add(struct signals *signals, const struct signals_scrape *scrape);
/* Whether a scrape was already taken at t. */
bool signals_has(const struct signals *signals, int64_t t);
/* Fills what comes from scrapes, as a decision at signal->now_ps sees it. */
void signals_read(const struct signals *signals, struct autoscaler_signal *signal);
/* Fills active and idle_ps at a decision, from fresh counts. */
void signals_idle(struct signals *signals, uint64_t in_flight, uint64_t arrived,
                  struct autoscaler_signal *signal);
/* A first token (OBS_FIRST_TOKEN) or an end (OBS_END) of the pool, while it watches. */
void signals_watch(struct signals *signals, const struct engine *engine, const struct obs *obs);

#endif
