/* What is said of a trace that --export-trace wrote. */
#ifndef FLEETSIM_SIM_CLI_EXPORT_H
#define FLEETSIM_SIM_CLI_EXPORT_H

#include <stdio.h>

#include "sim/run/run.h"

/* The line of a scenario that replays the trace at path, where it takes more than the file's name:
 * hash_ids need to be told their block size. Nothing otherwise. */
void export_print(const struct run *run, const char *path, FILE *out);

#endif
