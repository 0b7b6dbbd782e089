#include "sim/trace/trace_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/time.h"
#include "sim/trace/trace_internal.h"

/* No table of a run is larger; one that claims to be is damaged. */
enum { READ_ROWS_MAX = 1 << 26 };
#define READ_BYTES_MAX ((size_t)1 << 32)

struct trace_read {
    hid_t file, text_type;
    struct arena arena;
    char *path; /* arena */
};

/* ---- opening ------------------------------------------------------------------------------------
 */

static void open_error(const char *path, struct errors *errors)
{
    int reason = errno;
    struct stat status;
    char *partial = trace_file_partial(path);
    if (reason == ENOENT && stat(partial, &status) == 0)
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "cannot open %s: %s; %s holds the finished hours of a run that has not ended",
                   path, strerror(reason), partial);
    else
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot open %s: %s", path, strerror(reason));
    free(partial);
}

/* Whether it is worth opening as HDF5. */
static bool kind_check(const char *path, struct errors *errors)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        open_error(path, errors);
        return false;
    }
    const char *fault = NULL;
    if (S_ISDIR(status.st_mode))
        fault = "it is a folder, not a result file";
    else if (!S_ISREG(status.st_mode))
        fault = "it is a device or a pipe, not a result file";
    else if (status.st_size == 0)
        fault = "it is empty";
    else if (H5Fis_hdf5(path) == 0)
        fault = "it is no HDF5 file, as a result file is";
    if (fault)
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: %s", path, fault);
    return !fault;
}

static bool schema_check(struct trace_read *file, struct errors *errors)
{
    uint64_t schema;
    if (!trace_read_has_group(file, "meta") ||
        !trace_read_number(file, "meta/schema_version", &schema)) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "cannot read %s: fleetsim did not write it (it has no meta/schema_version)",
                   file->path);
        return false;
    }
    if (schema != TRACE_SCHEMA_VERSION) {
        const char *version = trace_read_text(file, "meta/version");
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "cannot read %s: its schema version is %llu, this program reads %d; fleetsim %s "
                   "wrote it",
                   file->path, (unsigned long long)schema, TRACE_SCHEMA_VERSION,
                   version ? version : "of another version");
        return false;
    }
    return true;
}

struct trace_read *trace_read_open(const char *path, struct errors *errors)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!kind_check(path, errors))
        return NULL;
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (id < 0) {
        struct trace_hdf5 reason = {.failed = false};
        trace_hdf5_fail(&reason, "opening the file");
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: it is cut short or damaged (%s)",
                   path, reason.why);
        return NULL;
    }
    struct trace_read *file = memory_zero(1, sizeof *file);
    arena_init(&file->arena);
    file->file = id;
    file->path = arena_copy(&file->arena, path);
    file->text_type = H5Tcopy(H5T_C_S1);
    H5Tset_size(file->text_type, H5T_VARIABLE);
    H5Tset_cset(file->text_type, H5T_CSET_UTF8);
    if (!schema_check(file, errors)) {
        trace_read_close(file);
        return NULL;
    }
    return file;
}

void trace_read_close(struct trace_read *file)
{
    if (!file)
        return;
    H5Tclose(file->text_type);
    H5Fclose(file->file);
    arena_free(&file->arena);
    free(file);
}

bool trace_read_has_group(struct trace_read *file, const char *group)
{
    return H5Lexists(file->file, group, H5P_DEFAULT) > 0;
}

/* ---- scalars ------------------------------------------------------------------------------------
 */

/* A dataset by its path; < 0: there is none. */
static hid_t dataset_open(hid_t at, const char *name)
{
    const char *slash = strchr(name, '/');
    if (slash) {
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)(slash - name), name);
        if (H5Lexists(at, group, H5P_DEFAULT) <= 0)
            return -1;
    }
    return H5Lexists(at, name, H5P_DEFAULT) > 0 ? H5Dopen2(at, name, H5P_DEFAULT) : -1;
}

static H5T_class_t class_of(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    H5T_class_t class = H5Tget_class(type);
    if (class == H5T_STRING && H5Tis_variable_str(type) <= 0)
        class = H5T_NO_CLASS;
    H5Tclose(type);
    return class;
}

/* The extent of a dataset as rows × columns; false when it has none such. */
static bool extent_of(hid_t dataset, int rank, hsize_t dims[2])
{
    hid_t space = H5Dget_space(dataset);
    dims[0] = dims[1] = 1;
    bool ok = H5Sget_simple_extent_ndims(space) == rank &&
              (rank == 0 || H5Sget_simple_extent_dims(space, dims, NULL) == rank) &&
              dims[0] <= READ_ROWS_MAX && dims[1] <= READ_ROWS_MAX &&
              dims[0] * dims[1] <= READ_ROWS_MAX;
    H5Sclose(space);
    return ok;
}

