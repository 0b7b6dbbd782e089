/* What a new replica goes through before it takes requests: phases, each of which lasts a constant
 * time or one drawn per launch. */
#ifndef FLEETSIM_SIM_FLEET_COLD_START_H
#define FLEETSIM_SIM_FLEET_COLD_START_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"

/* A way for a phase to last: ops of the variants. */
struct cold_start_time {
    /* The time at quantile u in (0, 1). */
    int64_t (*quantile)(const void *config, double u);
    int64_t (*mean)(const void *config);
    /* Weights from a store that all who load at once share: its bandwidth, one replica's own limit
     * (+infinity: none), both in bytes/s, and the bytes. NULL: not shared. */
    void (*shared)(const void *config, double *bandwidth, double *own_limit, double *bytes);
    /* Weights: where their size goes that is not stated; NULL: no size. */
    double *(*bytes)(void *config);
};

/* The pool's `cold_start:` mapping. Provisioning = provision + image_pull; loading = the rest. */
struct cold_start_config {
    const char *preset; /* whose phases were taken over; NULL: none */
    struct variant_value provision, image_pull, weights, engine_init, warm_up;
    struct variant_value engine_init_cached; /* unset: as engine_init */
    double shortage, failure;
    struct variant_value shortage_wait;
    int64_t slow_start_ps, slow_start_factor; /* once ready: for how long iterations take how much
                                                 longer */
};
extern const struct field cold_start_fields[];

/* What one launch goes through. */
struct cold_start_course {
    int64_t provisioning_ps;
    bool fails;         /* after provisioning: no capacity was found */
    int64_t weights_ps; /* 0 where a shared store says */
    int64_t loading_ps; /* what comes after the weights */
};

/* Chance comes from RNG_COLD_START with lane = pool, by launch number: how one launch goes depends
 * on no other. cached: a replica of the pool was ready before. */
void cold_start_draw(const struct cold_start_config *config, uint64_t key, uint64_t launch,
                     bool cached, struct cold_start_course *course);
/* What a launch is expected to take, alone at its store, with caches warm. */
int64_t cold_start_expected(const struct cold_start_config *config);
/* The weights' shared store; false when they come from none. */
bool cold_start_store(const struct cold_start_config *config, double *bandwidth, double *own_limit,
                      double *bytes);
/* States the weights' size where the scenario does not. Returns whether none is missing. */
bool cold_start_size(struct cold_start_config *config, double bytes);

#endif
