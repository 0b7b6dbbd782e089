/* Scenario files: YAML text → a filled struct, by walking field tables. The only place that knows
 * YAML (libfyaml). It knows no key of any scenario: the root table comes from sim/run. */
#ifndef FLEETSIM_SIM_SCENARIO_SCENARIO_H
#define FLEETSIM_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"

struct scenario_request {
    const char *name;           /* a path to a file, or a folder's name under one of folders */
    const char *const *folders; /* NULL-terminated search list for names ("scenarios", …) */
    const char *const *sets;    /* "path=value" overrides, applied in order after extends */
    size_t set_count;
    const struct field *root; /* table of the whole file */
    void *target;             /* struct to fill */
};

struct scenario; /* keeps the documents alive so that places can be found; owned by the caller */

/* Loads, extends, overrides and fills target, reporting everything wrong at once: unknown keys with
 * the nearest name, duplicate keys, wrong types, units, ranges, missing required keys, variants
 * that do not exist (or not yet), lists of the wrong length. Returns NULL when anything was an
 * error; a scenario that loads may leave warnings.
 *
 * `extends: path` at the top level builds on another file: mappings merge, lists and scalars
 * replace, paths stay relative to the file that wrote them, and a mapping whose tag (the key that
 * chooses a VARIANT: policy, process, dist, …) changes drops the base's mapping as a whole instead
 * of merging. A set replaces the value it names; setting a tag drops the keys that only the old
 * variant knows, with a warning. Its paths are relative to the working directory.
 *
 * Limits: 16 MiB a file, 16 files in a chain of extends, 64 nested mappings and lists, 100,000
 * values with aliases expanded. */
struct scenario *scenario_load(const struct scenario_request *request, struct arena *arena,
                               struct errors *errors);
/* The same for a text in memory. request->name is what messages call it, its paths are relative to
 * the working directory, and `extends` is refused: nothing is opened. */
struct scenario *scenario_load_text(const struct scenario_request *request, const char *text,
                                    size_t length, struct arena *arena, struct errors *errors);
void scenario_free(struct scenario *scenario);

/* The file that was opened, as a path. */
const char *scenario_path(const struct scenario *scenario);
/* Whether it, or a file that it extends, is the file of that device and inode (stat). */
bool scenario_reads(const struct scenario *scenario, dev_t device, ino_t inode);
/* The text of that file as given, byte for byte (extended files follow, each after a comment line
 * with its path). */
const char *scenario_text(const struct scenario *scenario);
/* Finds places in it: for errors of later stages. */
struct locator scenario_locator(struct scenario *scenario);
/* Whether the user (file, extends or --set) wrote a value at this path. */
bool scenario_wrote(const struct scenario *scenario, const char *path);

#endif
