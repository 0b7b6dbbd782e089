/* HDF5 as netCDF-4 wants it: dimension scales, attributes, no times of creation, no printed error
 * stack. Every call is a no-op once one has failed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/time.h"
#include "sim/trace/trace_internal.h"

enum {
    CONVERSION_BYTES = 8192,
    /* Freed blocks that the library keeps, of all sizes together: it looks through the sizes one
     * by one, and nearly every header has its own. */
    FREE_BLOCKS_BYTES = 16384,
    IMAGE_STEP_BYTES =
        384 * 1024, /* by which a file in memory grows: the usual one fits; cleared at once */
};

/* --- failures -----------------------------------------------------------------------------------
 */

/* The innermost record of the stack knows best; the file drivers quote the system's reason there.
 */
static herr_t reason_take(unsigned n, const H5E_error2_t *record, void *to)
{
    (void)n;
    char *why = to;
    const char *quoted = record->desc ? strstr(record->desc, "error message = '") : NULL;
    if (quoted) {
        quoted += strlen("error message = '");
        snprintf(why, TRACE_WHY_MAX, "%.*s", (int)strcspn(quoted, "'"), quoted);
        return 1;
    }
    if (why[0] == '\0' && record->desc) {
        snprintf(why, TRACE_WHY_MAX, "%s", record->desc);
    }
    return 0;
}

void trace_hdf5_fail(struct trace_hdf5 *w, const char *doing)
{
    if (w->failed) {
        return;
    }
    w->failed = true;
    w->why[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, reason_take, w->why);
    if (w->why[0] == '\0') {
        snprintf(w->why, sizeof w->why, "HDF5 failed: %s", doing);
    }
}

hid_t trace_hdf5_id(struct trace_hdf5 *w, hid_t id, const char *doing)
{
    if (id < 0) {
        trace_hdf5_fail(w, doing);
    }
    return id;
}

static void status_take(struct trace_hdf5 *w, herr_t status, const char *doing)
{
    if (status < 0) {
        trace_hdf5_fail(w, doing);
    }
}

/* --- files and groups ---------------------------------------------------------------------------
 */

/* Creation of a dataset: no stamps. The order of its attributes is not tracked: that would ask for
 * newer headers, which cost more each time one is touched. */
static hid_t creation_make(void)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, 0);
    return create;
}

static void fill_set(hid_t create, enum trace_fill fill)
{
    int64_t wide = COLUMN_INT_NONE;
    int32_t narrow = -1;
    if (fill == TRACE_FILL_INT64) {
        H5Pset_fill_value(create, H5T_NATIVE_INT64, &wide);
    } else if (fill == TRACE_FILL_INT32) {
        H5Pset_fill_value(create, H5T_NATIVE_INT32, &narrow);
    }
}

static void shared_create(struct trace_hdf5 *w)
{
    hsize_t one = 1, two = 2;
    w->text_type = H5Tcopy(H5T_C_S1);
    H5Tset_size(w->text_type, H5T_VARIABLE);
    H5Tset_cset(w->text_type, H5T_CSET_UTF8);
    w->list_type = H5Tvlen_create(H5T_STD_REF_OBJ);
    w->scalar = H5Screate(H5S_SCALAR);
    w->single = H5Screate_simple(1, &one, NULL);
    w->pair = H5Screate_simple(1, &two, NULL);
    /* Every text would clear the library's buffer of 1 MiB; numbers need no conversion. */
    w->transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_buffer(w->transfer, CONVERSION_BYTES, NULL, NULL);
    for (int fill = 0; fill < TRACE_FILL_COUNT; fill++) {
        w->small[fill] = creation_make();
        H5Pset_layout(w->small[fill], H5D_COMPACT);
        fill_set(w->small[fill], (enum trace_fill)fill);
    }
}

static void shared_free(struct trace_hdf5 *w)
{
    H5Tclose(w->text_type);
    for (size_t size = 0; size < TRACE_ATTRIBUTE_TYPES; size++) {
        if (w->attribute_types[size] > 0) {
            H5Tclose(w->attribute_types[size]);
        }
    }
    H5Tclose(w->list_type);
    H5Sclose(w->scalar);
    H5Sclose(w->single);
    H5Sclose(w->pair);
    if (w->shape > 0) {
        H5Sclose(w->shape);
    }
    H5Pclose(w->transfer);
    for (int fill = 0; fill < TRACE_FILL_COUNT; fill++) {
        H5Pclose(w->small[fill]);
    }
}

