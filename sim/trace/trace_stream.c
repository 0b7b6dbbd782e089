/* A file with one group of rows that arrive one at a time: buffered by chunk, then one write per
 * column and chunk, so that time is linear in rows and each chunk is compressed once. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/trace/trace_internal.h"

struct trace_stream {
    struct trace_hdf5 w;
    const struct column *columns; /* borrowed */
    size_t column_count, row_size;
    hid_t group;
    struct trace_scale dimension;
    hid_t *datasets;        /* owned; [column_count] */
    char *path, *temporary; /* owned */
    char *rows;             /* owned; TRACE_CHUNK_ROWS rows */
    void *buffer;           /* owned; one column of them */
    size_t filled, written;
};

static void datasets_create(struct trace_stream *s, const struct trace_stream_config *config)
{
    s->group = trace_hdf5_group(&s->w, config->group, config->doc, s->column_count + 1);
    s->dimension = trace_hdf5_dimension(&s->w, s->group, config->dimension, 0, true);
    struct trace_space space = {
        .rank = 1, .dims = {0, 1}, .scales = {&s->dimension, NULL}, .growing = true};
    for (size_t c = 0; c < s->column_count; c++) {
        check(s->columns[c].type != COLUMN_TEXT);
        s->datasets[c] = trace_hdf5_column(&s->w, s->group, &s->columns[c], &space);
    }
}

struct trace_stream *trace_stream_open(const char *path, bool force,
                                       const struct trace_stream_config *config,
                                       struct errors *errors)
{
    if (!trace_target_check(path, force, errors)) {
        return NULL;
    }
    struct trace_stream *s = memory_zero(1, sizeof *s);
    s->columns = config->columns;
    s->column_count = column_count(config->columns);
    s->row_size = config->row_size;
    s->datasets = memory_alloc((s->column_count + 1) * sizeof *s->datasets);
    s->rows = memory_alloc(TRACE_CHUNK_ROWS * config->row_size);
    s->buffer = memory_alloc((size_t)TRACE_CHUNK_ROWS * 8);
    size_t length = strlen(path) + 1;
    s->path = memory_alloc(length);
    memcpy(s->path, path, length);
    s->temporary = trace_file_temporary(path);
    for (size_t c = 0; c < s->column_count; c++) {
        s->datasets[c] = -1;
    }
    trace_hdf5_open(&s->w, s->temporary, config->start_unix_s);
    datasets_create(s, config);
    if (s->w.failed) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, s->w.why);
        trace_stream_abort(s);
        return NULL;
    }
    return s;
}

static void rows_flush(struct trace_stream *s)
{
    for (size_t c = 0; c < s->column_count; c++) {
        trace_hdf5_append(&s->w, s->datasets[c], &s->columns[c], s->rows, s->row_size, s->written,
                          s->filled, s->buffer);
    }
    s->written += s->filled;
    s->filled = 0;
}

void trace_stream_append(struct trace_stream *s, const void *row)
{
    if (s->w.failed) {
        return;
    }
    memcpy(s->rows + s->filled * s->row_size, row, s->row_size);
    s->filled++;
    if (s->filled == TRACE_CHUNK_ROWS) {
        rows_flush(s);
    }
}

/* The dimension gets the length it turned out to have. */
static void datasets_close(struct trace_stream *s)
{
    hsize_t length = s->written;
    if (!s->w.failed && H5Dset_extent(s->dimension.dataset, &length) < 0) {
        trace_hdf5_fail(&s->w, "growing a dimension");
    }
    for (size_t c = 0; c < s->column_count; c++) {
        trace_hdf5_dataset_close(&s->w, s->datasets[c]);
    }
    trace_hdf5_scale_close(&s->w, &s->dimension);
    trace_hdf5_group_close(&s->w, s->group);
}

static void stream_free(struct trace_stream *s)
{
    free(s->datasets);
    free(s->rows);
    free(s->buffer);
    free(s->path);
    free(s->temporary);
    free(s);
}

bool trace_stream_close(struct trace_stream *s, const struct trace_run *run, struct errors *errors)
{
    rows_flush(s);
    datasets_close(s);
    trace_tables_write(&s->w, run);
    trace_hdf5_close(&s->w);
    bool ok = !s->w.failed;
    if (!ok) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", s->path, s->w.why);
        unlink(s->temporary);
    }
    ok = ok && trace_file_commit(s->path, s->temporary, errors);
    if (ok) {
        trace_partial_remove(s->path);
    }
    stream_free(s);
    return ok;
}

void trace_stream_abort(struct trace_stream *s)
{
    if (!s) {
        return;
    }
    datasets_close(s);
    trace_hdf5_close(&s->w);
    unlink(s->temporary);
    stream_free(s);
}
