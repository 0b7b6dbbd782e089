#include "sim/workload/workload_export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sim/base/arena.h"
#include "sim/base/time.h"

enum { EXPORT_BUFFER = 1 << 17 };

static void report(struct errors *errors, const char *path, const char *what)
{
    struct source_pos pos = {.file = path};
    errors_add(errors, SEVERITY_ERROR, &pos, "cannot be %s: %s", what,
               errno ? strerror(errno) : "out of memory or not a file");
}

/* One row; false when it could not be written. */
static bool write_row(gzFile out, const struct request *r, const char *class_name)
{
    char stamp[TIME_TEXT_MAX], session[24] = "";
    time_text(r->arrival_ps, stamp);
    if (r->session >= 0)
        snprintf(session, sizeof session, "%" PRId64, r->session);
    return gzprintf(out, "%s,%" PRIu32 ",%" PRIu32 ",", stamp, r->prompt_tokens, r->output_tokens) >
               0 &&
           gzputs(out, class_name) >= 0 && gzprintf(out, ",%s,%" PRIu32 "\n", session, r->turn) > 0;
}

/* All rows; their number, or −1: *io_failed tells a failed write from a failed workload. */
static int64_t write_rows(gzFile out, struct workload *w, const char *const *class_names,
                          bool *io_failed, struct errors *errors)
{
    int64_t rows = 0;
    struct request request;
    enum workload_status status;
    *io_failed = gzputs(out, "arrival_s,prompt_tokens,output_tokens,class,session,turn\n") < 0;
    while (!*io_failed && (status = workload_next(w, &request, errors)) != WORKLOAD_END) {
        if (status == WORKLOAD_FAILED)
            return -1;
        *io_failed = !write_row(out, &request, class_names[request.class_index]);
        rows++;
    }
    return *io_failed ? -1 : rows;
}

/* A device or a pipe is written into; a file is written beside its name and renamed when whole. */
static bool is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int64_t workload_export(struct workload *w, const char *const *class_names, const char *path,
                        struct errors *errors)
{
    if (workload_is_live(w)) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "a closed loop's arrivals follow from the fleet: there is no trace to export");
        return -1;
    }
    size_t length = strlen(path);
    bool gzip = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    char *part = memory_alloc(length + sizeof ".part");
    bool device = is_device(path);
    snprintf(part, length + sizeof ".part", "%s%s", path, device ? "" : ".part");

    errno = 0;
    gzFile out = gzopen(part, gzip ? "wb6" : "wbT");
    if (!out) {
        report(errors, path, "created");
        free(part);
        return -1;
    }
    gzbuffer(out, EXPORT_BUFFER);
    bool io_failed;
    int64_t rows = write_rows(out, w, class_names, &io_failed, errors);
    bool closed = gzclose(out) == Z_OK;
    if (io_failed || (rows >= 0 && !closed) || (rows >= 0 && !device && rename(part, path) != 0)) {
        report(errors, path, "written");
        rows = -1;
    }
    if (rows < 0 && !device)
        remove(part);
    free(part);
    return rows;
}
