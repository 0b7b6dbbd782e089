/* Reads result files back, through the same column tables that wrote them. */
#ifndef FLEETSIM_SIM_TRACE_TRACE_READ_H
#define FLEETSIM_SIM_TRACE_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/errors.h"
#include "sim/trace/trace.h"

/* An open file. Everything it hands out is owned by it and valid until it is closed. */
struct trace_read;

/* NULL after adding the error: nothing there (naming a PATH.part that is), no HDF5, cut short or
 * damaged, not of this program, another schema version. */
struct trace_read *trace_read_open(const char *path, struct errors *errors);
void trace_read_close(struct trace_read *file);

/* A scalar dataset, such as "meta/digest"; NULL or false when there is none of that kind. */
const char *trace_read_text(struct trace_read *file, const char *name);
bool trace_read_number(struct trace_read *file, const char *name, uint64_t *value);
/* The title of the file; "" without one. */
const char *trace_read_title(struct trace_read *file);
bool trace_read_has_group(struct trace_read *file, const char *group);

struct trace_rows {
    void *rows;               /* [row_count · series_count] of table->row_size */
    size_t row_count;         /* SERIES, TIMES: of times */
    size_t series_count;      /* 1 unless SERIES */
    const char *const *names; /* SERIES: [series_count]; LABELS: [row_count]; else NULL */
};

/* Reads a group into rows of the table's columns (its rows, counts and labels are not looked at);
 * with times, start and end of each row too. A column that the file has not is undefined (its 64 or
 * 32 bits as struct column says; 0 for unsigned ones). Times were stored in seconds as doubles:
 * exact to the picosecond up to 9,007 s, to 2 ns at 100 days. False after adding an error that
 * names the file. */
bool trace_read_table(struct trace_read *file, const struct trace_table *table,
                      struct trace_rows *rows, struct errors *errors);

#endif
