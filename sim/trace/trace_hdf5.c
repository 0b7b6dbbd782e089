/* HDF5 as netCDF-4 wants it: dimension scales, attributes, no times of creation, no printed error
 * stack. Every call is a no-op once one has failed. */
#include <hdf5_hl.h>
#include <math.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/time.h"
#include "sim/trace/trace_internal.h"

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

void trace_hdf5_open(struct trace_hdf5 *w, const char *path, int64_t start_unix_s)
{
    *w = (struct trace_hdf5){.file = -1, .start_unix_s = start_unix_s, .text_type = -1};
    /* After a close that failed on a full disk the library's exit handler crashes; files are closed
     * here, so nothing is left for it to do. No-op after the first call. */
    (void)H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    /* An old superblock has no checksum: HDF5 1.10 clears a flag in an image without updating it.
     */
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_obj_track_times(create, 0);
    H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    if (!path) {
        H5Pset_fapl_core(access, (size_t)1 << 20, 0);
    }
    w->file = trace_hdf5_id(w, H5Fcreate(path ? path : "in memory", H5F_ACC_TRUNC, create, access),
                            "creating the file");
    H5Pclose(access);
    H5Pclose(create);
    w->text_type = H5Tcopy(H5T_C_S1);
    H5Tset_size(w->text_type, H5T_VARIABLE);
    H5Tset_cset(w->text_type, H5T_CSET_UTF8);
}

void trace_hdf5_close(struct trace_hdf5 *w)
{
    H5Tclose(w->text_type);
    if (w->file >= 0) {
        status_take(w, H5Fclose(w->file), "closing the file");
    }
    w->file = -1;
}

hid_t trace_hdf5_group(struct trace_hdf5 *w, const char *name, const char *doc)
{
    if (w->failed) {
        return -1;
    }
    if (H5Lexists(w->file, name, H5P_DEFAULT) > 0) {
        return trace_hdf5_id(w, H5Gopen2(w->file, name, H5P_DEFAULT), "opening a group");
    }
    hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(create, 0);
    H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    hid_t group = trace_hdf5_id(w, H5Gcreate2(w->file, name, H5P_DEFAULT, create, H5P_DEFAULT),
                                "creating a group");
    H5Pclose(create);
    if (doc) {
        trace_hdf5_attribute(w, group, "description", doc);
    }
    return group;
}

