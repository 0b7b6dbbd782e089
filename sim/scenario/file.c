#include "sim/scenario/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/check.h"

enum { KNOWN_MAX = 1000, LISTED_MAX = 20, CHUNK = 1 << 16 };

const char *file_folder(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    return slash == path ? "/" : arena_copyn(arena, path, (size_t)(slash - path));
}

static bool read_fail(const char *path, const char *why, const struct source_pos *pos,
                      struct errors *errors)
{
    errors_add(errors, SEVERITY_ERROR, pos, "%s: %s", path, why);
    return false;
}

/* Reads until the end, one byte beyond the limit at most. */
static ssize_t descriptor_read(int fd, char **buffer, size_t limit)
{
    size_t length = 0, capacity = 0;
    while (length <= limit) {
        if (length == capacity) {
            capacity = capacity ? 2 * capacity : CHUNK;
            *buffer = memory_grow(*buffer, capacity);
        }
        ssize_t got = read(fd, *buffer + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

bool file_read(const char *path, size_t limit, const struct source_pos *pos, struct file_text *file,
               struct arena *arena, struct errors *errors)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return read_fail(path, strerror(errno), pos, errors);
    if (fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
        close(fd);
        return read_fail(path, "a folder, not a scenario file", pos, errors);
    }
    char *buffer = NULL;
    ssize_t length = descriptor_read(fd, &buffer, limit);
    int read_errno = errno;
    close(fd);
    bool ok = length >= 0 && (size_t)length <= limit;
    if (length < 0) {
        read_fail(path, strerror(read_errno), pos, errors);
    } else if (!ok) {
        char why[64];
        snprintf(why, sizeof why, "larger than %zu MiB, the limit for a scenario", limit >> 20);
        read_fail(path, why, pos, errors);
    } else {
        *file = (struct file_text){.path = arena_copy(arena, path),
                                   .folder = file_folder(path, arena),
                                   .text = arena_copyn(arena, buffer, (size_t)length),
                                   .length = (size_t)length,
                                   .device = info.st_dev,
                                   .inode = info.st_ino};
    }
    free(buffer);
    return ok;
}

/* ---- names --------------------------------------------------------------------------------------
 */

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every NAME with FOLDER/NAME/scenario.yaml, sorted, without repeats, NULL-terminated. */
static const char **known_names(const char *const *folders, struct arena *arena)
{
    const char **names = arena_alloc(arena, (KNOWN_MAX + 1) * sizeof *names);
    size_t count = 0;
    for (size_t i = 0; folders && folders[i]; i++) {
        DIR *folder = opendir(folders[i]);
        struct dirent *entry;
        while (folder && count < KNOWN_MAX && (entry = readdir(folder))) {
            const char *path =
                arena_printf(arena, "%s/%s/scenario.yaml", folders[i], entry->d_name);
            if (entry->d_name[0] != '.' && is_file(path))
                names[count++] = arena_copy(arena, entry->d_name);
        }
        if (folder)
            closedir(folder);
    }
    qsort(names, count, sizeof *names, name_compare);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    names[kept] = NULL;
    return names;
}

static void name_unknown(const char *name, const char *const *folders, struct arena *arena,
                         struct errors *errors)
{
    const char **names = known_names(folders, arena);
    const char *near = errors_nearest(name, names), *list = "";
    if (near) {
        errors_add(errors, SEVERITY_ERROR, NULL, "no scenario named '%s', did you mean '%s'?", name,
                   near);
        return;
    }
    for (size_t i = 0; names[i] && i < LISTED_MAX; i++)
        list = arena_printf(arena, "%s%s%s", list, i ? ", " : "; known: ", names[i]);
    errors_add(errors, SEVERITY_ERROR, NULL, "no scenario named '%s' and no such file%s", name,
               list);
}

const char *file_find(const char *name, const char *const *folders, struct arena *arena,
                      struct errors *errors)
{
    bool bare = !strchr(name, '/') && !ends_with(name, ".yaml") && !ends_with(name, ".yml");
    for (size_t i = 0; bare && name[0] && folders && folders[i]; i++) {
        const char *path = arena_printf(arena, "%s/%s/scenario.yaml", folders[i], name);
        if (is_file(path))
            return path;
    }
    const char *inside =
        arena_printf(arena, "%s%sscenario.yaml", name, ends_with(name, "/") || !name[0] ? "" : "/");
    if (name[0] && is_folder(name) && is_file(inside))
        return inside;
    if (!bare || is_file(name) || is_folder(name))
        return arena_copy(arena, name); /* opening it says what is wrong with it */
    name_unknown(name, folders, arena, errors);
    return NULL;
}
