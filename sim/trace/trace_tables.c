/* The groups of a file: tables, texts and meta, each by its shape. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/time.h"
#include "sim/trace/trace_internal.h"

/* A dataset that is a dimension's coordinate. */
static struct trace_scale coordinate_create(struct trace_hdf5 *w, hid_t group,
                                            const struct column *column, const void *rows,
                                            size_t row_size, size_t count)
{
    struct trace_space space = {.rank = 1, .dims = {count, 1}, .growing = count == 0};
    hid_t dataset = trace_hdf5_column(w, group, column, &space);
    void *buffer = memory_alloc((count + 1) * 8);
    trace_hdf5_values(w, dataset, column, rows, row_size, count, buffer);
    free(buffer);
    return trace_hdf5_scale(w, dataset, column->name);
}

/* The names along a dimension, such as the pools. */
static struct trace_scale labels_create(struct trace_hdf5 *w, hid_t group,
                                        const struct trace_table *table, size_t count)
{
    struct column column = {.name = table->dimension,
                            .type = COLUMN_TEXT,
                            .unit = "",
                            .long_name = table->dimension,
                            .doc = "Names along the dimension."};
    return coordinate_create(w, group, &column, table->labels, sizeof table->labels[0], count);
}

/* Bounds of the intervals: time × 2, in the units of time. */
static void bounds_create(struct trace_hdf5 *w, hid_t group, struct trace_scale *time, size_t count,
                          const int64_t *bounds)
{
    struct trace_scale ends = trace_hdf5_dimension(w, group, "nv", 2, false);
    struct column column = {.name = "time_bnds",
                            .type = COLUMN_TIME,
                            .unit = TRACE_UNIT_STAMP,
                            .long_name = "bounds of the interval",
                            .doc = "Start (included) and end (excluded) of the interval."};
    struct trace_space space = {
        .rank = 2, .dims = {count, 2}, .scales = {time, &ends}, .growing = count == 0};
    hid_t dataset = trace_hdf5_column(w, group, &column, &space);
    double *buffer = memory_alloc((2 * count + 1) * sizeof *buffer);
    trace_hdf5_values(w, dataset, &column, bounds, sizeof bounds[0], 2 * count, buffer);
    free(buffer);
    trace_hdf5_dataset_close(w, dataset);
    trace_hdf5_scale_close(w, &ends);
}

static struct trace_scale time_create(struct trace_hdf5 *w, hid_t group,
                                      const struct trace_table *table)
{
    size_t count = table->row_count;
    size_t stride = table->row_size * (table->shape == TRACE_SERIES ? table->series_count : 1);
    struct column column = {.name = "time",
                            .type = COLUMN_TIME,
                            .offset = table->start_offset,
                            .unit = TRACE_UNIT_STAMP,
                            .long_name = "start of the interval",
                            .doc = "Start of the interval, UTC."};
    struct trace_scale time = coordinate_create(w, group, &column, table->rows, stride, count);
    trace_hdf5_attribute(w, time.dataset, "standard_name", "time");
    trace_hdf5_attribute(w, time.dataset, "axis", "T");
    trace_hdf5_attribute(w, time.dataset, "bounds", "time_bnds");
    int64_t *bounds = memory_alloc((2 * count + 1) * sizeof *bounds);
    for (size_t t = 0; t < count; t++) {
        const char *row = (const char *)table->rows + t * stride;
        memcpy(&bounds[2 * t], row + table->start_offset, sizeof bounds[0]);
        memcpy(&bounds[2 * t + 1], row + table->end_offset, sizeof bounds[0]);
    }
    bounds_create(w, group, &time, count, bounds);
    free(bounds);
    return time;
}

/* The dimensions of a table's columns, and their scales (to be closed by the caller). */
static struct trace_space table_space(struct trace_hdf5 *w, hid_t group,
                                      const struct trace_table *table, struct trace_scale scales[2])
{
    struct trace_space space = {.rank = 1, .dims = {table->row_count, 1}};
    switch (table->shape) {
    case TRACE_SCALARS:
        check(table->row_count == 1);
        space.rank = 0;
        return space;
    case TRACE_SERIES:
        space.rank = 2;
        space.dims[1] = table->series_count;
        scales[0] = time_create(w, group, table);
        scales[1] = labels_create(w, group, table, table->series_count);
        break;
    case TRACE_TIMES:
        scales[0] = time_create(w, group, table);
        break;
    case TRACE_LABELS:
        scales[0] = labels_create(w, group, table, table->row_count);
        break;
    case TRACE_LIST:
        scales[0] = trace_hdf5_dimension(w, group, table->dimension, table->row_count,
                                         table->row_count == 0);
        break;
    }
    for (int d = 0; d < space.rank; d++) {
        space.scales[d] = &scales[d];
    }
    /* HDF5 has no fixed dimension of length 0 that netCDF reads: an empty one may grow. */
    space.growing = table->row_count == 0;
    return space;
}

