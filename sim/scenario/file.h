/* Finding and reading scenario files. */
#ifndef FLEETSIM_SIM_SCENARIO_FILE_H
#define FLEETSIM_SIM_SCENARIO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"

/* What is at a path; copies in the arena. */
struct file_text {
    const char *path;
    const char *folder; /* of path; "" for the working directory */
    const char *text;   /* NUL-terminated */
    size_t length;
    dev_t device; /* with inode: which file it is, whatever its name */
    ino_t inode;
};

/* Reads a file of at most limit bytes. A folder, a missing, unreadable or larger file is an error
 * at pos (may be NULL). */
bool file_read(const char *path, size_t limit, const struct source_pos *pos, struct file_text *file,
               struct arena *arena, struct errors *errors);

/* The path of the scenario a user means: name without '/' and without .yaml or .yml is looked for
 * as FOLDER/name/scenario.yaml in folders (NULL-terminated; may be NULL), then as a file; a path to
 * a folder means the scenario.yaml in it. NULL, with an error that lists the nearest names, when
 * there is no such thing. */
const char *file_find(const char *name, const char *const *folders, struct arena *arena,
                      struct errors *errors);

/* The folder part of a path, "" when it has none. */
const char *file_folder(const char *path, struct arena *arena);

#endif
