/* The smallest static fleet of one pool that meets the SLO, by runs: for `size`, and for what
 * `compare` calls the peak. */
#ifndef FLEETSIM_SIM_CLI_SIZING_H
#define FLEETSIM_SIM_CLI_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/cli/options.h"
#include "sim/run/run.h"

/* What one size did. */
struct sizing_trial {
    uint32_t replicas; /* 0: not tried */
    double attainment;
    int64_t ttft_p99_ps;
    double gpu_hours, usd, usd_per_mtok_total;
    /* Of the interval that attained least: shares of what a replica has. */
    double utilization, seats, kv;
    bool met;
};

struct sizing {
    const char *who; /* leads messages: "fleetsim size" */
    const char *scenario;
    const struct options_list *sets; /* borrowed */
    const char *seed;                /* NULL: the scenario's */
    struct capacity_cache *cache;    /* borrowed; NULL: none */
    bool quiet;
    size_t replication; /* more than the scenario's own */
    /* Of sizing_begin. */
    uint32_t guess; /* where to begin */
    size_t base;    /* the scenario's own replication */
    bool has_initial;
    const char *name; /* arena */
};

/* Opens the scenario as it is, for its name, its SLO, and where to begin: at the plan's peak, with
 * a capacity that is measured where there is no other. False after reporting. */
bool sizing_begin(struct sizing *sizing, struct arena *arena);

/* The smallest size that meets the SLO and the largest that does not (replicas 0: none is that
 * small), given that more replicas never attain less: doubles from the guess, then bisects. An enum
 * command_exit; where no fleet meets it, COMMAND_FAILURE after saying so. */
int sizing_find(struct sizing *sizing, struct sizing_trial *enough, struct sizing_trial *few);

#endif
