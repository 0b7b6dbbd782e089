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

bool trace_image_replace(struct trace_hdf5 *w, const char *path, struct errors *errors)
{
    size_t size;
    const void *image = trace_hdf5_image(w, &size);
    bool ok = image && trace_file_replace(path, image, size, errors);
    trace_hdf5_close(w);
    if (!image) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, w->why);
    }
    return ok;
}

static bool run_write(const struct trace_run *run, const char *path, struct errors *errors)
{
    struct trace_hdf5 w;
    trace_hdf5_open(&w, NULL, run->start_unix_s);
    trace_tables_write(&w, run);
    return trace_image_replace(&w, path, errors);
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
