#include "sim/run/run_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/run/run_internal.h"

/* A CSV that could not be written takes nothing else down with it: the simulation goes on. */
static void csv_fail(struct run_rows *rows, int reason)
{
    rows->reason = reason != 0 ? reason : EIO;
    if (rows->csv != NULL) {
        fclose(rows->csv);
    }
    rows->csv = NULL;
}

static void row_take(void *self, const struct request_record *record)
{
    struct run_rows *rows = self;
    const struct run_config *config = &rows->run->config;
    if (rows->csv != NULL) {
        request_log_csv_row(
            rows->csv, record, config_class(config, record->request.class_index)->traffic.name,
            record->pool == UINT32_MAX ? "" : config_pool(config, record->pool)->name);
        if (ferror(rows->csv)) {
            csv_fail(rows, errno);
        }
    }
    if (rows->run->stream != NULL) {
        trace_stream_append(rows->run->stream, record);
    }
}

static bool csv_open(struct run_rows *rows, bool force, struct errors *errors)
{
    const char *target = rows->path;
    if (!trace_target_is_device(rows->path)) {
        if (!trace_target_check(rows->path, force, errors)) {
            return false;
        }
        size_t size = strlen(rows->path) + 32;
        rows->temporary = memory_alloc(size);
        snprintf(rows->temporary, size, "%s.tmp-%ld", rows->path, (long)getpid());
        target = rows->temporary;
    }
    rows->csv = fopen(target, "w");
    if (rows->csv == NULL) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", rows->path,
                   strerror(errno));
        return false;
    }
    request_log_csv_header(rows->csv);
    return true;
}

bool run_rows_open(struct run_rows *rows, struct run *run, const struct run_options *options,
                   struct errors *errors)
{
    *rows = (struct run_rows){.run = run, .path = options->requests_path};
    bool ok = rows->path == NULL || csv_open(rows, options->force, errors);
    if (ok && run->config.output.requests && options->output_path != NULL) {
        run->stream = run_output_stream(run, options->output_path, options->force, errors);
        ok = run->stream != NULL;
    }
    if (!ok) {
        run_rows_close(rows, false, errors);
        return false;
    }
    rows->wanted = rows->csv != NULL || run->stream != NULL;
    if (rows->wanted) {
        request_log_init(&rows->log, row_take, rows);
    }
    return true;
}

void run_rows_close(struct run_rows *rows, bool keep, struct errors *errors)
{
    if (rows->wanted) {
        request_log_free(&rows->log);
    }
    if (rows->csv != NULL && fclose(rows->csv) != 0) {
        rows->reason = errno;
    }
    if (rows->temporary != NULL) {
        if (keep && rows->reason == 0 && rename(rows->temporary, rows->path) != 0) {
            rows->reason = errno;
        }
        if (!keep || rows->reason != 0) {
            unlink(rows->temporary);
        }
    }
    if (rows->reason != 0) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s; it has been left out",
                   rows->path, strerror(rows->reason));
    }
    free(rows->temporary);
    rows->temporary = NULL;
    rows->csv = NULL;
}
