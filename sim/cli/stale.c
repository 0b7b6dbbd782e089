#include "sim/cli/stale.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/trace/trace.h"

enum { STALE_AFTER_S = 3600, STALE_NAME_MAX = 4096 };

/* The process in "BASE.tmp-PID" or "BASE.part.tmp-PID"; 0: it is no such name. */
static pid_t process_of(const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0)
        return 0;
    name += length;
    if (strncmp(name, ".part", 5) == 0)
        name += 5;
    if (strncmp(name, ".tmp-", 5) != 0 || name[5] < '1' || name[5] > '9')
        return 0;
    char *end = NULL;
    long process = strtol(name + 5, &end, 10);
    return *end == '\0' && process > 0 && process <= INT32_MAX ? (pid_t)process : 0;
}

static bool abandoned(const char *path, pid_t process)
{
    struct stat status;
    return kill(process, 0) != 0 && errno == ESRCH && lstat(path, &status) == 0 &&
           S_ISREG(status.st_mode) && time(NULL) - status.st_mtime > STALE_AFTER_S;
}

void stale_remove(const char *path, struct errors *errors)
{
    if (!path || trace_target_is_device(path))
        return;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    struct arena arena;
    arena_init(&arena);
    size_t length = slash ? (size_t)(slash - path) : 0;
    const char *folder = !slash ? "." : length > 0 ? arena_copyn(&arena, path, length) : "/";
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        char name[STALE_NAME_MAX];
        pid_t process = process_of(entry->d_name, base);
        int size = snprintf(name, sizeof name, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path,
                            entry->d_name);
        if (process > 0 && size > 0 && (size_t)size < sizeof name && abandoned(name, process) &&
            unlink(name) == 0)
            errors_add(errors, SEVERITY_WARNING, NULL, "removed %s, left by a run that was killed",
                       name);
    }
    if (entries)
        closedir(entries);
    arena_free(&arena);
}
