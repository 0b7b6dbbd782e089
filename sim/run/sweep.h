/* A sweep from end to end: sweep.yaml → points, checked → forked runs, journalled → sweep.h5.
 *
 *     sweep_open(&sweep, &request, errors)       loads, expands, checks every point
 *     sweep_run(&sweep, &options, &report, errors)
 *     sweep_merge(folder, &report, errors)       sweep.h5 from what is there; also after sweep_run
 *     sweep_free(&sweep)
 */
#ifndef FLEETSIM_SIM_RUN_SWEEP_H
#define FLEETSIM_SIM_RUN_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/run/sweep_check.h"
#include "sim/run/sweep_folder.h"
#include "sim/run/sweep_pool.h"
#include "sim/run/sweep_results.h"

struct sweep_request {
    const char *name;           /* a file, a folder with sweep.yaml, a name under folders */
    const char *const *folders; /* NULL-terminated */
    const char *const *sets;    /* "path=value" for all points */
    size_t set_count;
    int64_t replications; /* 0: as the file says */
    const char *output;   /* a column that must be among the outputs; NULL: none */
    bool one_at_a_time;
};

struct sweep {
    struct arena arena;
    struct sweep_file *file; /* arena, like all below */
    struct sweep_plan plan;
    struct sweep_check check;
    struct sweep_checked *points; /* [plan.points] */
    size_t invalid;               /* points whose scenario is not sound */
    struct errors said;           /* what was wrong with those, and warnings, each once */
    const char *base_text;
};

/* Errors of the sweep itself, and of a scenario of which no point is sound, go to errors: false.
 * Where only some points are not sound, they count as failed runs, and sweep->said tells why. */
bool sweep_open(struct sweep *sweep, const struct sweep_request *request, struct errors *errors);
void sweep_free(struct sweep *sweep);

struct sweep_progress {
    size_t to_do, done, failed; /* of this call */
    struct sweep_pool_view view;
    const char *slowest; /* the name of the run that has run for longest; NULL: none runs */
};

struct sweep_options {
    const char *folder;
    size_t jobs;
    uint64_t memory_bytes; /* of one run; 0: no limit */
    double time_s;         /* likewise, by the clock on the wall */
    bool retry_failed;     /* those that failed, and only those */
    const bool *selected;  /* [plan.runs]; NULL: all */
    size_t shard, shards;  /* shards 0: not sharded */
    void (*failed)(void *self, const char *run, const char *point, const char *reason);
    void (*progress)(void *self, const struct sweep_progress *progress); /* NULL: none */
    void *self;
};

struct sweep_report {
    size_t runs, up_to_date, stale; /* before: all, done already, of another scenario or program */
    size_t to_do, done, failed;     /* of this call; failed: invalid ones included */
    enum sweep_pool_end end;
    double wall_s;                            /* that the runs took */
    bool started;                             /* runs were started, or would have been */
    size_t all_done, all_failed, all_missing; /* after it, of the whole sweep; by sweep_merge */
};

/* Runs what is not up to date. False when a run failed, is missing at the end, or the folder cannot
 * be written (errors). */
bool sweep_run(struct sweep *sweep, const struct sweep_options *options,
               struct sweep_report *report, struct errors *errors);
/* Writes FOLDER/sweep.h5 from the folder alone. results may be NULL; what it points to lives in the
 * arena. */
bool sweep_merge(const char *folder, struct sweep_report *report, struct sweep_results *results,
                 struct arena *arena, struct errors *errors);

/* How many runs of a point the options ask for, by selected and shard. */
size_t sweep_chosen(const struct sweep *sweep, const struct sweep_options *options, size_t point);
/* Requests of all sound ones of them together, and how many a second this machine simulates,
 * measured for a second on one of them. NaN where unknown. */
struct sweep_estimate {
    double requests, requests_per_s;
};
struct sweep_estimate sweep_estimate(struct sweep *sweep, const struct sweep_options *options);

#endif