/* Members in the order of their making, listed in the group's own header. */
static void links_set(hid_t create, size_t members)
{
    H5Pset_obj_track_times(create, 0);
    H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    H5Pset_link_phase_change(create, TRACE_LINKS_MAX, TRACE_LINKS_MAX / 2);
    H5Pset_est_link_info(create, (unsigned)(members < 1000 ? members : 1000), 20);
}

void trace_hdf5_open(struct trace_hdf5 *w, const char *path, int64_t start_unix_s)
{
    *w = (struct trace_hdf5){.file = -1, .start_unix_s = start_unix_s};
    /* After a close that failed on a full disk the library's exit handler crashes; files are closed
     * here, so nothing is left for it to do. No-op after the first call. */
    (void)H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5set_free_list_limits(-1, -1, -1, -1, FREE_BLOCKS_BYTES, FREE_BLOCKS_BYTES);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    /* The oldest form of everything: it costs least and every reader knows it. */
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    /* A closed dataset is never looked at again: its memory serves the next one. */
    H5Pset_evict_on_close(access, 1);
    links_set(create, 16);
    if (!path) {
        H5Pset_fapl_core(access, IMAGE_STEP_BYTES, 0);
    }
    w->file = trace_hdf5_id(w, H5Fcreate(path ? path : "in memory", H5F_ACC_TRUNC, create, access),
                            "creating the file");
    H5Pclose(access);
    H5Pclose(create);
    shared_create(w);
}

void trace_hdf5_close(struct trace_hdf5 *w)
{
    shared_free(w);
    if (w->file >= 0) {
        status_take(w, H5Fclose(w->file), "closing the file");
    }
    w->file = -1;
}

const void *trace_hdf5_image(struct trace_hdf5 *w, size_t *size)
{
    void **bytes = NULL; /* for this driver the handle is where it keeps them */
    ssize_t length = 0;
    if (!w->failed) {
        status_take(w, H5Fflush(w->file, H5F_SCOPE_GLOBAL), "flushing");
    }
    if (!w->failed) {
        length = H5Fget_file_image(w->file, NULL, 0);
        if (length <= 0 || H5Fget_vfd_handle(w->file, H5P_DEFAULT, (void **)&bytes) < 0) {
            trace_hdf5_fail(w, "taking the file's image");
        }
    }
    *size = (size_t)length;
    return w->failed ? NULL : *bytes;
}

void trace_hdf5_dataset_close(struct trace_hdf5 *w, hid_t dataset)
{
    if (dataset >= 0) {
        status_take(w, H5Dclose(dataset), "closing a dataset");
    }
}

void trace_hdf5_group_close(struct trace_hdf5 *w, hid_t group)
{
    if (group >= 0) {
        status_take(w, H5Gclose(group), "closing a group");
    }
}

hid_t trace_hdf5_group(struct trace_hdf5 *w, const char *name, const char *doc, size_t members)
{
    if (w->failed) {
        return -1;
    }
    if (H5Lexists(w->file, name, H5P_DEFAULT) > 0) {
        return trace_hdf5_id(w, H5Gopen2(w->file, name, H5P_DEFAULT), "opening a group");
    }
    hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    links_set(create, members);
    hid_t group = trace_hdf5_id(w, H5Gcreate2(w->file, name, H5P_DEFAULT, create, H5P_DEFAULT),
                                "creating a group");
    H5Pclose(create);
    if (doc) {
        trace_hdf5_attribute(w, group, "description", doc);
    }
    return group;
}

/* --- attributes ---------------------------------------------------------------------------------
 */

static void attribute_write(struct trace_hdf5 *w, hid_t object, const char *name, hid_t on_disk,
                            hid_t in_memory, hid_t space, const void *value)
{
    if (w->failed) {
        return;
    }
    hid_t attribute =
        trace_hdf5_id(w, H5Acreate2(object, name, on_disk, space, H5P_DEFAULT, H5P_DEFAULT),
                      "creating an attribute");
    if (attribute >= 0) {
        status_take(w, H5Awrite(attribute, in_memory, value), "writing an attribute");
        H5Aclose(attribute);
    }
}