static bool table_is_small(const struct trace_table *table, size_t count)
{
    size_t bytes = 0;
    for (const struct column *c = table->columns; c->type != COLUMN_END; c++) {
        bytes += trace_hdf5_element_bytes(c->type);
    }
    return count <= TRACE_SMALL_TABLE_BYTES / bytes;
}

static void table_write(struct trace_hdf5 *w, const struct trace_table *table)
{
    /* Beside the columns there are at most time, time_bnds, nv and the labels. */
    hid_t group = trace_hdf5_group(w, table->group, table->doc, column_count(table->columns) + 4);
    struct trace_scale scales[2] = {{.dataset = -1}, {.dataset = -1}};
    struct trace_space space = table_space(w, group, table, scales);
    size_t count = table->row_count * (table->shape == TRACE_SERIES ? table->series_count : 1);
    space.small_table = table_is_small(table, count);
    void *buffer = memory_alloc((count + 1) * 8);
    for (const struct column *c = table->columns; c->type != COLUMN_END && !w->failed; c++) {
        hid_t dataset = trace_hdf5_column(w, group, c, &space);
        trace_hdf5_values(w, dataset, c, table->rows, table->row_size, count, buffer);
        trace_hdf5_dataset_close(w, dataset);
    }
    free(buffer);
    for (int d = 0; d < 2; d++) {
        trace_hdf5_scale_close(w, &scales[d]);
    }
    trace_hdf5_group_close(w, group);
}

static void scalar_write(struct trace_hdf5 *w, hid_t group, const char *name, enum column_type type,
                         const void *value, const char *doc)
{
    struct column column = {
        .name = name, .type = type, .unit = "1", .long_name = name, .doc = doc ? doc : name};
    struct trace_space space = {.rank = 0};
    uint64_t buffer;
    hid_t dataset = trace_hdf5_column(w, group, &column, &space);
    trace_hdf5_values(w, dataset, &column, value, sizeof buffer, 1, &buffer);
    trace_hdf5_dataset_close(w, dataset);
}

static void text_write(struct trace_hdf5 *w, const struct trace_text *text)
{
    const char *value = text->value ? text->value : "";
    hid_t group = trace_hdf5_group(w, text->group, NULL, 8);
    scalar_write(w, group, text->name, COLUMN_TEXT, &value, text->doc);
    trace_hdf5_group_close(w, group);
}

static void meta_write(struct trace_hdf5 *w, const struct trace_run *run)
{
    hid_t group = trace_hdf5_group(w, "meta", "What wrote the file, and from what.", 32);
    uint64_t schema = TRACE_SCHEMA_VERSION, complete = run->complete;
    char iso[TRACE_ISO_MAX];
    const char *start = trace_iso_time(run->start_unix_s, iso);
    scalar_write(w, group, "schema_version", COLUMN_UINT64, &schema,
                 "Version of the layout of this file.");
    scalar_write(w, group, "complete", COLUMN_UINT64, &complete,
                 "1 when the run ended; 0: the hours finished so far.");
    scalar_write(w, group, "start", COLUMN_TEXT, &start, "Time 0 of the run, UTC.");
    for (size_t i = 0; i < run->meta_count; i++) {
        const struct trace_meta *meta = &run->meta[i];
        if (meta->text) {
            scalar_write(w, group, meta->name, COLUMN_TEXT, &meta->text, meta->doc);
        } else {
            scalar_write(w, group, meta->name, COLUMN_UINT64, &meta->number, meta->doc);
        }
    }
    trace_hdf5_group_close(w, group);
}

void trace_tables_write(struct trace_hdf5 *w, const struct trace_run *run)
{
    trace_hdf5_attribute(w, w->file, "Conventions", "CF-1.8");
    trace_hdf5_attribute(w, w->file, "title", run->title ? run->title : "");
    trace_hdf5_attribute(w, w->file, "source", "fleetsim");
    for (size_t i = 0; i < run->table_count; i++) {
        table_write(w, &run->tables[i]);
    }
    for (size_t i = 0; i < run->text_count; i++) {
        text_write(w, &run->texts[i]);
    }
    meta_write(w, run);
}
