/* Inside sim/run: the state behind struct run. */
#ifndef FLEETSIM_SIM_RUN_RUN_INTERNAL_H
#define FLEETSIM_SIM_RUN_RUN_INTERNAL_H

#include <time.h>

#include "sim/base/arena.h"
#include "sim/base/digest.h"
#include "sim/base/event_queue.h"
#include "sim/fleet/fleet.h"
#include "sim/run/request_log.h"
#include "sim/run/run.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/trace.h"

/* What the plan of a pool rests on. */
struct run_plan {
    const struct run *run; /* borrowed: what it is the plan of */
    size_t pool;
    double capacity;    /* requests/s of one replica at full utilisation; NaN: unknown */
    bool classes_known; /* every class that may use the pool may use no other */
    uint32_t initial_replicas;
    struct capacity measured; /* trials 0: it was not */
};

struct run {
    struct arena arena;
    struct scenario *scenario;
    const struct run *of; /* borrowed: the run that this is a trial of, whose scenario it has */
    struct run_config config;
    const char *resolved;
    struct workload_config workload_config;
    struct workload *workload;
    uint32_t **class_pools; /* [classes][class_pool_count[c]]: pool indices */
    uint32_t *class_pool_count;
    struct step_model *models;  /* [pools] */
    struct run_plan *plans;     /* [pools] */
    struct expert_run *experts; /* owned; NULL: no pool models its experts' load */

    struct metrics *metrics;
    struct fleet *fleet;
    struct event_queue queue;
    struct digest digest;
    int64_t end_ps; /* when everything was over */
    uint64_t arrived;
    uint64_t events;
    double wall_s;
    struct trace_stream *stream; /* rows of the HDF5 requests group; NULL: none */
};

/* A run of other values, with the scenario of a run that outlives it: every reference (model, GPU)
 * is looked up from there. config is copied, what it points to borrowed; it is not checked. NULL
 * after adding errors. */
struct run *run_derive(const struct run *of, const struct run_config *config,
                       struct errors *errors);

size_t run_class_count(const struct run *run);
size_t run_pool_count(const struct run *run);

/* run_plan.c: capacities, references and needs. */
/* Expected arrivals per second at t of the classes that use only this pool. */
double run_plan_rate(const struct run *run, size_t pool, int64_t time_ps);
/* Replicas needed for that rate at the utilisation target; NaN: unknown. */
double run_plan_need(const struct run *run, size_t pool, double rate);
/* The same of a struct run_plan (self), at a time: for autoscaler_env.need. */
double run_plan_need_at(const void *self, int64_t hour_ps);
/* Fills plans, measuring capacities where that is needed or asked for (ask: may be NULL), which
 * then are in the config too; an error where a default or a policy needs one that is not known. */
bool run_plan_make(struct run *run, const struct capacity_ask *ask, const struct locator *where,
                   struct errors *errors);
/* Hands references and needs to the metrics. */
void run_plan_publish(struct run *run);

/* run_export.c. */
/* Whether the workload is asked to tell all it knows of what prompts hold in common. */
bool run_wants_contents(const struct run *run);
/* Writes the arrivals of a live workload while it runs, as run_export_trace does those of any
 * other. NULL after reporting. */
struct run_export *run_export_open(const struct run *run, const char *path, bool force,
                                   struct errors *errors);
struct obs_sink run_export_sink(struct run_export *export);
/* Reports when it could not be written in full. NULL is fine. */
void run_export_close(struct run_export *export, bool keep, struct errors *errors);

/* run_output.c. */
/* Saves the finished hours beside path. */
bool run_output_partial(struct run *run, const char *path, struct errors *errors);
/* Opens the stream of the requests group. */
struct trace_stream *run_output_stream(struct run *run, const char *path, bool force,
                                       struct errors *errors);

#endif
