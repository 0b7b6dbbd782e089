/* Inside sim/run: the per-request rows that were asked for, a CSV, the HDF5 group, both or none. */
#ifndef FLEETSIM_SIM_RUN_RUN_ROWS_H
#define FLEETSIM_SIM_RUN_RUN_ROWS_H

#include "sim/run/request_log.h"
#include "sim/run/run.h"

struct run_rows {
    struct run *run; /* borrowed; its stream is opened here and closed by run_write */
    bool wanted;     /* there is a CSV or a stream */
    struct request_log log;
    FILE *csv;        /* owned; NULL: none, or it failed */
    const char *path; /* of the CSV; borrowed from the options */
    char *temporary;  /* owned; where it is written; NULL: at path itself, a device */
    int reason;       /* errno of the CSV's first failed write; 0: none */
};

/* False after adding an error; nothing is left open then. */
bool run_rows_open(struct run_rows *rows, struct run *run, const struct run_options *options,
                   struct errors *errors);
/* Ends the CSV: renamed into place when it is whole, else removed, with an error that says why.
 * keep false: the run failed, and no CSV is left. */
void run_rows_close(struct run_rows *rows, bool keep, struct errors *errors);

#endif
