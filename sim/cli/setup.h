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

enum { SETUP_TARGETS_MAX = 8 };
/* Whether these files (NULL ones are skipped) can be written: absent or force, in folders that can
 * be written, no two the same, none of them the scenario. Adds every error. */
bool setup_targets_check(const char *const *paths, size_t count, const char *scenario, bool force,
                         struct errors *errors);

/* Prints what was collected, in order of place, to stderr. */
void setup_errors_print(struct errors *errors);

#endif
