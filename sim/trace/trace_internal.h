/* Shared by the files of sim/trace only. */
#ifndef FLEETSIM_SIM_TRACE_TRACE_INTERNAL_H
#define FLEETSIM_SIM_TRACE_TRACE_INTERNAL_H

#include <hdf5.h>

#include "sim/trace/trace.h"

enum {
    TRACE_CHUNK_ROWS = 8192, /* rows of a chunk of a long table */
    /* Columns up to this are stored plain, in the header of their dataset, … */
    TRACE_SMALL_BYTES = 8192,
    /* … and up to this where all of their table is small: packing them costs more than it saves. A
     * header takes 64 KiB at most. */
    TRACE_MEDIUM_BYTES = 32768,
    TRACE_SMALL_TABLE_BYTES = 131072,
    TRACE_LINKS_MAX = 4096, /* members that a group lists in its own header: an index costs more */
    TRACE_WHY_MAX = 256,
    TRACE_ATTRIBUTE_TYPES = 256,
};

/* Which integer, if any, stands for "undefined" in a dataset. */
enum trace_fill { TRACE_FILL_NONE, TRACE_FILL_INT64, TRACE_FILL_INT32, TRACE_FILL_COUNT };

struct trace_scale;
/* How a dataset lies in its group: its dimensions and their scales. */
struct trace_space {
    int rank; /* 0: a scalar */
    hsize_t dims[2];
    struct trace_scale *scales[2]; /* borrowed; NULL for none */
    bool growing;                  /* the first dimension is unlimited */
    bool small_table;              /* up to TRACE_SMALL_TABLE_BYTES in all columns */
};

/* An open file and its first failure: after one, every call does nothing. The types, spaces and
 * property lists are made once: a file has a thousand small objects that share them. */
struct trace_hdf5 {
    hid_t file;
    bool failed;
    char why[TRACE_WHY_MAX]; /* the library's or the system's reason */
    int64_t start_unix_s;
    hid_t text_type; /* variable-length UTF-8 */
    /* Texts of fixed length in UTF-8 up to that many bytes, made at first use: index 0 serves
     * longer ones and other characters, its length set before each use. */
    hid_t attribute_types[TRACE_ATTRIBUTE_TYPES];
    hid_t list_type;               /* of DIMENSION_LIST */
    hid_t scalar, single, pair;    /* spaces: of rank 0, of 1 element, of 2 elements */
    hid_t shape;                   /* space of the latest columns, … */
    struct trace_space shape_of;   /* … and what it was made for */
    hid_t transfer;                /* of values, converted a little at a time */
    hid_t small[TRACE_FILL_COUNT]; /* creation of datasets whose values lie in their header */
};

/* A dataset's place on a scale: an element of the attribute REFERENCE_LIST. */
struct trace_user {
    hobj_ref_t dataset;
    int32_t dimension, padding; /* padding: 0, for it reaches the file */
};

/* An open dimension scale. Who uses it is written once, when it is closed: H5DSattach_scale would
 * write the list anew for every dataset. */
struct trace_scale {
    hid_t dataset;
    hobj_ref_t reference;
    struct trace_user *users; /* owned */
    size_t user_count, user_capacity;
};

/* Opens in memory when path is NULL, else on disk. Failure is recorded in w. */
void trace_hdf5_open(struct trace_hdf5 *w, const char *path, int64_t start_unix_s);
/* Closes the file; on disk its last bytes are written here. */
void trace_hdf5_close(struct trace_hdf5 *w);
/* All bytes of a file in memory: borrowed until it is closed; NULL with a reason in w when anything
 * failed. */
const void *trace_hdf5_image(struct trace_hdf5 *w, size_t *size);
/* Records the library's reason for the failure at hand. */
void trace_hdf5_fail(struct trace_hdf5 *w, const char *doing);
/* id when ≥ 0, else records a failure. */
hid_t trace_hdf5_id(struct trace_hdf5 *w, hid_t id, const char *doing);

/* Closing writes what is still in memory of the object: it can fail. Ids < 0 are let be. */
void trace_hdf5_dataset_close(struct trace_hdf5 *w, hid_t dataset);
void trace_hdf5_group_close(struct trace_hdf5 *w, hid_t group);
/* A group, made when it does not exist, with room for the names of so many members; close with
 * trace_hdf5_group_close. */
hid_t trace_hdf5_group(struct trace_hdf5 *w, const char *name, const char *doc, size_t members);
void trace_hdf5_attribute(struct trace_hdf5 *w, hid_t object, const char *name, const char *text);
/* A dataset of one column in a group; close with trace_hdf5_dataset_close. */
hid_t trace_hdf5_column(struct trace_hdf5 *w, hid_t group, const struct column *column,
                        const struct trace_space *space);
/* Bytes of an element in the file; of a text its place in the heap where it lies. */
size_t trace_hdf5_element_bytes(enum column_type type);
/* Its values, gathered from rows, into elements first … first + count − 1 of its only dimension, or
 * into the whole (first 0, count all elements). buffer: count × 8 bytes. */
void trace_hdf5_values(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t count, void *buffer);
void trace_hdf5_append(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t first, size_t count, void *buffer);
/* A dimension without coordinates, as netCDF-4 writes one; close with trace_hdf5_scale_close. */
struct trace_scale trace_hdf5_dimension(struct trace_hdf5 *w, hid_t group, const char *name,
                                        hsize_t length, bool growing);
/* Makes a dataset a scale of that name and takes it over; close with trace_hdf5_scale_close. */
struct trace_scale trace_hdf5_scale(struct trace_hdf5 *w, hid_t dataset, const char *name);
/* Writes which datasets use the scale and closes its dataset. */
void trace_hdf5_scale_close(struct trace_hdf5 *w, struct trace_scale *scale);
/* Scalars and tables of a run (trace_tables.c). */
void trace_tables_write(struct trace_hdf5 *w, const struct trace_run *run);

/* Beside path, of this process: malloc'd text, the caller frees. */
char *trace_file_temporary(const char *path);
char *trace_file_partial(const char *path);
/* Writes bytes beside path, syncs, renames to path. Nothing is left behind on failure. */
bool trace_file_replace(const char *path, const void *bytes, size_t size, struct errors *errors);
/* The same with all of a file in memory, which is closed. */
bool trace_image_replace(struct trace_hdf5 *w, const char *path, struct errors *errors);
/* Syncs temporary (written by others) and renames it to path. */
bool trace_file_commit(const char *path, const char *temporary, struct errors *errors);

#endif
