/* Column tables: a row struct of results is described once, by the file that fills it; that table
 * drives the HDF5 writer, the CSV writers and the output reference. */
#ifndef FLEETSIM_SIM_BASE_COLUMN_H
#define FLEETSIM_SIM_BASE_COLUMN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum column_type {
    COLUMN_END,    /* closes a table */
    COLUMN_INT64,  /* int64_t; COLUMN_INT_NONE means undefined */
    COLUMN_UINT64, /* uint64_t */
    COLUMN_INT32,  /* int32_t; -1 means undefined */
    COLUMN_UINT32, /* uint32_t */
    COLUMN_DOUBLE, /* double; NaN means undefined */
    COLUMN_TIME, /* int64_t picoseconds; written in seconds: double in HDF5, exact decimals in CSV;
                    TIME_NONE means undefined */
    COLUMN_TEXT, /* const char *; NULL means undefined */
};
#define COLUMN_INT_NONE INT64_MIN

struct column {
    const char *name; /* HDF5 dataset and CSV header */
    enum column_type type;
    size_t offset;         /* in the row struct */
    const char *unit;      /* "s", "1", "tokens", "GPU h", "$": UDUNITS where one exists */
    const char *long_name; /* a few words for a plot's axis */
    const char *doc;       /* the definition, with its population; one or two sentences */
};

size_t column_count(const struct column *columns);
/* One CSV field, empty where undefined, %.17g-shortest for doubles; no quoting is needed for what
 * we write except TEXT, which is quoted when it holds a comma, quote or newline. */
void column_csv_value(const struct column *column, const void *row, FILE *out);
/* "a,b,c\n" of all columns. */
void column_csv_header(const struct column *columns, FILE *out);
void column_csv_row(const struct column *columns, const void *row, FILE *out);

#endif