/* Valid until the next call. */
static hid_t attribute_type(struct trace_hdf5 *w, size_t size, H5T_cset_t characters)
{
    bool kept = size < TRACE_ATTRIBUTE_TYPES && characters == H5T_CSET_UTF8;
    hid_t *type = &w->attribute_types[kept ? size : 0];
    bool fresh = *type <= 0;
    if (fresh) {
        *type = H5Tcopy(H5T_C_S1);
    }
    if (fresh || !kept) {
        H5Tset_size(*type, size);
        H5Tset_cset(*type, characters);
    }
    return *type;
}

/* Fixed length: a netCDF char attribute, which every reader knows. */
static void text_attribute(struct trace_hdf5 *w, hid_t object, const char *name, const char *text,
                           size_t size, H5T_cset_t characters)
{
    hid_t type = attribute_type(w, size, characters);
    attribute_write(w, object, name, type, type, w->scalar, text);
}

void trace_hdf5_attribute(struct trace_hdf5 *w, hid_t object, const char *name, const char *text)
{
    size_t length = strlen(text);
    text_attribute(w, object, name, text, length > 0 ? length : 1, H5T_CSET_UTF8);
}

/* --- dimension scales ---------------------------------------------------------------------------
 * What the library's H5DS writes, each list at once. */

static hobj_ref_t reference_of(struct trace_hdf5 *w, hid_t dataset)
{
    hobj_ref_t reference = 0;
    if (!w->failed) {
        status_take(w, H5Rcreate(&reference, dataset, ".", H5R_OBJECT, -1),
                    "referring to a dataset");
    }
    return reference;
}

struct trace_scale trace_hdf5_scale(struct trace_hdf5 *w, hid_t dataset, const char *name)
{
    struct trace_scale scale = {.dataset = dataset};
    text_attribute(w, dataset, "CLASS", "DIMENSION_SCALE", sizeof "DIMENSION_SCALE",
                   H5T_CSET_ASCII);
    text_attribute(w, dataset, "NAME", name, strlen(name) + 1, H5T_CSET_ASCII);
    scale.reference = reference_of(w, dataset);
    return scale;
}

static void user_add(struct trace_scale *scale, hobj_ref_t dataset, int dimension)
{
    if (scale->user_count == scale->user_capacity) {
        scale->user_capacity = scale->user_capacity > 0 ? 2 * scale->user_capacity : 64;
        scale->users = memory_grow(scale->users, scale->user_capacity * sizeof scale->users[0]);
    }
    scale->users[scale->user_count++] =
        (struct trace_user){.dataset = dataset, .dimension = dimension};
}

/* DIMENSION_LIST names a dataset's scales; each scale notes the dataset. */
static void scales_attach(struct trace_hdf5 *w, hid_t dataset, const struct trace_space *space)
{
    if (space->rank == 0 || !space->scales[0] || w->failed) {
        return;
    }
    hvl_t lists[2];
    hobj_ref_t self = reference_of(w, dataset);
    for (int d = 0; d < space->rank; d++) {
        check(space->scales[d]);
        lists[d] = (hvl_t){.len = 1, .p = &space->scales[d]->reference};
        user_add(space->scales[d], self, d);
    }
    attribute_write(w, dataset, "DIMENSION_LIST", w->list_type, w->list_type,
                    space->rank == 1 ? w->single : w->pair, lists);
}

static void users_write(struct trace_hdf5 *w, const struct trace_scale *scale)
{
    hsize_t count = scale->user_count;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof scale->users[0]);
    H5Tinsert(type, "dataset", offsetof(struct trace_user, dataset), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", offsetof(struct trace_user, dimension), H5T_STD_I32LE);
    hid_t space = H5Screate_simple(1, &count, NULL);
    attribute_write(w, scale->dataset, "REFERENCE_LIST", type, type, space, scale->users);
    H5Sclose(space);
    H5Tclose(type);
}

void trace_hdf5_scale_close(struct trace_hdf5 *w, struct trace_scale *scale)
{
    if (scale->dataset < 0) {
        return;
    }
    if (scale->user_count > 0 && !w->failed) {
        users_write(w, scale);
    }
    trace_hdf5_dataset_close(w, scale->dataset);
    free(scale->users);
    *scale = (struct trace_scale){.dataset = -1};
}

/* --- columns ------------------------------------------------------------------------------------
 */

