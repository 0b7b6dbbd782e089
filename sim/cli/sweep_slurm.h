/* A batch script that runs a sweep as a Slurm job array. */
#ifndef FLEETSIM_SIM_CLI_SWEEP_SLURM_H
#define FLEETSIM_SIM_CLI_SWEEP_SLURM_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/cli/sweep_options.h"

/* values->slurm: the number of tasks. False after a message on stderr. */
bool sweep_slurm_print(const struct sweep_values *values, const char *sweep, const char *name,
                       const char *folder, FILE *out);

#endif
