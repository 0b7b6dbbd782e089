/* points.json: all that a sweep's folder has to say of its points, so that `status` and `merge`
 * need nothing but the folder. Written whole before the first run, deterministic: shards write the
 * same bytes. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_LAYOUT_H
#define FLEETSIM_SIM_RUN_SWEEP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/column.h"
#include "sim/base/errors.h"
#include "sim/run/sweep_check.h"
#include "sim/run/sweep_points.h"

struct sweep_layout_run {
    const char *id;
    struct sweep_print fingerprint;
    const char *invalid; /* why its scenario is not sound; NULL: it is */
};

struct sweep_layout {
    const char *name, *description, *version;
    const char *sweep_text, *base_text;
    bool one_at_a_time;
    size_t replications, points, run_count;
    struct sweep_axis axes[SWEEP_FILE_AXES_MAX + 1]; /* the replication, if any, comes last */
    size_t axis_count;
    const char **labels; /* [points] */
    struct sweep_layout_run *runs;
    const struct column **outputs; /* of metrics_summary_columns */
    size_t output_count;
    /* One at a time: the inputs that are changed, in order, and how many values each has. */
    const char *inputs[SWEEP_FILE_AXES_MAX];
    size_t input_values[SWEEP_FILE_AXES_MAX];
    size_t input_count;
};

/* The columns a sweep's file asks for: false with errors at unknown names. In the arena. */
bool sweep_layout_outputs(const struct sweep_file *file, const struct column ***outputs,
                          size_t *count, struct arena *arena, struct errors *errors);

/* Writes FOLDER/points.json, replacing it as a whole. points: [plan->points]. */
bool sweep_layout_write(const struct sweep_plan *plan, const struct sweep_checked *points,
                        const char *base_text, const char *folder, struct errors *errors);
/* Reads it back, into the arena; false with the error. */
bool sweep_layout_read(struct sweep_layout *layout, const char *folder, struct arena *arena,
                       struct errors *errors);

/* The run of that name; SIZE_MAX: there is none. */
size_t sweep_layout_find(const struct sweep_layout *layout, const char *id);

#endif
