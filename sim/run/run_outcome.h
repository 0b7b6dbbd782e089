/* What a run came to, wherever it is known from: the run itself, or the result file of one. What is
 * printed of a run is printed from this, so that both show the same. */
#ifndef FLEETSIM_SIM_RUN_RUN_OUTCOME_H
#define FLEETSIM_SIM_RUN_RUN_OUTCOME_H

#include "sim/base/column.h"
#include "sim/run/run.h"
#include "sim/trace/trace_read.h"

struct run_outcome_pool {
    const char *name;
    uint32_t gpus_per_replica;
    uint32_t initial_replicas;
    double capacity; /* requests/s of one replica; NaN: unknown */
    double target_utilization;
    uint32_t capacity_trials; /* runs that measured it; 0: it was not */
};

struct run_outcome {
    const char *name, *description;
    const char *version, *git, *compiler, *flags; /* of the program that ran it */
    const char *resolved;                         /* the scenario as applied */
    const char *digest;                           /* NULL: not complete */
    int64_t seed, replication;
    int64_t start_unix_s, horizon_ps, warmup_ps, interval_ps;
    bool complete; /* false: of the rest there are only hours and pools */
    size_t pool_count, class_count, check_count, bin_count, scale_events;
    size_t hour_count;                /* rows; the drain's is the last of a complete run */
    const struct metrics_hour *hours; /* [hour_count · pool_count], time × pool */
    const struct metrics_hour *hours_all;
    const struct metrics_summary *summaries;     /* [1 + pool_count] */
    const struct metrics_class_summary *classes; /* [class_count] */
    const struct metrics_check *checks;
    const struct metrics_bin *bins;
    const struct run_outcome_pool *pools;
    bool audit_ok;
    uint64_t skipped_rows, failed_calls, late_requests;
    struct sessions_counts sessions; /* of all classes */
    const struct run_totals *totals; /* NULL: from a file, where how long it took is not */
};

/* Of a run that was simulated. Points into the run and the arena. */
void run_outcome_fill(const struct run *run, struct run_outcome *outcome, struct arena *arena);
/* Of a result file, complete or not. The outcome points into what is returned: close it with
 * trace_read_close. NULL after adding the error. */
struct trace_read *run_outcome_read(const char *path, struct run_outcome *outcome,
                                    struct errors *errors);

/* The pools of a run as rows, for its file. In the arena. */
const struct run_outcome_pool *run_outcome_pools(const struct run *run, struct arena *arena);
extern const struct column run_outcome_pool_columns[];

#endif
