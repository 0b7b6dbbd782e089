/* What is said of a trace that --export-trace wrote. */
#ifndef FLEETSIM_SIM_CLI_EXPORT_H
#define FLEETSIM_SIM_CLI_EXPORT_H

#include <stdio.h>

#include "sim/run/run.h"

/* The lines of a scenario that replay the trace at path, where it takes more than the file's name:
 * hash_ids need to be told their block size, by every class. Nothing otherwise. */
void export_print(const struct run *run, const char *path, FILE *out);

#endif
