/* --export-trace: writes the requests of a workload as a trace of our own format, which replays to
 * the identical requests. */
#ifndef FLEETSIM_SIM_WORKLOAD_WORKLOAD_EXPORT_H
#define FLEETSIM_SIM_WORKLOAD_WORKLOAD_EXPORT_H

#include "sim/workload/workload.h"

/* Takes every request that is left of w and writes path: gzip when its name ends in ".gz", plain
 * otherwise. Columns arrival_s (exact decimals), prompt_tokens, output_tokens, class, session,
 * turn. Written beside its name and renamed when whole. class_names: as in the workload's config.
 * Returns the number of rows, or −1 after reporting (nothing is left at path then). */
int64_t workload_export(struct workload *w, const char *const *class_names, const char *path,
                        struct errors *errors);

#endif
