#include "sim/trace/trace_sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5_hl.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/trace/trace_internal.h"

enum { DIGEST_BYTES = 17, COMPRESSED_BYTES = 8192, CHUNK_ELEMENTS = 1 << 20 };

/* ---- writing ------------------------------------------------------------------------------------
 */

struct writer {
    struct trace_hdf5 w;
    hid_t group;                        /* where datasets go */
    hid_t scales[TRACE_SWEEP_RANK_MAX]; /* open; of the axes in order */
    hsize_t dims[TRACE_SWEEP_RANK_MAX];
    const char *coordinates; /* names of the other coordinates; "": none */
};

static void status_take(struct writer *s, herr_t status, const char *doing)
{
    if (status < 0)
        trace_hdf5_fail(&s->w, doing);
}

/* No stamps, attributes in their order; long ones compressed. */
static hid_t creation_make(const hsize_t *dims, size_t rank, bool text)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t elements = 1, chunk[TRACE_SWEEP_RANK_MAX];
    H5Pset_obj_track_times(create, 0);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    H5Pset_attr_phase_change(create, 64, 32);
    for (size_t d = rank; d-- > 0;) {
        chunk[d] = elements * dims[d] <= CHUNK_ELEMENTS ? dims[d] : 1;
        elements *= dims[d];
    }
    if (elements * 8 > COMPRESSED_BYTES) {
        H5Pset_chunk(create, (int)rank, chunk);
        if (!text) {
            H5Pset_shuffle(create);
            H5Pset_deflate(create, 1);
        }
    }
    return create;
}

/* A dataset on the first `rank` axes from `first`, with its values; close with
 * trace_hdf5_dataset_close. */
static hid_t dataset_make(struct writer *s, const char *name, hid_t on_disk, hid_t in_memory,
                          size_t first, size_t rank, const void *values)
{
    if (s->w.failed)
        return -1;
    hid_t create = creation_make(s->dims + first, rank, on_disk == s->w.text_type);
    hid_t space =
        rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple((int)rank, s->dims + first, NULL);
    hid_t dataset = trace_hdf5_id(
        &s->w, H5Dcreate2(s->group, name, on_disk, space, H5P_DEFAULT, create, H5P_DEFAULT),
        "creating a dataset");
    if (dataset >= 0)
        status_take(s, H5Dwrite(dataset, in_memory, H5S_ALL, H5S_ALL, s->w.transfer, values),
                    "writing a dataset");
    H5Sclose(space);
    H5Pclose(create);
    return dataset;
}

static void scales_attach(struct writer *s, hid_t dataset, size_t first, size_t rank)
{
    for (size_t d = 0; d < rank && !s->w.failed; d++)
        status_take(s, H5DSattach_scale(dataset, s->scales[first + d], (unsigned)d),
                    "attaching a scale");
}

/* Empty texts make no attribute. */
static void attribute_put(struct writer *s, hid_t object, const char *name, const char *text)
{
    if (text && text[0])
        trace_hdf5_attribute(&s->w, object, name, text);
}

static hid_t column_make(struct writer *s, const struct trace_sweep_column *column, size_t axis)
{
    bool numbers = column->numbers != NULL;
    hid_t dataset = numbers ? dataset_make(s, column->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, axis,
                                           1, column->numbers)
                            : dataset_make(s, column->name, s->w.text_type, s->w.text_type, axis, 1,
                                           column->labels);
    if (numbers)
        attribute_put(s, dataset, "units", column->unit);
    attribute_put(s, dataset, "long_name", column->long_name);
    attribute_put(s, dataset, "key", column->key);
    return dataset;
}

static void axes_write(struct writer *s, const struct trace_sweep *sweep, struct arena *arena)
{
    s->coordinates = "";
    check(sweep->axis_count <= TRACE_SWEEP_RANK_MAX);
    for (size_t a = 0; a < sweep->axis_count; a++)
        s->dims[a] = sweep->axes[a].length;
    for (size_t a = 0; a < sweep->axis_count && !s->w.failed; a++) {
        const struct trace_sweep_axis *axis = &sweep->axes[a];
        s->scales[a] = column_make(s, &axis->columns[0], a);
        if (!s->w.failed)
            status_take(s, H5DSset_scale(s->scales[a], axis->name), "making a scale");
    }
    for (size_t a = 0; a < sweep->axis_count && !s->w.failed; a++) {
        const struct trace_sweep_axis *axis = &sweep->axes[a];
        for (size_t c = 1; c < axis->column_count; c++) {
            hid_t dataset = column_make(s, &axis->columns[c], a);
            scales_attach(s, dataset, a, 1);
            trace_hdf5_dataset_close(&s->w, dataset);
            s->coordinates = arena_printf(arena, "%s%s%s", s->coordinates,
                                          s->coordinates[0] ? " " : "", axis->columns[c].name);
        }
    }
}