static hid_t type_on_disk(const struct trace_hdf5 *w, enum column_type type)
{
    switch (type) {
    case COLUMN_INT64:
        return H5T_STD_I64LE;
    case COLUMN_UINT64:
        return H5T_STD_U64LE;
    case COLUMN_INT32:
        return H5T_STD_I32LE;
    case COLUMN_UINT32:
        return H5T_STD_U32LE;
    case COLUMN_DOUBLE:
    case COLUMN_TIME:
        return H5T_IEEE_F64LE;
    case COLUMN_TEXT:
        return w->text_type;
    case COLUMN_END:
        break;
    }
    check_fail(__FILE__, __LINE__, "column type", "%d is no column type", (int)type);
}

static hid_t type_in_memory(const struct trace_hdf5 *w, enum column_type type)
{
    switch (type) {
    case COLUMN_INT64:
        return H5T_NATIVE_INT64;
    case COLUMN_UINT64:
        return H5T_NATIVE_UINT64;
    case COLUMN_INT32:
        return H5T_NATIVE_INT32;
    case COLUMN_UINT32:
        return H5T_NATIVE_UINT32;
    default:
        return type == COLUMN_TEXT ? w->text_type : H5T_NATIVE_DOUBLE;
    }
}

size_t trace_hdf5_element_bytes(enum column_type type)
{
    return type == COLUMN_TEXT ? 16 : type == COLUMN_INT32 || type == COLUMN_UINT32 ? 4 : 8;
}

static enum trace_fill fill_of(enum column_type type)
{
    return type == COLUMN_INT64   ? TRACE_FILL_INT64
           : type == COLUMN_INT32 ? TRACE_FILL_INT32
                                  : TRACE_FILL_NONE;
}

/* Creation of a long column: in chunks, compressed. */
static hid_t chunked_create(const struct column *column, const struct trace_space *space)
{
    hid_t create = creation_make();
    hsize_t chunk[2] = {TRACE_CHUNK_ROWS, space->rank > 1 ? space->dims[1] : 1};
    if (!space->growing && space->dims[0] < chunk[0]) {
        chunk[0] = space->dims[0];
    }
    H5Pset_chunk(create, space->rank, chunk);
    if (column->type != COLUMN_TEXT) { /* texts lie in a heap: nothing to compress here */
        H5Pset_shuffle(create);
        H5Pset_deflate(create, 1);
    }
    fill_set(create, fill_of(column->type));
    return create;
}

/* _FillValue says which integer means "undefined"; undefined doubles are NaN and need none. */
static void fill_attribute(struct trace_hdf5 *w, hid_t dataset, enum column_type type)
{
    int64_t wide = COLUMN_INT_NONE;
    int32_t narrow = -1;
    enum trace_fill fill = fill_of(type);
    if (fill != TRACE_FILL_NONE) {
        attribute_write(w, dataset, "_FillValue", type_on_disk(w, type), type_in_memory(w, type),
                        w->single,
                        fill == TRACE_FILL_INT64 ? (const void *)&wide : (const void *)&narrow);
    }
}

static void column_attributes(struct trace_hdf5 *w, hid_t dataset, const struct column *column)
{
    if (strcmp(column->unit, TRACE_UNIT_STAMP) == 0) {
        char iso[TRACE_ISO_MAX], units[TRACE_ISO_MAX + 16];
        trace_iso_time(w->start_unix_s, iso);
        snprintf(units, sizeof units, "seconds since %.10s %.8s", iso, iso + 11);
        trace_hdf5_attribute(w, dataset, "units", units);
        trace_hdf5_attribute(w, dataset, "calendar", "standard");
    } else if (column->type != COLUMN_TEXT) {
        trace_hdf5_attribute(w, dataset, "units", column->unit);
    }
    trace_hdf5_attribute(w, dataset, "long_name", column->long_name);
    trace_hdf5_attribute(w, dataset, "description", column->doc);
    fill_attribute(w, dataset, column->type);
}

/* The shape of a column, as a space: the one of the column before, as nearly always. */
static hid_t shape_of(struct trace_hdf5 *w, const struct trace_space *space)
{
    if (space->rank == 0) {
        return w->scalar;
    }
    const struct trace_space *last = &w->shape_of;
    if (w->shape > 0) {
        if (last->rank == space->rank && last->growing == space->growing &&
            last->dims[0] == space->dims[0] && last->dims[1] == space->dims[1]) {
            return w->shape;
        }
        H5Sclose(w->shape);
    }
    hsize_t limits[2] = {space->growing ? H5S_UNLIMITED : space->dims[0], space->dims[1]};
    w->shape = H5Screate_simple(space->rank, space->dims, limits);
    w->shape_of = *space;
    return w->shape;
}

