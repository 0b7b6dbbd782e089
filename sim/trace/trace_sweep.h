/* The results of a sweep on its own axes, as one HDF5 file that is also a netCDF-4 file: a
 * dimension with its coordinate for every axis, one variable for every output, all doubles (NaN:
 * that run is not there), and the status of every run. Identical input gives identical bytes. */
#ifndef FLEETSIM_SIM_TRACE_TRACE_SWEEP_H
#define FLEETSIM_SIM_TRACE_TRACE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/column.h"
#include "sim/base/errors.h"
#include "sim/trace/trace.h"

enum { TRACE_SWEEP_RANK_MAX = 18 };

/* Coordinates along an axis. All pointers are borrowed. */
struct trace_sweep_column {
    const char *name, *unit, *long_name;
    const char *key;           /* an attribute: which value of the scenario it is; "": none */
    const double *numbers;     /* [length]; NULL: labels are written */
    const char *const *labels; /* [length] */
};

struct trace_sweep_axis {
    const char *name;
    size_t length;
    const struct trace_sweep_column *columns; /* [0] is the dimension's own, with its name */
    size_t column_count;
};

/* A variable on the first `rank` axes, the last of them fastest. */
struct trace_sweep_variable {
    const char *name, *unit, *long_name, *doc;
    const double *values;
    size_t rank;
};

/* What became of a run: the values of the variable `status`. */
enum trace_sweep_status { TRACE_SWEEP_DONE, TRACE_SWEEP_FAILED, TRACE_SWEEP_MISSING };

/* A table beside the axes: rows of labels × columns of numbers, in a group of its own. */
struct trace_sweep_table {
    const char *group, *doc;
    const char *dimension;
    const char *const *labels; /* [rows] */
    size_t rows;
    const struct trace_sweep_variable *columns; /* rank is 1 */
    size_t column_count;
};

struct trace_sweep {
    const char *title;
    const struct trace_sweep_axis *axes;
    size_t axis_count;
    const struct trace_sweep_variable *variables;
    size_t variable_count;
    const int32_t *status;                 /* on all axes */
    const char *const *digests;            /* on all axes; "" where there is none */
    const struct trace_sweep_table *table; /* NULL: none */
    const struct trace_text *texts;
    size_t text_count;
    const struct trace_meta *meta;
    size_t meta_count;
};

/* Replaces the file at path as a whole; false with the error, the old file untouched. */
bool trace_sweep_write(const struct trace_sweep *sweep, const char *path, struct errors *errors);

/* Reads from the image of a run's file (its bytes): of every named column of the group `summary`
 * the value of all pools together into values (NaN where it is undefined or not there), and the
 * run's digest (17 bytes). False when the bytes are no complete file of a run. */
bool trace_sweep_read(const void *image, size_t size, const struct column *const *columns,
                      size_t count, double *values, char *digest);

#endif