static void variable_write(struct writer *s, const struct trace_sweep_variable *variable)
{
    hid_t dataset = dataset_make(s, variable->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 0,
                                 variable->rank, variable->values);
    attribute_put(s, dataset, "units", variable->unit);
    attribute_put(s, dataset, "long_name", variable->long_name);
    attribute_put(s, dataset, "description", variable->doc);
    attribute_put(s, dataset, "coordinates", s->coordinates);
    scales_attach(s, dataset, 0, variable->rank);
    trace_hdf5_dataset_close(&s->w, dataset);
}

static void flags_write(struct writer *s, hid_t dataset)
{
    static const int32_t values[] = {TRACE_SWEEP_DONE, TRACE_SWEEP_FAILED, TRACE_SWEEP_MISSING};
    hsize_t three = 3;
    hid_t space = H5Screate_simple(1, &three, NULL);
    hid_t attribute = trace_hdf5_id(
        &s->w, H5Acreate2(dataset, "flag_values", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT),
        "creating an attribute");
    if (attribute >= 0) {
        status_take(s, H5Awrite(attribute, H5T_NATIVE_INT32, values), "writing an attribute");
        H5Aclose(attribute);
    }
    H5Sclose(space);
    attribute_put(s, dataset, "flag_meanings", "done failed missing");
}

static void status_write(struct writer *s, const struct trace_sweep *sweep)
{
    hid_t dataset = dataset_make(s, "status", H5T_STD_I32LE, H5T_NATIVE_INT32, 0, sweep->axis_count,
                                 sweep->status);
    attribute_put(s, dataset, "long_name", "what became of the run");
    attribute_put(
        s, dataset, "description",
        "0: done; 1: failed; 2: missing, not run or not up to date. Every output of a run "
        "that is not done is NaN.");
    if (!s->w.failed)
        flags_write(s, dataset);
    attribute_put(s, dataset, "coordinates", s->coordinates);
    scales_attach(s, dataset, 0, sweep->axis_count);
    trace_hdf5_dataset_close(&s->w, dataset);
    dataset = dataset_make(s, "digest", s->w.text_type, s->w.text_type, 0, sweep->axis_count,
                           sweep->digests);
    attribute_put(s, dataset, "long_name", "fingerprint of everything that happened in the run");
    attribute_put(s, dataset, "coordinates", s->coordinates);
    scales_attach(s, dataset, 0, sweep->axis_count);
    trace_hdf5_dataset_close(&s->w, dataset);
}

static void table_write(struct writer *s, const struct trace_sweep_table *table)
{
    hid_t root = s->group;
    s->group = trace_hdf5_group(&s->w, table->group, table->doc, table->column_count + 1);
    s->dims[0] = table->rows;
    s->coordinates = "";
    struct trace_sweep_column own = {
        .name = table->dimension, .long_name = table->dimension, .labels = table->labels};
    s->scales[0] = column_make(s, &own, 0);
    if (!s->w.failed)
        status_take(s, H5DSset_scale(s->scales[0], table->dimension), "making a scale");
    for (size_t c = 0; c < table->column_count; c++)
        variable_write(s, &table->columns[c]);
    trace_hdf5_dataset_close(&s->w, s->scales[0]);
    trace_hdf5_group_close(&s->w, s->group);
    s->group = root;
}

static void scalar_write(struct writer *s, const char *name, const char *text, uint64_t number,
                         const char *doc)
{
    hid_t dataset = text ? dataset_make(s, name, s->w.text_type, s->w.text_type, 0, 0, &text)
                         : dataset_make(s, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, 0, 0, &number);
    attribute_put(s, dataset, "long_name", name);
    attribute_put(s, dataset, "description", doc);
    trace_hdf5_dataset_close(&s->w, dataset);
}

static void meta_write(struct writer *s, const struct trace_sweep *sweep)
{
    hid_t root = s->group;
    for (size_t i = 0; i < sweep->text_count; i++) {
        const struct trace_text *text = &sweep->texts[i];
        s->group = trace_hdf5_group(&s->w, text->group, NULL, 8);
        scalar_write(s, text->name, text->value ? text->value : "", 0, text->doc);
        trace_hdf5_group_close(&s->w, s->group);
    }
    s->group = trace_hdf5_group(&s->w, "meta", "What wrote the file, and from what.", 16);
    scalar_write(s, "schema_version", NULL, TRACE_SCHEMA_VERSION,
                 "Version of the layout of this file.");
    for (size_t i = 0; i < sweep->meta_count; i++)
        scalar_write(s, sweep->meta[i].name, sweep->meta[i].text, sweep->meta[i].number,
                     sweep->meta[i].doc);
    trace_hdf5_group_close(&s->w, s->group);
    s->group = root;
}

