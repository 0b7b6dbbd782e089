/* Whole files. They are built in memory and written with plain system calls, so that a full disk is
 * a system error with a name; only a stream of rows (sim/trace/trace_stream.c) goes through HDF5's
 * own file driver. */
#include "sim/trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/trace/trace_internal.h"

char *trace_iso_time(int64_t unix_s, char *buffer)
{
    struct tm tm;
    time_t when = (time_t)unix_s;
    if (!gmtime_r(&when, &tm) || strftime(buffer, TRACE_ISO_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        snprintf(buffer, TRACE_ISO_MAX, "1970-01-01T00:00:00Z");
    }
    return buffer;
}

/* The bytes of the file of a run: malloc'd; NULL with a reason in w. */
static void *image_create(const struct trace_run *run, struct trace_hdf5 *w, size_t *size)
{
    void *image = NULL;
    trace_hdf5_open(w, NULL, run->start_unix_s);
    trace_tables_write(w, run);
    if (!w->failed && H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0) {
        trace_hdf5_fail(w, "flushing");
    }
    if (!w->failed) {
        ssize_t length = H5Fget_file_image(w->file, NULL, 0);
        if (length > 0) {
            image = memory_alloc((size_t)length);
            *size = (size_t)length;
            length = H5Fget_file_image(w->file, image, *size);
        }
        if (length <= 0) {
            trace_hdf5_fail(w, "taking the file's image");
        }
    }
    trace_hdf5_close(w);
    if (w->failed) {
        free(image);
        image = NULL;
    }
    return image;
}

static bool run_write(const struct trace_run *run, const char *path, struct errors *errors)
{
    struct trace_hdf5 w;
    size_t size = 0;
    void *image = image_create(run, &w, &size);
    if (!image) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, w.why);
        return false;
    }
    char *temporary = trace_file_temporary(path);
    bool ok = trace_file_replace(path, temporary, image, size, errors);
    free(temporary);
    free(image);
    return ok;
}

bool trace_write(const struct trace_run *run, const char *path, bool force, struct errors *errors)
{
    if (!trace_target_check(path, force, errors) || !run_write(run, path, errors)) {
        return false;
    }
    trace_partial_remove(path);
    return true;
}

bool trace_partial_write(const struct trace_run *run, const char *path, struct errors *errors)
{
    check(!run->complete);
    char *partial = trace_file_partial(path);
    bool ok = run_write(run, partial, errors);
    free(partial);
    return ok;
}