hid_t trace_hdf5_column(struct trace_hdf5 *w, hid_t group, const struct column *column,
                        const struct trace_space *space)
{
    if (w->failed) {
        return -1;
    }
    hsize_t elements = space->rank > 0 ? space->dims[0] : 1;
    elements *= space->rank > 1 ? space->dims[1] : 1;
    hsize_t plain = space->small_table ? TRACE_MEDIUM_BYTES : TRACE_SMALL_BYTES;
    bool chunked = space->rank > 0 &&
                   (space->growing || elements * trace_hdf5_element_bytes(column->type) > plain);
    hid_t create = chunked ? chunked_create(column, space) : w->small[fill_of(column->type)];
    hid_t dataset = trace_hdf5_id(w,
                                  H5Dcreate2(group, column->name, type_on_disk(w, column->type),
                                             shape_of(w, space), H5P_DEFAULT, create, H5P_DEFAULT),
                                  "creating a dataset");
    if (chunked) {
        H5Pclose(create);
    }
    column_attributes(w, dataset, column);
    scales_attach(w, dataset, space);
    return dataset;
}

/* One column of rows, side by side in buffer; durations and stamps in seconds. */
static void column_gather(const struct column *column, const void *rows, size_t row_size,
                          size_t count, void *buffer)
{
    const char *at = (const char *)rows + column->offset;
    size_t size = column->type == COLUMN_INT32 || column->type == COLUMN_UINT32 ? 4 : 8;
    for (size_t i = 0; i < count; i++, at += row_size) {
        if (column->type == COLUMN_TIME) {
            int64_t ps;
            memcpy(&ps, at, sizeof ps);
            ((double *)buffer)[i] = ps == TIME_NONE ? NAN : time_seconds(ps);
        } else if (column->type == COLUMN_TEXT) {
            const char *text;
            memcpy(&text, at, sizeof text);
            ((const char **)buffer)[i] = text ? text : "";
        } else {
            memcpy((char *)buffer + i * size, at, size);
        }
    }
}

void trace_hdf5_values(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t count, void *buffer)
{
    if (w->failed || count == 0) {
        return;
    }
    column_gather(column, rows, row_size, count, buffer);
    status_take(
        w,
        H5Dwrite(dataset, type_in_memory(w, column->type), H5S_ALL, H5S_ALL, w->transfer, buffer),
        "writing a dataset");
}

void trace_hdf5_append(struct trace_hdf5 *w, hid_t dataset, const struct column *column,
                       const void *rows, size_t row_size, size_t first, size_t count, void *buffer)
{
    if (w->failed || count == 0) {
        return;
    }
    hsize_t extent = first + count, from = first, length = count;
    status_take(w, H5Dset_extent(dataset, &extent), "growing a dataset");
    if (w->failed) {
        return;
    }
    column_gather(column, rows, row_size, count, buffer);
    hid_t on_disk = H5Dget_space(dataset), in_memory = H5Screate_simple(1, &length, NULL);
    H5Sselect_hyperslab(on_disk, H5S_SELECT_SET, &from, NULL, &length, NULL);
    status_take(
        w,
        H5Dwrite(dataset, type_in_memory(w, column->type), in_memory, on_disk, w->transfer, buffer),
        "writing a dataset");
    H5Sclose(on_disk);
    H5Sclose(in_memory);
}

struct trace_scale trace_hdf5_dimension(struct trace_hdf5 *w, hid_t group, const char *name,
                                        hsize_t length, bool growing)
{
    if (w->failed) {
        return (struct trace_scale){.dataset = -1};
    }
    hid_t create = creation_make();
    if (growing) {
        hsize_t chunk = TRACE_CHUNK_ROWS;
        H5Pset_chunk(create, 1, &chunk);
    }
    hsize_t limit = growing ? H5S_UNLIMITED : length;
    hid_t space = H5Screate_simple(1, &length, &limit);
    hid_t dataset = trace_hdf5_id(
        w, H5Dcreate2(group, name, H5T_IEEE_F32BE, space, H5P_DEFAULT, create, H5P_DEFAULT),
        "creating a dimension");
    H5Sclose(space);
    H5Pclose(create);
    /* The name by which netCDF-4 knows a dimension that has no variable; the number is its length.
     */
    char title[80];
    snprintf(title, sizeof title, "This is a netCDF dimension but not a netCDF variable.%10llu",
             (unsigned long long)length);
    return trace_hdf5_scale(w, dataset, title);
}
