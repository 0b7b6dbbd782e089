/* What the options of `fleetsim sweep` mean: which runs, how many processes, how much memory. */
#ifndef FLEETSIM_SIM_CLI_SWEEP_OPTIONS_H
#define FLEETSIM_SIM_CLI_SWEEP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cli/options.h"
#include "sim/run/sweep.h"

struct sweep_values {
    struct options_list sets, only;
    const char *output, *jobs, *memory, *time_limit, *replications, *shard, *slurm, *sensitivity;
    bool dry_run, retry_failed, quiet, json;
};

/* Each returns false after a message on stderr. */

/* --jobs; without it the processors of a Slurm task, else all of the machine. */
bool sweep_options_jobs(const char *text, size_t *jobs);
/* --memory, else the file's, else nine tenths of the machine's for all jobs together. */
bool sweep_options_memory(const char *text, int64_t file_bytes, size_t jobs, uint64_t *bytes);
/* --time-limit, else the file's, else 0: none. */
bool sweep_options_time(const char *text, int64_t file_ps, double *seconds);
/* --replications; 0: not given. */
bool sweep_options_replications(const char *text, int64_t *count);
/* --shard i/n, else those of a Slurm job array; *shards 0: neither. */
bool sweep_options_shard(const char *text, size_t *shard, size_t *shards);
/* Which runs --only means, [plan->runs] in the arena; *selected NULL: all. Numbers and ranges of
 * points ("12", "p00012", "3-7") add up; AXIS=VALUE narrows, several of one axis add up. */
bool sweep_options_only(const struct options_list *only, const struct sweep_plan *plan,
                        const bool **selected, struct arena *arena);

#endif
