/* Tasks in forked workers, one process for each task: what goes wrong in one stays in it. The
 * parent waits for them with the signals SIGINT and SIGTERM held back: the first lets what runs
 * come to its end and starts nothing more, the second kills. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_POOL_H
#define FLEETSIM_SIM_RUN_SWEEP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/base/errors.h"
#include "sim/run/sweep_check.h"

enum { SWEEP_POOL_JOBS_MAX = 256, SWEEP_POOL_REASON_MAX = 1024 };

/* What a worker tells its parent, in one write to a pipe. */
struct sweep_outcome {
    bool done;
    struct sweep_print file;
    char digest[17];
    double wall_s; /* filled by the pool: from the fork to the end */
    uint64_t bytes, peak_rss_bytes;
    char reason[SWEEP_POOL_REASON_MAX]; /* when not done */
};

struct sweep_pool_view {
    size_t started, ended;
    size_t running;
    bool stopping;  /* after a first signal */
    size_t slowest; /* the task that has run for longest; with running > 0 */
    double slowest_s;
    double wall_s; /* since the pool began */
};

struct sweep_pool {
    const size_t *tasks;
    size_t count, jobs;
    uint64_t memory_bytes; /* of one worker, measured; 0: no limit */
    double time_s;         /* likewise, from the fork on; 0: no limit */
    /* In the worker. */
    void (*work)(void *self, size_t task, struct sweep_outcome *outcome);
    /* In the parent, when a task has ended. False: nothing more is started. */
    bool (*ended)(void *self, size_t task, const struct sweep_outcome *outcome);
    /* In the parent, about twenty times a second. NULL: none. */
    void (*look)(void *self, const struct sweep_pool_view *view);
    void *self;
};

enum sweep_pool_end {
    SWEEP_POOL_ALL,     /* every task has ended */
    SWEEP_POOL_STOPPED, /* some were not started: a signal, or ended said so */
    SWEEP_POOL_KILLED,  /* running ones were killed by a second signal */
    SWEEP_POOL_BROKEN,  /* no process could be made (error) */
};

enum sweep_pool_end sweep_pool_run(const struct sweep_pool *pool, struct errors *errors);

#endif
