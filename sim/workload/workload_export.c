#include "sim/workload/workload_export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/workload/trace_reader.h"

enum { EXPORT_BUFFER = 1 << 17, LINE_MIN = 1 << 12, DIGITS_MAX = 20, FIXED_MAX = 128 };

struct workload_export {
    struct workload_export_setup setup;
    char *path, *part; /* owned; where it goes, and where it is written until it is whole */
    bool device;       /* a device or a pipe: written into as it is */
    bool hash_column;
    gzFile out; /* owned */
    char *line; /* owned; the row in hand, [line_capacity] */
    size_t length, line_capacity;
    int64_t rows;
    bool io_failed;
    int64_t long_row; /* the first that a trace cannot hold, from 1; 0: none */
};

static void report(struct errors *errors, const char *path, const char *what)
{
    struct source_pos pos = {.file = path};
    errors_add(errors, SEVERITY_ERROR, &pos, "cannot be %s: %s", what,
               errno ? strerror(errno) : "out of memory or not a file");
}

static bool is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static void export_free(struct workload_export *e)
{
    free(e->path);
    free(e->part);
    free(e->line);
    free(e);
}

struct workload_export *workload_export_open(const char *path,
                                             const struct workload_export_setup *setup,
                                             struct errors *errors)
{
    struct workload_export *e = memory_zero(1, sizeof *e);
    size_t length = strlen(path);
    bool gzip = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    e->setup = *setup;
    e->device = is_device(path);
    e->path = memory_alloc(length + 1);
    memcpy(e->path, path, length + 1);
    e->part = memory_alloc(length + sizeof ".part");
    snprintf(e->part, length + sizeof ".part", "%s%s", path, e->device ? "" : ".part");
    e->line_capacity = LINE_MIN;
    e->line = memory_alloc(e->line_capacity);
    for (size_t c = 0; c < setup->class_count; c++)
        e->hash_column |= setup->block_tokens[c] > 0;

    errno = 0;
    e->out = gzopen(e->part, gzip ? "wb6" : "wbT");
    if (!e->out) {
        report(errors, path, "created");
        export_free(e);
        return NULL;
    }
    gzbuffer(e->out, EXPORT_BUFFER);
    const char *header = e->hash_column
                             ? "arrival_s,prompt_tokens,output_tokens,class,session,turn,hash_ids\n"
                             : "arrival_s,prompt_tokens,output_tokens,class,session,turn\n";
    e->io_failed = gzputs(e->out, header) < 0;
    return e;
}

/* ---- rows ---- */

static void line_number(struct workload_export *e, uint64_t value)
{
    char digits[DIGITS_MAX];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(e->line + e->length, digits + at, sizeof digits - at);
    e->length += sizeof digits - at;
}

static void line_hash(struct workload_export *e, uint64_t id, uint32_t index)
{
    if (index > 0)
        e->line[e->length++] = ' ';
    line_number(e, id);
}

/* How many blocks have a name: those of the shared prompt, and of a stream all that are full. */
static uint32_t blocks_named(const struct request *r, uint32_t block_tokens)
{
    if (r->hashes)
        return r->hashes->count;
    if (block_tokens == 0)
        return 0;
    uint32_t tokens = r->stream ? r->prompt_tokens + r->output_tokens : r->shared_tokens;
    return tokens / block_tokens;
}

/* The engine's contents of blocks (docs/engine.md): what lies in the shared prompt, or else the
 * stream, at a place, however far the shared prompt before it reaches. Numbers of shared prompts
 * are below 2^32, those of streams above. */
static void line_hashes(struct workload_export *e, const struct request *r, uint32_t count)
{
    if (r->hashes) {
        for (uint32_t i = 0; i < count; i++)
            line_hash(e, r->hashes->ids[i], i);
        return;
    }
    uint32_t block_tokens = e->setup.block_tokens[r->class_index];
    for (uint32_t i = 0; i < count; i++) {
        bool shared = i < r->shared_tokens / block_tokens;
        uint64_t entity = shared ? r->shared_prompt : r->stream;
        line_hash(e, rng_draw(e->setup.content_key, entity, i).a, i);
    }
}

static void line_begin(struct workload_export *e, const struct request *r, size_t room)
{
    if (room > e->line_capacity) {
        e->line_capacity = 2 * room;
        e->line = memory_grow(e->line, e->line_capacity);
    }
    char stamp[TIME_TEXT_MAX], session[24] = "";
    time_text(r->arrival_ps, stamp);
    if (r->session >= 0)
        snprintf(session, sizeof session, "%" PRId64, r->session);
    int length =
        snprintf(e->line, e->line_capacity, "%s,%" PRIu32 ",%" PRIu32 ",%s,%s,%" PRIu32 "%s", stamp,
                 r->prompt_tokens, r->output_tokens, e->setup.class_names[r->class_index], session,
                 r->turn, e->hash_column ? "," : "");
    check(length > 0 && (size_t)length < room);
    e->length = (size_t)length;
}

void workload_export_add(struct workload_export *e, const struct request *r)
{
    check(r->class_index < e->setup.class_count);
    if (e->io_failed || e->long_row)
        return;
    e->rows++;
    uint32_t hashes = e->hash_column ? blocks_named(r, e->setup.block_tokens[r->class_index]) : 0;
    size_t room = FIXED_MAX + strlen(e->setup.class_names[r->class_index]) +
                  (size_t)hashes * (DIGITS_MAX + 1);
    if (room > TRACE_READER_LINE_MAX) {
        e->long_row = e->rows;
        return;
    }
    line_begin(e, r, room);
    line_hashes(e, r, hashes);
    e->line[e->length++] = '\n';
    e->io_failed = gzwrite(e->out, e->line, (unsigned)e->length) != (int)e->length;
}

int64_t workload_export_close(struct workload_export *e, bool keep, struct errors *errors)
{
    bool closed = gzclose(e->out) == Z_OK;
    int64_t rows = keep ? e->rows : -1;
    if (e->long_row) {
        struct source_pos pos = {.file = e->path};
        errors_add(errors, SEVERITY_ERROR, &pos,
                   "request %lld has too many hash_ids for a line of %d bytes: a larger block_size "
                   "needs fewer",
                   (long long)e->long_row, TRACE_READER_LINE_MAX);
        rows = -1;
    } else if (e->io_failed ||
               (rows >= 0 && (!closed || (!e->device && rename(e->part, e->path) != 0)))) {
        report(errors, e->path, "written");
        rows = -1;
    }
    if (rows < 0 && !e->device)
        remove(e->part);
    export_free(e);
    return rows;
}

int64_t workload_export(struct workload *w, const struct workload_export_setup *setup,
                        const char *path, struct errors *errors)
{
    check(!workload_is_live(w));
    struct workload_export *export = workload_export_open(path, setup, errors);
    if (!export)
        return -1;
    struct request request;
    enum workload_status status;
    while ((status = workload_next(w, &request, errors)) == WORKLOAD_OK) {
        workload_export_add(export, &request);
        token_hashes_release(request.hashes);
        if (export->io_failed || export->long_row)
            break;
    }
    return workload_export_close(export, status != WORKLOAD_FAILED, errors);
}
