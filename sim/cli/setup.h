/* What run, compare and check have in common: opening a scenario, and judging output paths before
 * any work is done. */
#ifndef FLEETSIM_SIM_CLI_SETUP_H
#define FLEETSIM_SIM_CLI_SETUP_H

#include "sim/cli/options.h"
#include "sim/run/run.h"

/* Opens a scenario by path or name with --set (more: further ones, may be NULL) and --seed (NULL:
 * not given), all in the arena. NULL with the errors. */
struct run *setup_open(const char *scenario, const struct options_list *sets,
                       const struct options_list *more, const char *seed, struct arena *arena,
                       struct errors *errors);

/* The same, with a say in how capacities are measured (NULL: where the run needs one, silently). */
struct run *setup_open_measuring(const char *scenario, const struct options_list *sets,
                                 const struct options_list *more, const char *seed,
                                 const struct capacity_ask *ask, struct arena *arena,
                                 struct errors *errors);

/* A file to write. Text goes into a device or a pipe as it is; a binary file does not. */
struct setup_target {
    const char *path; /* NULL: not asked for */
    bool binary;
};
/* Follows links, so that what they point to is replaced and not the link: in the arena. */
const char *setup_target_path(const char *path, struct arena *arena);
/* Whether these can be written: absent or force, in folders that can be written, no two the same,
 * nothing that the run (NULL: the scenario is wrong) reads. Adds every error. */
bool setup_targets_check(const struct setup_target *targets, size_t count, const struct run *run,
                         bool force, struct errors *errors);

/* Prints what was collected, in order of place, to stderr. */
void setup_errors_print(struct errors *errors);

#endif
