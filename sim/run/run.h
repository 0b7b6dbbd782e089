/* One run from end to end: scenario → config → workload, fleet, metrics → results. Two runs can
 * live in one process.
 *
 *     struct run *run = run_open(&request, errors);     loads, checks, scans traces, builds
 *     run_simulate(run, &options, errors)               the event loop
 *     run_metrics(run), run_totals(run)                 rows and sums
 *     run_write(run, path, force, errors)               the HDF5 file
 *     run_free(run)
 */
#ifndef FLEETSIM_SIM_RUN_RUN_H
#define FLEETSIM_SIM_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/errors.h"
#include "sim/metrics/metrics.h"
#include "sim/run/capacity.h"
#include "sim/run/config.h"
#include "sim/workload/workload.h"

struct run;

struct run_request {
    const char *scenario;       /* a path, or the name of a folder under one of folders */
    const char *const *folders; /* NULL-terminated: where names are looked for */
    const char *const *sets;    /* "path=value" */
    size_t set_count;
    const struct capacity_ask *capacity; /* NULL: measured where the run needs it */
};

/* Everything wrong with the scenario and its traces is reported at once; NULL if anything was an
 * error. Warnings may be there on success. */
struct run *run_open(const struct run_request *request, struct errors *errors);
void run_free(struct run *run);

struct run_progress {
    double share;        /* of the horizon, 0 to 1 */
    int64_t time_ps;     /* simulated */
    uint64_t arrived;    /* requests so far */
    double wall_s;       /* since the loop began */
    int64_t hours_saved; /* finished intervals in PATH.part; 0: none yet */
    bool finished;       /* the last call */
};

struct run_options {
    bool step_by_step;         /* one iteration per event: slower, the same results to the bit */
    const char *requests_path; /* CSV, one row per request in order of id; NULL: none */
    const char *output_path;   /* where run_write will write: finished hours are saved beside it
                                  while the run goes on; NULL: not saved */
    const char *export_path;   /* the arrivals as a trace (run_export_trace), those that follow from
                                  the fleet too; NULL: none */
    bool force;                /* overwrite these */
    void (*progress)(
        void *self,
        const struct run_progress *progress); /* about every 0.2 s of wall time; NULL: none */
    void *progress_self;
};

/* Runs it. False (with errors) when it could not be carried to its end. A requests_path that could
 * not be written is an error too, but the results are there: the answer is true. */
bool run_simulate(struct run *run, const struct run_options *options, struct errors *errors);

/* What a run cost to simulate. wall_s, measuring_s and peak_rss_bytes are the only figures that may
 * differ between identical runs. */
struct run_totals {
    double wall_s;
    uint64_t events, spans, iterations;
    double requests_per_s;
    uint64_t peak_rss_bytes;
    double measuring_s; /* that capacities took to measure, before the run; 0: none was */
    char digest[17];    /* 16 hexadecimal digits */
};

/* All after run_simulate. */
struct run_totals run_totals(const struct run *run);
/* The audit, with the engine's checks; *ok: all hold. */
const struct metrics_check *run_audit(const struct run *run, size_t *count, bool *ok);
/* Writes the HDF5 file (sim/trace/trace.h); with output.requests the rows written during the run
 * are in it. */
bool run_write(struct run *run, const char *path, bool force, struct errors *errors);

/* All after run_open. */
const struct run_config *run_config(const struct run *run);
const struct metrics *run_metrics(const struct run *run);
const struct workload *run_workload(const struct run *run);
/* The scenario as applied: every value, as YAML. */
const char *run_resolved(const struct run *run);
/* Unix seconds of time 0, and the horizon, in force. */
int64_t run_start(const struct run *run);
int64_t run_horizon(const struct run *run);
/* What a pool's plan rests on: requests/s one replica sustains (NaN: unknown), and the replicas
 * ready at time 0. */
double run_capacity(const struct run *run, size_t pool);
/* How that was measured; NULL: it was not. */
const struct capacity *run_capacity_measured(const struct run *run, size_t pool);
uint32_t run_initial_replicas(const struct run *run, size_t pool);
/* The largest need of a pool in any hour of [warmup, horizon); NaN: unknown. */
double run_peak_replicas(const struct run *run, size_t pool);
/* Requests that arrived while a replica of their pool was starting, or started one; after
 * run_simulate. */
uint64_t run_met_cold_start(const struct run *run);
/* Whether the run reads that file: its scenario, one that this extends, a trace, a model or a GPU.
 */
bool run_reads(const struct run *run, const char *path);
/* Writes the arrivals as a trace in our own format that replays to the same requests; gzip when
 * path ends in .gz. False after reporting, also where arrivals follow from the fleet (closed_loop,
 * sessions): then run_options.export_path does it. */
bool run_export_trace(const struct run *run, const char *path, bool force, struct errors *errors);

/* Tokens that a hash_id of a class stands for in that trace, for arrivals.hash_block_size; 0: it
 * has none. */
uint32_t run_export_block(const struct run *run, size_t class);
/* The same for replaying it: where other classes have some, this one must say a size, too. */
uint32_t run_replay_block(const struct run *run, size_t class);

#endif
