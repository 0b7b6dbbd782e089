/* The folder of a sweep: points.json, a journal for each writer, runs/ID.h5 and sweep.h5. A run is
 * done when its file is there, byte for byte what the journal says was written, and was made from
 * the fingerprint that points.json wants; everything else is run again. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_FOLDER_H
#define FLEETSIM_SIM_RUN_SWEEP_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/run/sweep_journal.h"
#include "sim/run/sweep_layout.h"

enum sweep_state {
    SWEEP_MISSING, /* not run, or its file is not what was written */
    SWEEP_STALE,   /* there is a result, of another scenario, trace or program */
    SWEEP_FAILED,
    SWEEP_DONE,
    SWEEP_STATE_COUNT
};

struct sweep_folder_run {
    enum sweep_state state;
    struct sweep_print file;     /* done: of its bytes */
    const char *digest, *reason; /* done; failed */
    double wall_s;
};

struct sweep_folder {
    const char *path; /* borrowed */
    const struct sweep_layout *layout;
    struct sweep_folder_run *runs; /* [layout->run_count]; arena */
};

/* Makes the folder and its runs/ where they are missing; false with the error. */
bool sweep_folder_make(const char *path, struct errors *errors);
/* Reads the journals and looks at the files. */
void sweep_folder_scan(struct sweep_folder *folder, const char *path,
                       const struct sweep_layout *layout, struct arena *arena,
                       struct errors *errors);
size_t sweep_folder_count(const struct sweep_folder *folder, enum sweep_state state);
/* "FOLDER/runs/ID.h5". */
const char *sweep_folder_file(const struct sweep_folder *folder, size_t run, struct arena *arena);
/* Removes what killed writers of these runs left beside their files. wanted: [run_count]. */
void sweep_folder_clean(const struct sweep_folder *folder, const bool *wanted);

#endif