/* Copies of count texts of a dataset that has as many. */
static const char **texts_read(struct trace_read *file, hid_t dataset, size_t count)
{
    const char **texts = arena_alloc(&file->arena, (count + 1) * sizeof *texts);
    char **raw = memory_zero(count + 1, sizeof *raw);
    bool ok =
        class_of(dataset) == H5T_STRING &&
        (count == 0 || H5Dread(dataset, file->text_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) >= 0);
    for (size_t i = 0; ok && i < count; i++)
        texts[i] = arena_copy(&file->arena, raw[i] ? raw[i] : "");
    for (size_t i = 0; ok && i < count; i++)
        H5free_memory(raw[i]);
    free(raw);
    return ok ? texts : NULL;
}

const char *trace_read_text(struct trace_read *file, const char *name)
{
    hsize_t dims[2];
    hid_t dataset = dataset_open(file->file, name);
    if (dataset < 0)
        return NULL;
    const char **texts = extent_of(dataset, 0, dims) ? texts_read(file, dataset, 1) : NULL;
    H5Dclose(dataset);
    return texts ? texts[0] : NULL;
}

bool trace_read_number(struct trace_read *file, const char *name, uint64_t *value)
{
    hsize_t dims[2];
    hid_t dataset = dataset_open(file->file, name);
    if (dataset < 0)
        return false;
    bool ok = extent_of(dataset, 0, dims) && class_of(dataset) == H5T_INTEGER &&
              H5Dread(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0;
    H5Dclose(dataset);
    return ok;
}

const char *trace_read_title(struct trace_read *file)
{
    const char *title = "";
    if (H5Aexists(file->file, "title") <= 0)
        return title;
    hid_t attribute = H5Aopen(file->file, "title", H5P_DEFAULT), type = H5Aget_type(attribute);
    size_t size = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && size < 65536) {
        char *text = arena_alloc(&file->arena, size + 1);
        if (H5Aread(attribute, type, text) >= 0)
            title = text;
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return title;
}

/* ---- tables -------------------------------------------------------------------------------------
 */

static int64_t time_of(double seconds)
{
    if (!(fabs(seconds) < 9.2e6)) /* NaN too; the longest run is 100 days and its drain */
        return TIME_NONE;
    double whole = floor(seconds);
    return (int64_t)whole * PS_PER_SECOND + llround((seconds - whole) * 1e12);
}

static void undefined_fill(const struct column *column, char *at)
{
    int64_t none = column->type == COLUMN_TIME ? TIME_NONE : COLUMN_INT_NONE;
    int32_t narrow = -1;
    double nan = NAN;
    if (column->type == COLUMN_TIME || column->type == COLUMN_INT64)
        memcpy(at, &none, sizeof none);
    else if (column->type == COLUMN_INT32)
        memcpy(at, &narrow, sizeof narrow);
    else if (column->type == COLUMN_DOUBLE)
        memcpy(at, &nan, sizeof nan);
}

/* Values as they lie in memory, one after another; for times doubles. */
static bool numbers_read(hid_t dataset, enum column_type type, void *buffer)
{
    bool real = type == COLUMN_DOUBLE || type == COLUMN_TIME;
    hid_t memory = type == COLUMN_INT64    ? H5T_NATIVE_INT64
                   : type == COLUMN_UINT64 ? H5T_NATIVE_UINT64
                   : type == COLUMN_INT32  ? H5T_NATIVE_INT32
                   : type == COLUMN_UINT32 ? H5T_NATIVE_UINT32
                                           : H5T_NATIVE_DOUBLE;
    return class_of(dataset) == (real ? H5T_FLOAT : H5T_INTEGER) &&
           H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0;
}

static bool column_read(struct trace_read *file, hid_t dataset, const struct column *column,
                        char *rows, size_t row_size, size_t count)
{
    char *at = rows + column->offset;
    if (column->type == COLUMN_TEXT) {
        const char **texts = texts_read(file, dataset, count);
        for (size_t i = 0; texts && i < count; i++, at += row_size)
            memcpy(at, &texts[i], sizeof texts[i]);
        return texts != NULL;
    }
    size_t size = column->type == COLUMN_INT32 || column->type == COLUMN_UINT32 ? 4 : 8;
    char *buffer = memory_zero(count + 1, 8);
    bool ok = count == 0 || numbers_read(dataset, column->type, buffer);
    for (size_t i = 0; ok && i < count; i++, at += row_size) {
        if (column->type == COLUMN_TIME) {
            double seconds;
            memcpy(&seconds, buffer + i * 8, sizeof seconds);
            int64_t ps = time_of(seconds);
            memcpy(at, &ps, sizeof ps);
        } else {
            memcpy(at, buffer + i * size, size);
        }
    }
    free(buffer);
    return ok;
}

/* The dimensions all columns of the group share, by the first one that is there. */
static bool dims_find(hid_t group, const struct trace_table *table, hsize_t dims[2])
{
    bool found = false;
    int rank = table->shape == TRACE_SERIES ? 2 : table->shape == TRACE_SCALARS ? 0 : 1;
    for (const struct column *c = table->columns; !found && c->type != COLUMN_END; c++) {
        hid_t dataset = dataset_open(group, c->name);
        found = dataset >= 0 && extent_of(dataset, rank, dims);
        if (dataset >= 0)
            H5Dclose(dataset);
    }
    return found;
}

static bool columns_read(struct trace_read *file, hid_t group, const struct trace_table *table,
                         const hsize_t dims[2], char *rows)
{
    int rank = table->shape == TRACE_SERIES ? 2 : table->shape == TRACE_SCALARS ? 0 : 1;
    size_t count = (size_t)(dims[0] * dims[1]);
    bool ok = true;
    for (const struct column *c = table->columns; ok && c->type != COLUMN_END; c++) {
        hsize_t own[2];
        hid_t dataset = dataset_open(group, c->name);
        if (dataset < 0) {
            for (size_t i = 0; i < count; i++)
                undefined_fill(c, rows + i * table->row_size + c->offset);
            continue;
        }
        ok = extent_of(dataset, rank, own) && own[0] == dims[0] && own[1] == dims[1] &&
             column_read(file, dataset, c, rows, table->row_size, count);
        H5Dclose(dataset);
    }
    return ok;
}

/* Start and end of the intervals, into every series' row. */
static bool bounds_read(hid_t group, const struct trace_table *table, const hsize_t dims[2],
                        char *rows)
{
    hsize_t own[2];
    hid_t dataset = dataset_open(group, "time_bnds");
    if (dataset < 0)
        return false;
    double *bounds = memory_zero((size_t)dims[0] + 1, 2 * sizeof *bounds);
    bool ok = extent_of(dataset, 2, own) && own[0] == dims[0] && own[1] == 2 &&
              (dims[0] == 0 || numbers_read(dataset, COLUMN_DOUBLE, bounds));
    for (size_t i = 0; ok && i < dims[0] * dims[1]; i++) {
        size_t t = i / (size_t)dims[1];
        int64_t start = time_of(bounds[2 * t]), end = time_of(bounds[2 * t + 1]);
        memcpy(rows + i * table->row_size + table->start_offset, &start, sizeof start);
        memcpy(rows + i * table->row_size + table->end_offset, &end, sizeof end);
    }
    free(bounds);
    H5Dclose(dataset);
    return ok;
}

static bool names_read(struct trace_read *file, hid_t group, const struct trace_table *table,
                       size_t count, struct trace_rows *rows)
{
    hsize_t dims[2];
    hid_t dataset = dataset_open(group, table->dimension);
    if (dataset < 0)
        return false;
    if (extent_of(dataset, 1, dims) && dims[0] == count)
        rows->names = texts_read(file, dataset, count);
    H5Dclose(dataset);
    return rows->names != NULL;
}

static bool group_read(struct trace_read *file, hid_t group, const struct trace_table *table,
                       struct trace_rows *rows)
{
    hsize_t dims[2];
    if (!dims_find(group, table, dims) ||
        dims[0] * dims[1] > READ_BYTES_MAX / (table->row_size + 8))
        return false;
    size_t count = (size_t)(dims[0] * dims[1]);
    *rows = (struct trace_rows){.rows = arena_alloc(&file->arena, count * table->row_size),
                                .row_count = (size_t)dims[0],
                                .series_count = (size_t)dims[1]};
    bool timed = table->shape == TRACE_SERIES || table->shape == TRACE_TIMES;
    bool named = table->shape == TRACE_SERIES || table->shape == TRACE_LABELS;
    return columns_read(file, group, table, dims, rows->rows) &&
           (!timed || bounds_read(group, table, dims, rows->rows)) &&
           (!named ||
            names_read(file, group, table,
                       table->shape == TRACE_SERIES ? rows->series_count : rows->row_count, rows));
}

bool trace_read_table(struct trace_read *file, const struct trace_table *table,
                      struct trace_rows *rows, struct errors *errors)
{
    *rows = (struct trace_rows){0};
    hid_t group = trace_read_has_group(file, table->group)
                      ? H5Gopen2(file->file, table->group, H5P_DEFAULT)
                      : -1;
    bool ok = group >= 0 && group_read(file, group, table, rows);
    if (!ok)
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: its group %s is %s", file->path,
                   table->group, group < 0 ? "missing" : "damaged");
    if (group >= 0)
        H5Gclose(group);
    return ok;
}
