/* The progress of a run on stderr: one line rewritten on a terminal, else a line every 30 s. */
#ifndef FLEETSIM_SIM_CLI_PROGRESS_H
#define FLEETSIM_SIM_CLI_PROGRESS_H

#include <stdbool.h>

#include "sim/run/run.h"

struct progress {
    const char *what; /* borrowed: the scenario's or variant's name */
    bool terminal;
    double expected; /* requests of the whole run */
    int64_t start_unix_s;
    double line_wall_s; /* when the last line was printed */
};

void progress_init(struct progress *progress, const struct run *run, const char *what);
/* A run_options.progress. self: struct progress. */
void progress_report(void *self, const struct run_progress *at);

/* A capacity_ask.progress, without self: on a terminal every trial, and what was found as a line of
 * its own. */
void progress_capacity(void *self, const struct capacity_progress *at);

#endif