static void all_write(struct writer *s, const struct trace_sweep *sweep, struct arena *arena)
{
    s->group = s->w.file;
    trace_hdf5_attribute(&s->w, s->w.file, "Conventions", "CF-1.8");
    trace_hdf5_attribute(&s->w, s->w.file, "title", sweep->title ? sweep->title : "");
    trace_hdf5_attribute(&s->w, s->w.file, "source", "fleetsim");
    axes_write(s, sweep, arena);
    for (size_t i = 0; i < sweep->variable_count && !s->w.failed; i++)
        variable_write(s, &sweep->variables[i]);
    status_write(s, sweep);
    for (size_t a = 0; a < sweep->axis_count; a++)
        trace_hdf5_dataset_close(&s->w, s->scales[a]);
    if (sweep->table)
        table_write(s, sweep->table);
    meta_write(s, sweep);
}

bool trace_sweep_write(const struct trace_sweep *sweep, const char *path, struct errors *errors)
{
    struct writer s = {0};
    struct arena arena;
    arena_init(&arena);
    for (size_t a = 0; a < TRACE_SWEEP_RANK_MAX; a++)
        s.scales[a] = -1;
    trace_hdf5_open(&s.w, NULL, 0);
    if (!s.w.failed)
        all_write(&s, sweep, &arena);
    arena_free(&arena);
    return trace_image_replace(&s.w, path, errors);
}

/* ---- reading ------------------------------------------------------------------------------------
 */

/* A file in memory: nothing is locked, and nothing on disk can change under it. */
static hid_t image_open(const void *image, size_t size)
{
    (void)H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, 0);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    hid_t file = -1;
    if (size > 0 && H5Pset_file_image(access, (void *)(uintptr_t)image, size) >= 0)
        file = H5Fopen("in memory", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

/* The first value of a dataset, as a double; NaN: it is not there or undefined. */
static double first_value(hid_t group, const struct column *column)
{
    if (H5Lexists(group, column->name, H5P_DEFAULT) <= 0)
        return NAN;
    double value = NAN;
    hid_t dataset = H5Dopen2(group, column->name, H5P_DEFAULT);
    hid_t space = dataset >= 0 ? H5Dget_space(dataset) : -1;
    hssize_t count = space >= 0 ? H5Sget_simple_extent_npoints(space) : 0;
    if (count > 0) {
        double *values = memory_alloc((size_t)count * sizeof *values);
        if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0)
            value = values[0];
        free(values);
    }
    if (space >= 0)
        H5Sclose(space);
    if (dataset >= 0)
        H5Dclose(dataset);
    bool undefined = (column->type == COLUMN_INT32 && value < 0) ||
                     (column->type == COLUMN_INT64 && value <= (double)COLUMN_INT_NONE);
    return undefined ? NAN : value;
}

static bool meta_read(hid_t file, char *digest)
{
    uint64_t complete = 0;
    char *text = NULL;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t whole = H5Dopen2(file, "meta/complete", H5P_DEFAULT);
    hid_t print = H5Dopen2(file, "meta/digest", H5P_DEFAULT);
    bool ok = whole >= 0 && print >= 0 &&
              H5Dread(whole, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &complete) >= 0 &&
              H5Dread(print, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0;
    if (ok && text)
        snprintf(digest, DIGEST_BYTES, "%s", text);
    ok = ok && complete == 1 && text;
    if (text)
        H5free_memory(text);
    if (whole >= 0)
        H5Dclose(whole);
    if (print >= 0)
        H5Dclose(print);
    H5Tclose(type);
    return ok;
}

bool trace_sweep_read(const void *image, size_t size, const struct column *const *columns,
                      size_t count, double *values, char *digest)
{
    hid_t file = image_open(image, size);
    if (file < 0)
        return false;
    hid_t group = H5Gopen2(file, "summary", H5P_DEFAULT);
    bool ok = group >= 0 && meta_read(file, digest);
    for (size_t i = 0; ok && i < count; i++)
        values[i] = first_value(group, columns[i]);
    if (group >= 0)
        H5Gclose(group);
    H5Fclose(file);
    return ok;
}
