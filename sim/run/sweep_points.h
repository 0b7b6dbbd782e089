/* What a sweep.yaml means: axes with coordinates, points, and the --set texts of each point.
 *
 * A point is one value on every axis; points are numbered with the last axis fastest. With one at a
 * time (--sensitivity) the points are the base scenario and then every value of every axis alone. A
 * run is one replication of a point: run = point × replications + replication. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_POINTS_H
#define FLEETSIM_SIM_RUN_SWEEP_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/scenario/sweep_file.h"

enum { SWEEP_POINTS_RUNS_MAX = 1000000, SWEEP_POINTS_ID_MAX = 48 };

/* Coordinates along an axis. */
struct sweep_column {
    const char *name, *unit, *long_name;
    const char *key;           /* what it is the value of; "": of nothing in the scenario */
    const double *numbers;     /* [count]; NULL: it has labels */
    const char *const *labels; /* [count]: what the values are called */
};

struct sweep_axis {
    const char *name;
    size_t count;
    struct sweep_column *columns; /* [0]: the coordinate with the axis' own name */
    size_t column_count;
};

/* One axis of the file with its values spelled out. */
struct sweep_input {
    const struct sweep_file_axis *from;
    struct sweep_axis axis;
    struct sweep_file_value *values; /* [count × columns] */
    size_t columns;                  /* 1: a value goes to every key; else the number of keys */
};

struct sweep_plan {
    const struct sweep_file *file;
    struct sweep_input inputs[SWEEP_FILE_AXES_MAX];
    size_t input_count;
    bool one_at_a_time;
    struct sweep_axis axes[SWEEP_FILE_AXES_MAX]; /* of the results */
    size_t axis_count;
    size_t points, replications, runs;
};

/* A "path=value" of a point, and where it was written. */
struct sweep_set {
    const char *text;
    const struct sweep_file_key *key;
    const struct sweep_file_value *value;
};

/* False with errors: numbers that are none, values that are there twice, keys that undo each other,
 * too many runs. Everything lives in the arena. */
bool sweep_points_plan(struct sweep_plan *plan, const struct sweep_file *file, bool one_at_a_time,
                       struct arena *arena, struct errors *errors);
/* The index of the point's value on an input; SIZE_MAX: the base's own value. */
size_t sweep_points_value(const struct sweep_plan *plan, size_t point, size_t input);
/* The sets of a point, in the order of the file. */
const struct sweep_set *sweep_points_sets(const struct sweep_plan *plan, size_t point,
                                          size_t *count, struct arena *arena);
/* "cold_start=600 s, policy=static"; "base" for the base scenario. */
const char *sweep_points_label(const struct sweep_plan *plan, size_t point, struct arena *arena);
/* The name of a run: "p00037", with several replications "p00037-r002". Returns id (at least
 * SWEEP_POINTS_ID_MAX bytes). */
char *sweep_points_id(const struct sweep_plan *plan, size_t run, char *id);
/* Whether setting the path `over` also sets what `path` names: "a.b" does for "a.b", "a.b.c" and
 * "a.b[0]". */
bool sweep_points_covers(const char *over, const char *path);
/* The index of the label on an input, from index `first`; SIZE_MAX: there is none. Rounded samples
 * may have it more than once. */
size_t sweep_points_find(const struct sweep_input *input, const char *label, size_t first);

#endif
