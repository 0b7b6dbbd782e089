/* One run's results in one HDF5 file that is also a netCDF-4 file: dimension scales, units,
 * long_name and description on every dataset, a CF time axis. The only code that includes <hdf5.h>.
 *
 * A file is whole or absent: it is written beside its name, synced and renamed. Identical input
 * gives identical bytes: no time of writing, no uninitialised padding. */
#ifndef FLEETSIM_SIM_TRACE_TRACE_H
#define FLEETSIM_SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/column.h"
#include "sim/base/errors.h"

/* Raised whenever a reader of older files would be misled; analysis/fleetio.py checks it. */
enum { TRACE_SCHEMA_VERSION = 1 };

/* A COLUMN_TIME with this unit is a stamp: written as "seconds since <start>" so that readers
 * decode a calendar time. Any other COLUMN_TIME is a duration in "s". */
#define TRACE_UNIT_STAMP "seconds since start"

enum trace_shape {
    TRACE_SERIES,  /* time × series: rows[t · series_count + s]; coordinates time, time_bnds and
                      the series' names */
    TRACE_TIMES,   /* time only: rows[t]; coordinates time, time_bnds */
    TRACE_LIST,    /* rows along a dimension without coordinates, such as `event` */
    TRACE_LABELS,  /* rows along a dimension whose coordinate is its labels, such as `pool` */
    TRACE_SCALARS, /* one row; every column a scalar */
};

/* One group of the file. All pointers are borrowed until the call returns. */
struct trace_table {
    const char *group; /* "hourly" */
    const char *doc;   /* what the group holds; one or two sentences */
    enum trace_shape shape;
    const struct column *columns;
    const void *rows;
    size_t row_count; /* SERIES, TIMES: number of times (not × series) */
    size_t row_size;
    size_t start_offset, end_offset; /* SERIES, TIMES: int64_t picoseconds in the row: bounds of
                                        the interval (of the first series' row) */
    const char *dimension;     /* SERIES: the series' dimension ("pool"); LIST, LABELS: its name */
    const char *const *labels; /* SERIES: series_count of them; LABELS: row_count */
    size_t series_count;       /* SERIES */
};

/* A text dataset of any length: "scenario/given". */
struct trace_text {
    const char *group, *name;
    const char *value; /* NULL is written as "" */
    const char *doc;
};

/* A scalar number or text of the group meta: "seed", "digest", "version". */
struct trace_meta {
    const char *name;
    const char *text; /* NULL: number is written */
    uint64_t number;
    const char *doc;
};

struct trace_run {
    const char *title;    /* global attribute: the scenario's description */
    int64_t start_unix_s; /* what time 0 is, in UTC */
    const struct trace_table *tables;
    size_t table_count;
    const struct trace_text *texts; /* a group may hold texts and a table */
    size_t text_count;
    const struct trace_meta *meta; /* beside schema_version, start and complete, which are written
                                      by themselves */
    size_t meta_count;
    bool complete; /* false: the run goes on (or was cut short); these are its finished hours */
};

/* A device or a pipe, such as /dev/stdout: text can be written into it as it is, but it is never
 * replaced by a file. */
bool trace_target_is_device(const char *path);
/* Is there something at path that must not be overwritten? Adds the error and returns false when
 * the file exists and force is false, when it is no ordinary file, or when no file of that name can
 * be made in its folder. Call it before a long run. */
bool trace_target_check(const char *path, bool force, struct errors *errors);

/* Writes the file. On failure adds an error that names the path and the system's reason, leaves
 * nothing new behind (an existing file keeps its content) and returns false. A PATH.part of this
 * run is removed on success. */
bool trace_write(const struct trace_run *run, const char *path, bool force, struct errors *errors);
/* Writes the finished hours so far to PATH.part, replacing the previous one at once: what is on
 * disk after a kill opens. run->complete must be false. */
bool trace_partial_write(const struct trace_run *run, const char *path, struct errors *errors);
/* Removes PATH.part, if there is one. */
void trace_partial_remove(const char *path);

/* The same file with a group of many rows that are appended while the run goes on (`requests`).
 * Rows are buffered by chunk and written column by column; time is linear in rows. */
struct trace_stream;
struct trace_stream_config {
    const char *group; /* "requests" */
    const char *doc;
    const char *dimension;        /* "request" */
    const struct column *columns; /* no TEXT columns; borrowed until close */
    size_t row_size;
    int64_t start_unix_s;
};
/* NULL after adding an error. Works in a temporary file beside path. */
struct trace_stream *trace_stream_open(const char *path, bool force,
                                       const struct trace_stream_config *config,
                                       struct errors *errors);
/* Copies the row. After a failed write it does nothing more; close reports the failure. */
void trace_stream_append(struct trace_stream *stream, const void *row);
/* Writes the rest of the run into the same file, renames it into place and frees the stream. */
bool trace_stream_close(struct trace_stream *stream, const struct trace_run *run,
                        struct errors *errors);
/* Frees the stream and removes its temporary file. */
void trace_stream_abort(struct trace_stream *stream);

/* "2026-03-02T00:00:00Z"; buffer of at least TRACE_ISO_MAX bytes, returned. */
enum { TRACE_ISO_MAX = 40 };
char *trace_iso_time(int64_t unix_s, char *buffer);

/* The output reference: for every table a Markdown heading, its doc and a table of its columns
 * (name, unit, type, definition). rows may be NULL. */
void trace_docs_print(const struct trace_table *tables, size_t count, FILE *out);

#endif
