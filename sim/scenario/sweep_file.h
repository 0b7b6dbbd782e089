/* sweep.yaml: which values of a base scenario are varied, and how. It is read here, with the same
 * errors as a scenario; what it means as points is sim/run/sweep_points.h.
 *
 *   base: scenario.yaml                  # default: the scenario.yaml beside it
 *   replications: 3
 *   outputs: [usd, ttft_p99]             # columns of the summary; default all
 *   axes:
 *     - {name: cold_start, key: fleet.pools[0].cold_start.provision, list: [0 s, 60 s], unit: s}
 *     - {name: peak, key: workload[0].arrivals.curve.peak_factor, range: {from: 1, to: 4, count:
 * 7}}
 */
#ifndef FLEETSIM_SIM_SCENARIO_SWEEP_FILE_H
#define FLEETSIM_SIM_SCENARIO_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"
#include "sim/scenario/source.h"

enum {
    SWEEP_FILE_AXES_MAX = 16,
    SWEEP_FILE_KEYS_MAX = 16, /* of one axis */
    SWEEP_FILE_REPLICATIONS_MAX = 1000,
};

enum sweep_file_kind {
    SWEEP_FILE_LIST,    /* values, each given to every key */
    SWEEP_FILE_ZIP,     /* rows of values, one for each key */
    SWEEP_FILE_RANGE,   /* equal steps between two numbers */
    SWEEP_FILE_SAMPLES, /* quasi-random points between two corners */
};

/* Byte `text` of a value's text was written at byte `offset` of the file. */
struct sweep_file_mark {
    uint32_t text, offset;
};

struct sweep_file_value {
    const char *text; /* YAML on one line, as --set takes it */
    bool scalar;
    uint32_t offset; /* where it begins in the file */
    const struct sweep_file_mark *marks;
    size_t mark_count;
};

struct sweep_file_key {
    const char *path; /* "fleet.pools[0].max_queue" */
    uint32_t offset;
};

/* A range's or a sample's side, as it was written: a number, perhaps with a unit. */
struct sweep_file_span {
    const char *from, *to, *step; /* NULL: not given */
    int64_t count;                /* FIELD_INT_UNSET: not given */
    int scale;                    /* enum sweep_file_scale */
    bool round;                   /* to whole numbers */
};
enum sweep_file_scale { SWEEP_FILE_LINEAR, SWEEP_FILE_LOG };

/* Quasi-random points: one side and scale for each key, or one for all. */
struct sweep_file_samples {
    int64_t count, skip;
    struct field_list from, to; /* const char * */
    struct field_list scale;    /* int: enum sweep_file_scale */
    bool round;
};

struct sweep_file_axis {
    const char *name;             /* never NULL */
    const char *unit, *long_name; /* NULL: not given */
    struct field_list labels;     /* const char *; empty: none */
    struct sweep_file_key *keys;
    size_t key_count;
    enum sweep_file_kind kind;
    struct sweep_file_value *values; /* LIST: count; ZIP: count × key_count */
    size_t count;
    struct sweep_file_span range;
    struct sweep_file_samples samples;
    uint32_t offset, kind_offset; /* of the axis, and of what gives its values */
};

struct sweep_file {
    const char *path, *text;
    struct source source;
    const char *name, *description;
    const char *base; /* a path, from the working directory */
    int64_t replications;
    int64_t memory_bytes;      /* of one run; FIELD_INT_UNSET: not given */
    int64_t time_limit_ps;     /* likewise */
    struct field_list outputs; /* const char *; empty: all */
    uint32_t *output_offsets;  /* [outputs.count] */
    struct sweep_file_axis *axes;
    size_t axis_count;
};

/* Reads the sweep of that name: a file, a folder that holds sweep.yaml, or the name of one under
 * folders (NULL-terminated). Reports everything that is wrong with it; NULL when anything was.
 * Everything lives in the arena. */
struct sweep_file *sweep_file_load(const char *name, const char *const *folders,
                                   struct arena *arena, struct errors *errors);

/* Reports at a byte of the file. */
void sweep_file_error(const struct sweep_file *file, uint32_t offset, struct errors *errors,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