void trace_hdf5_attribute(struct trace_hdf5 *w, hid_t object, const char *name, const char *text)
{
    if (w->failed) {
        return;
    }
    /* Fixed length: a netCDF char attribute, which every reader knows. */
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(text) > 0 ? strlen(text) : 1);
    H5Tset_strpad(type, H5T_STR_NULLTERM);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attribute =
        trace_hdf5_id(w, H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT),
                      "creating an attribute");
    if (attribute >= 0) {
        status_take(w, H5Awrite(attribute, type, text), "writing an attribute");
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
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

static void layout_set(hid_t create, const struct column *column, const struct trace_space *space)
{
    H5Pset_obj_track_times(create, 0);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    H5Pset_attr_phase_change(create, 64, 32);
    hsize_t elements = space->rank > 0 ? space->dims[0] : 1;
    elements *= space->rank > 1 ? space->dims[1] : 1;
    bool chunked = space->growing || elements * 8 > TRACE_SMALL_BYTES;
    if (space->rank > 0 && chunked) {
        hsize_t chunk[2] = {TRACE_CHUNK_ROWS, space->rank > 1 ? space->dims[1] : 1};
        if (!space->growing && space->dims[0] < chunk[0]) {
            chunk[0] = space->dims[0];
        }
        H5Pset_chunk(create, space->rank, chunk);
        if (column->type != COLUMN_TEXT) { /* texts lie in a heap: nothing to compress here */
            H5Pset_shuffle(create);
            H5Pset_deflate(create, 1);
        }
    }
    if (column->type == COLUMN_INT64) {
        int64_t none = COLUMN_INT_NONE;
        H5Pset_fill_value(create, H5T_NATIVE_INT64, &none);
    } else if (column->type == COLUMN_INT32) {
        int32_t none = -1;
        H5Pset_fill_value(create, H5T_NATIVE_INT32, &none);
    }
}

/* _FillValue says which integer means "undefined"; undefined doubles are NaN and need none. */
static void fill_attribute(struct trace_hdf5 *w, hid_t dataset, enum column_type type)
{
    if (w->failed || (type != COLUMN_INT64 && type != COLUMN_INT32)) {
        return;
    }
    int64_t wide = COLUMN_INT_NONE;
    int32_t narrow = -1;
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t attribute = trace_hdf5_id(
        w,
        H5Acreate2(dataset, "_FillValue", type_on_disk(w, type), space, H5P_DEFAULT, H5P_DEFAULT),
        "creating an attribute");
    if (attribute >= 0) {
        const void *value = type == COLUMN_INT64 ? (const void *)&wide : (const void *)&narrow;
        status_take(w, H5Awrite(attribute, type_in_memory(w, type), value), "writing an attribute");
        H5Aclose(attribute);
    }
    H5Sclose(space);
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

static hid_t space_create(const struct trace_space *space)
{
    if (space->rank == 0) {
        return H5Screate(H5S_SCALAR);
    }
    hsize_t limits[2] = {space->growing ? H5S_UNLIMITED : space->dims[0], space->dims[1]};
    return H5Screate_simple(space->rank, space->dims, limits);
}

hid_t trace_hdf5_column(struct trace_hdf5 *w, hid_t group, const struct column *column,
                        const struct trace_space *space)
{
    if (w->failed) {
        return -1;
    }
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), shape = space_create(space);
    layout_set(create, column, space);
    hid_t dataset = trace_hdf5_id(w,
                                  H5Dcreate2(group, column->name, type_on_disk(w, column->type),
                                             shape, H5P_DEFAULT, create, H5P_DEFAULT),
                                  "creating a dataset");
    H5Sclose(shape);
    H5Pclose(create);
    column_attributes(w, dataset, column);
    for (int d = 0; d < space->rank && !w->failed; d++) {
        if (space->scales[d] >= 0) {
            status_take(w, H5DSattach_scale(dataset, space->scales[d], (unsigned)d),
                        "attaching a dimension");
        }
    }
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
        H5Dwrite(dataset, type_in_memory(w, column->type), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer),
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
        H5Dwrite(dataset, type_in_memory(w, column->type), in_memory, on_disk, H5P_DEFAULT, buffer),
        "writing a dataset");
    H5Sclose(on_disk);
    H5Sclose(in_memory);
}

hid_t trace_hdf5_dimension(struct trace_hdf5 *w, hid_t group, const char *name, hsize_t length,
                           bool growing)
{
    if (w->failed) {
        return -1;
    }
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, 0);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED);
    H5Pset_attr_phase_change(create, 64, 32);
    if (growing) {
        hsize_t chunk = TRACE_CHUNK_ROWS;
        H5Pset_chunk(create, 1, &chunk);
    }
    hsize_t limit = growing ? H5S_UNLIMITED : length;
    hid_t space = H5Screate_simple(1, &length, &limit);
    hid_t dataset = trace_hdf5_id(
        w, H5Dcreate2(group, name, H5T_IEEE_F32BE, space, H5P_DEFAULT, create, H5P_DEFAULT),
        "creating a dimension");
    /* The name by which netCDF-4 knows a dimension that has no variable; the number is its length.
     */
    char title[80];
    snprintf(title, sizeof title, "This is a netCDF dimension but not a netCDF variable.%10llu",
             (unsigned long long)length);
    if (dataset >= 0) {
        status_take(w, H5DSset_scale(dataset, title), "making a dimension");
    }
    H5Sclose(space);
    H5Pclose(create);
    return dataset;
}
