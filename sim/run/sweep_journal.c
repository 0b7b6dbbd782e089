#include "sim/run/sweep_journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "sim/run/version.h"

enum { LOCK_TRIES = 60 };

static bool fail(const struct sweep_journal *journal, struct errors *errors)
{
    errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", journal->path, strerror(errno));
    return false;
}

/* ---- writing ------------------------------------------------------------------------------------
 */

/* Workers share the lock of their parent and die with it: a moment later. Where the file system has
 * no locks there is no protection against a second writer, and none is needed for a single one. */
static bool lock_take(struct sweep_journal *journal, struct errors *errors)
{
    static const struct timespec moment = {.tv_nsec = 50000000L};
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (flock(journal->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        nanosleep(&moment, NULL);
    }
    errors_add(errors, SEVERITY_ERROR, NULL, "%s: another sweep is at work in this folder",
               journal->path);
    return false;
}

bool sweep_journal_open(struct sweep_journal *journal, const char *path, struct errors *errors)
{
    *journal = (struct sweep_journal){.path = path, .fd = -1};
    journal->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (journal->fd < 0)
        return fail(journal, errors);
    if (!lock_take(journal, errors)) {
        sweep_journal_close(journal);
        return false;
    }
    char last = '\n';
    off_t end = lseek(journal->fd, 0, SEEK_END);
    journal->torn = end > 0 && pread(journal->fd, &last, 1, end - 1) == 1 && last != '\n';
    return true;
}

void sweep_journal_close(struct sweep_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

static bool bytes_append(struct sweep_journal *journal, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(journal->fd, text, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            text += written;
            length -= (size_t)written;
        }
    }
    return true;
}

/* Takes the object over. One write, so that a kill tears at most this line. */
static bool object_append(struct sweep_journal *journal, json_t *object, struct errors *errors)
{
    char stamp[40];
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) && strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        json_object_set_new(object, "time", json_string(stamp));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(object);
    size_t length = text ? strlen(text) : 0;
    char *line = memory_alloc(length + 3);
    size_t size = 0;
    if (journal->torn)
        line[size++] = '\n';
    memcpy(line + size, text ? text : "", length);
    size += length;
    line[size++] = '\n';
    free(text);
    bool ok = bytes_append(journal, line, size) && fdatasync(journal->fd) == 0;
    free(line);
    journal->torn = !ok;
    return ok || fail(journal, errors);
}

bool sweep_journal_begin(struct sweep_journal *journal, const char *program, size_t runs,
                         size_t to_do, size_t jobs, struct errors *errors)
{
    return object_append(journal,
                         json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "event", "begin", "version",
                                   VERSION_TEXT, "program", program, "runs", (json_int_t)runs,
                                   "to_do", (json_int_t)to_do, "jobs", (json_int_t)jobs),
                         errors);
}

bool sweep_journal_end(struct sweep_journal *journal, size_t done, size_t failed,
                       struct errors *errors)
{
    return object_append(journal,
                         json_pack("{s:s, s:I, s:I}", "event", "end", "done", (json_int_t)done,
                                   "failed", (json_int_t)failed),
                         errors);
}

/* A text that may hold anything: what is not UTF-8 is not written. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    return json ? json : json_string("(not a UTF-8 text)");
}

/* The program's own writer (sim/cli/json.h) has a function called json_real, which
 * the linker would take for the library's. */
static json_t *real_new(double value)
{
    return json_pack("f", value);
}

bool sweep_journal_put(struct sweep_journal *journal, const struct sweep_line *line,
                       struct errors *errors)
{
    json_t *object = json_pack("{s:s, s:s, s:s}", "event", line->done ? "done" : "failed", "run",
                               line->run, "fingerprint", line->fingerprint.hex);
    if (line->done) {
        json_object_set_new(object, "file", json_string(line->file.hex));
        json_object_set_new(object, "bytes", json_integer((json_int_t)line->bytes));
        json_object_set_new(object, "digest", json_string(line->digest));
    } else {
        json_object_set_new(object, "reason", text_json(line->reason));
    }
    json_object_set_new(object, "wall_s", real_new(line->wall_s));
    json_object_set_new(object, "peak_rss_bytes", json_integer((json_int_t)line->peak_rss_bytes));
    return object_append(journal, object, errors);
}

/* ---- reading ------------------------------------------------------------------------------------
 */

struct lines {
    struct sweep_line *items;
    size_t count, capacity;
    struct arena *arena;
};

static const char *text_of(const json_t *object, const char *key, struct arena *arena)
{
    const char *text = json_string_value(json_object_get(object, key));
    return arena_copy(arena, text ? text : "");
}

static struct sweep_print print_of(const json_t *object, const char *key)
{
    struct sweep_print print = {""};
    const char *text = json_string_value(json_object_get(object, key));
    if (text && strlen(text) == sizeof print.hex - 1)
        memcpy(print.hex, text, sizeof print.hex);
    return print;
}

static void line_take(struct lines *lines, const char *text, size_t length)
{
    json_t *object = json_loadb(text, length, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    bool done = event && strcmp(event, "done") == 0;
    if (done || (event && strcmp(event, "failed") == 0)) {
        if (lines->count == lines->capacity) {
            lines->capacity = 2 * lines->capacity + 64;
            struct sweep_line *grown = arena_alloc(lines->arena, lines->capacity * sizeof *grown);
            if (lines->count > 0)
                memcpy(grown, lines->items, lines->count * sizeof *grown);
            lines->items = grown;
        }
        lines->items[lines->count] = (struct sweep_line){
            .done = done,
            .run = text_of(object, "run", lines->arena),
            .fingerprint = print_of(object, "fingerprint"),
            .file = print_of(object, "file"),
            .digest = text_of(object, "digest", lines->arena),
            .reason = text_of(object, "reason", lines->arena),
            .wall_s = json_number_value(json_object_get(object, "wall_s")),
            .bytes = (uint64_t)json_integer_value(json_object_get(object, "bytes")),
            .peak_rss_bytes =
                (uint64_t)json_integer_value(json_object_get(object, "peak_rss_bytes")),
            .order = lines->count};
        lines->count++;
    }
    json_decref(object);
}

static void file_take(struct lines *lines, FILE *file)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&text, &capacity, file)) > 0)
        if (text[length - 1] == '\n')
            line_take(lines, text, (size_t)length);
    free(text);
}

static bool is_journal(const char *name)
{
    size_t length = strlen(name), end = strlen(".jsonl");
    return strncmp(name, "journal", 7) == 0 && length > end &&
           strcmp(name + length - end, ".jsonl") == 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct sweep_line *sweep_journal_read(const char *folder, size_t *count, struct arena *arena,
                                      struct errors *errors)
{
    struct lines lines = {.arena = arena};
    const char **names = NULL;
    size_t name_count = 0;
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (!is_journal(entry->d_name))
            continue;
        names = memory_grow(names, (name_count + 1) * sizeof *names);
        names[name_count++] = arena_printf(arena, "%s/%s", folder, entry->d_name);
    }
    if (directory)
        closedir(directory);
    if (name_count > 0)
        qsort(names, name_count, sizeof *names, name_compare);
    for (size_t i = 0; i < name_count; i++) {
        FILE *file = fopen(names[i], "r");
        if (file) {
            file_take(&lines, file);
            fclose(file);
        } else {
            errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: %s", names[i],
                       strerror(errno));
        }
    }
    free(names);
    *count = lines.count;
    return lines.items;
}
