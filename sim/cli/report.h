/* What `run` and `show` print for people: the table by hour, the summary, the references with what
 * they rest on, and the audit. */
#ifndef FLEETSIM_SIM_CLI_REPORT_H
#define FLEETSIM_SIM_CLI_REPORT_H

#include <stdio.h>

#include "sim/run/run_outcome.h"

/* All of it; of a run that was cut short, the table and how far it came. Returns whether the audit
 * holds, as far as there is one. */
bool report_print(const struct run_outcome *outcome, FILE *out);
/* What one complete run says of how sure its own numbers are. */
void report_within_print(const struct run_outcome *outcome, FILE *out);

#endif
