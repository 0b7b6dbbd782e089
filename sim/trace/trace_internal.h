/* Shared by the files of sim/trace only. */
#ifndef FLEETSIM_SIM_TRACE_TRACE_INTERNAL_H
#define FLEETSIM_SIM_TRACE_TRACE_INTERNAL_H

#include <hdf5.h>

#include "sim/trace/trace.h"

enum {
    TRACE_CHUNK_ROWS = 8192,  /* rows of a chunk of a long table */
    TRACE_SMALL_BYTES = 8192, /* columns up to this are stored plain: a chunk index costs more */
    TRACE_WHY_MAX = 256,
};

/* An open file and its first failure: after one, every call does nothing. */
struct trace_hdf5 {
    hid_t file;
    bool failed;
    char why[TRACE_WHY_MAX]; /* the library's or the system's reason */
    int64_t start_unix_s;
    hid_t text_type; /* variable-length UTF-8 */
};

/* How a dataset lies in its group: its dimensions and their scales. */
struct trace_space {
    int rank; /* 0: a scalar */
    hsize_t dims[2];
    hid_t scales[2];
    bool growing; /* the first dimension is unlimited */
};

/* Opens in memory when path is NULL, else on disk. Failure is recorded in w. */
void trace_hdf5_open(struct trace_hdf5 *w, const char *path, int64_t start_unix_s);
/* Closes the file; on disk its last bytes are written here. */
void trace_hdf5_close(struct trace_hdf5 *w);
/* Records the library's reason for the failure at hand. */
void trace_hdf5_fail(struct trace_hdf5 *w, const char *doing);
/* id when ≥ 0, else records a failure. */
hid_t trace_hdf5_id(struct trace_hdf5 *w, hid_t id, const char *doing);

/* A group, made when it does not exist; close with H5Gclose. */
hid_t trace_hdf5_group(struct trace_hdf5 *w, const char *name, const char *doc);
void trace_hdf5_attribute(struct trace_hdf5 *w, hid_t object, const char *name, const char *text);
/* A dataset of one column in a group; close with H5Dclose. */
hid_t trace_hdf5_column(struct trace_hdf5 *w, hid_t group, const struct column *column,
                        const struct trace_space *space);
/* Its values, gathered from rows, into elements first … first + count − 1 of its only dimension, or
 * into the whole (first 0, count all elements). buffer: count × 8 bytes. */
void trace_hdf5_values(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t count, void *buffer);
void trace_hdf5_append(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t first, size_t count, void *buffer);
/* A dimension without coordinates, as netCDF-4 writes one; close with H5Dclose. */
hid_t trace_hdf5_dimension(struct trace_hdf5 *w, hid_t group, const char *name, hsize_t length,
                           bool growing);
/* Scalars and tables of a run (trace_tables.c). */
void trace_tables_write(struct trace_hdf5 *w, const struct trace_run *run);

/* Beside path, of this process: malloc'd text, the caller frees. */
char *trace_file_temporary(const char *path);
char *trace_file_partial(const char *path);
/* Writes bytes to temporary, syncs, renames to path. Removes temporary on failure. */
bool trace_file_replace(const char *path, const char *temporary, const void *bytes, size_t size,
                        struct errors *errors);
/* Syncs temporary (written by others) and renames it to path. */
bool trace_file_commit(const char *path, const char *temporary, struct errors *errors);

#endif
