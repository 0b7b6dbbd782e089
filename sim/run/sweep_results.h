/* The outputs of all runs of a sweep, read from their files, and sweep.h5 made of them. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_RESULTS_H
#define FLEETSIM_SIM_RUN_SWEEP_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/run/interval.h"
#include "sim/run/sweep_folder.h"

struct sweep_results {
    const struct sweep_layout *layout;
    double *values;       /* [output × run]; NaN: the run is not done */
    int32_t *status;      /* [run]; enum trace_sweep_status */
    const char **digests; /* [run]; "" where there is none */
    size_t done, failed, missing;
};

/* Reads every run that is done. One whose file is no longer what was written counts as missing,
 * with an error. Everything lives in the arena. */
void sweep_results_collect(struct sweep_results *results, const struct sweep_folder *folder,
                           struct arena *arena, struct errors *errors);
/* Writes PATH: all outputs on the sweep's axes; with replications also their mean and the half
 * width of its 95 % interval; one at a time also the effects. False with the error. */
bool sweep_results_write(const struct sweep_results *results, const char *path,
                         struct errors *errors);

/* Over the replications of a point that are done. */
struct interval sweep_results_interval(const struct sweep_results *results, size_t output,
                                       size_t point);

/* What changing one input alone does to an output. */
struct sweep_effect {
    size_t input;
    double base;            /* with nothing changed */
    double low, high;       /* the least and the largest over the input's values and the base */
    size_t low_at, high_at; /* points */
    double swing;           /* high − low; NaN when nothing is known */
};
/* One for each input, the largest swing first; effects: [layout->input_count]. */
void sweep_results_effects(const struct sweep_results *results, size_t output,
                           struct sweep_effect *effects);

#endif
