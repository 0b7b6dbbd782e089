/* What `run` prints for people: the table by hour, the summary, the references with what they rest
 * on, and the audit. */
#ifndef FLEETSIM_SIM_CLI_REPORT_H
#define FLEETSIM_SIM_CLI_REPORT_H

#include <stdio.h>

#include "sim/run/run.h"

/* All of it, after run_simulate. Returns whether the audit holds. */
bool report_print(const struct run *run, FILE *out);

#endif
