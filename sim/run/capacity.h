/* What one replica of a pool sustains, measured: the pool's own classes arrive at one replica as
 * Poisson processes, in the proportions the scenario expects them in, and the rate is bisected
 * until the SLO of the classes is just met. For step-time models without a closed form.
 *
 * A trial is six parts of equal length, each of at least CAPACITY_PART_REQUESTS requests and
 * CAPACITY_PART_SERVICES mean times of a request in the replica; the first is warm-up. A rate is
 * sustained when every class attains what it states over the other five and requests in flight do
 * not go on growing. All trials see the same chance, which is the measurement's own and the same
 * for every seed and replication, so that only the rate differs between them. */
#ifndef FLEETSIM_SIM_RUN_CAPACITY_H
#define FLEETSIM_SIM_RUN_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"

struct run;

/* In a trial's part: requests, and mean times that a request is in the replica. */
enum { CAPACITY_PART_REQUESTS = 2000, CAPACITY_PART_SERVICES = 5 };

struct capacity {
    double requests_per_s;   /* turns of conversations count as requests */
    double in_flight;        /* mean requests running or waiting at that rate, */
    double in_flight_target; /* and at target_utilization of it */
    double attainment;       /* of all requests, at it */
    uint32_t trials;         /* runs it took */
    uint64_t requests;       /* simulated in them */
    double wall_s;           /* that they took when it was measured */
};

/* One trial, as it ends; the last call of a measurement has `finished` set and the result. */
struct capacity_progress {
    const char *pool;
    double rate, attainment;
    bool sustained, finished;
    const struct capacity *capacity; /* NULL unless finished */
};

/* Measurements of a process, by what they depend on. */
struct capacity_cache;
struct capacity_cache *capacity_cache_create(void);
void capacity_cache_free(struct capacity_cache *cache);

/* How run_open is to measure. */
struct capacity_ask {
    bool wanted; /* also where the run itself does not need it; what cannot be measured then is left
                    unknown */
    struct capacity_cache *cache; /* borrowed; NULL: none */
    void (*progress)(void *self, const struct capacity_progress *progress); /* NULL: none */
    void *progress_self;
};

/* Measures one replica of a pool of an opened run that has its workload. ask may be NULL. NULL on
 * success; else why it cannot be, as a text in the arena that says what to state. */
const char *capacity_measure(const struct run *run, size_t pool, const struct capacity_ask *ask,
                             struct capacity *capacity, struct arena *arena);

#endif
