#include "sim/run/sweep_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool folder_make(const char *path, struct errors *errors)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return true;
    int reason = errno;
    if (reason == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return true;
    errors_add(errors, SEVERITY_ERROR, NULL, "cannot make the folder %s: %s", path,
               strerror(reason));
    return false;
}

bool sweep_folder_make(const char *path, struct errors *errors)
{
    struct arena arena;
    arena_init(&arena);
    bool ok =
        folder_make(path, errors) && folder_make(arena_printf(&arena, "%s/runs", path), errors);
    const char *places[] = {path, arena_printf(&arena, "%s/runs", path)};
    for (size_t i = 0; ok && i < 2; i++) {
        if (access(places[i], W_OK | X_OK) == 0)
            continue;
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write into the folder %s: %s", places[i],
                   strerror(errno));
        ok = false;
    }
    arena_free(&arena);
    return ok;
}

const char *sweep_folder_file(const struct sweep_folder *folder, size_t run, struct arena *arena)
{
    return arena_printf(arena, "%s/runs/%s.h5", folder->path, folder->layout->runs[run].id);
}

/* Whether the file is what the line says was written. */
static bool file_is(const struct sweep_folder *folder, size_t run, const struct sweep_line *line)
{
    struct arena arena;
    struct sweep_print print;
    struct stat info;
    uint64_t bytes;
    arena_init(&arena);
    const char *path = sweep_folder_file(folder, run, &arena);
    bool ok = line->file.hex[0] && stat(path, &info) == 0 &&
              (uint64_t)info.st_size == line->bytes && sweep_check_file(path, &print, &bytes) &&
              strcmp(print.hex, line->file.hex) == 0;
    arena_free(&arena);
    return ok;
}

/* The newest line on each run that is of its fingerprint: done before failed, for another writer
 * may have come later. */
void sweep_folder_scan(struct sweep_folder *folder, const char *path,
                       const struct sweep_layout *layout, struct arena *arena,
                       struct errors *errors)
{
    size_t count;
    *folder =
        (struct sweep_folder){.path = path,
                              .layout = layout,
                              .runs = arena_alloc(arena, layout->run_count * sizeof *folder->runs)};
    const struct sweep_line *lines = sweep_journal_read(path, &count, arena, errors);
    const struct sweep_line **done = arena_alloc(arena, layout->run_count * sizeof *done);
    for (size_t i = 0; i < count; i++) {
        size_t run = sweep_layout_find(layout, lines[i].run);
        if (run == SIZE_MAX)
            continue;
        struct sweep_folder_run *state = &folder->runs[run];
        if (strcmp(lines[i].fingerprint.hex, layout->runs[run].fingerprint.hex) != 0) {
            if (state->state == SWEEP_MISSING && lines[i].done)
                state->state = SWEEP_STALE;
        } else if (lines[i].done) {
            done[run] = &lines[i];
        } else {
            state->state = SWEEP_FAILED;
            state->reason = lines[i].reason;
            state->wall_s = lines[i].wall_s;
        }
    }
    for (size_t run = 0; run < layout->run_count; run++)
        if (done[run] && file_is(folder, run, done[run]))
            folder->runs[run] = (struct sweep_folder_run){.state = SWEEP_DONE,
                                                          .file = done[run]->file,
                                                          .digest = done[run]->digest,
                                                          .wall_s = done[run]->wall_s};
}

size_t sweep_folder_count(const struct sweep_folder *folder, enum sweep_state state)
{
    size_t count = 0;
    for (size_t run = 0; run < folder->layout->run_count; run++)
        count += folder->runs[run].state == state;
    return count;
}

void sweep_folder_clean(const struct sweep_folder *folder, const bool *wanted)
{
    struct arena arena;
    arena_init(&arena);
    const char *runs = arena_printf(&arena, "%s/runs", folder->path);
    DIR *directory = opendir(runs);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        const char *end = strstr(entry->d_name, ".h5.");
        if (!end)
            continue;
        const char *id = arena_copyn(&arena, entry->d_name, (size_t)(end - entry->d_name));
        size_t run = sweep_layout_find(folder->layout, id);
        if (run != SIZE_MAX && wanted[run])
            unlink(arena_printf(&arena, "%s/%s", runs, entry->d_name));
    }
    if (directory)
        closedir(directory);
    arena_free(&arena);
}
