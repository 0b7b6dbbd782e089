/* Files on disk: temporary names, sync and rename, and clear words when that fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/trace/trace_internal.h"

/* Room that the names of temporary files need beside the path's own: ".part.tmp-" and a number. */
enum { SUFFIX_MAX = 24 };

static char *name_with(const char *path, const char *suffix, long number)
{
    size_t size = strlen(path) + strlen(suffix) + 24;
    char *name = memory_alloc(size);
    if (number >= 0) {
        snprintf(name, size, "%s%s%ld", path, suffix, number);
    } else {
        snprintf(name, size, "%s%s", path, suffix);
    }
    return name;
}

char *trace_file_temporary(const char *path)
{
    return name_with(path, ".tmp-", (long)getpid());
}

char *trace_file_partial(const char *path)
{
    return name_with(path, ".part", -1);
}

/* The folder of a path: malloc'd. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return name_with(".", "", -1);
    }
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    char *folder = memory_alloc(length + 1);
    memcpy(folder, path, length);
    folder[length] = '\0';
    return folder;
}

static void write_error(struct errors *errors, const char *path, int reason)
{
    errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, strerror(reason));
}

bool trace_target_is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* What is there already may be replaced. */
static bool present_check(const char *path, const struct stat *status, bool force,
                          struct errors *errors)
{
    if (S_ISDIR(status->st_mode)) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: it is a folder", path);
        return false;
    }
    if (!S_ISREG(status->st_mode)) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "cannot write %s: it is a device or a pipe, not a file", path);
        return false;
    }
    if (!force) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "%s exists already; --force overwrites it, -o writes elsewhere", path);
        return false;
    }
    return true;
}

static bool folder_check(const char *path, const char *folder, struct errors *errors)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    size_t length = strlen(slash ? slash + 1 : path);
    if (stat(folder, &status) != 0 || (S_ISDIR(status.st_mode) && access(folder, W_OK | X_OK))) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: folder %s: %s", path, folder,
                   strerror(errno));
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        write_error(errors, path, ENOTDIR);
        return false;
    }
    long longest = pathconf(folder, _PC_NAME_MAX);
    if (length == 0 || (longest > 0 && length + SUFFIX_MAX > (size_t)longest)) {
        write_error(errors, path, length == 0 ? EISDIR : ENAMETOOLONG);
        return false;
    }
    return true;
}

bool trace_target_check(const char *path, bool force, struct errors *errors)
{
    struct stat status;
    if (path[0] == '\0') {
        errors_add(errors, SEVERITY_ERROR, NULL, "the name of a file to write is empty");
        return false;
    }
    if (stat(path, &status) == 0) {
        if (!present_check(path, &status, force, errors)) {
            return false;
        }
    } else if (errno != ENOENT || (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))) {
        write_error(errors, path, errno ? errno : ENOENT); /* a link to nothing too */
        return false;
    }
    char *folder = folder_of(path);
    bool ok = folder_check(path, folder, errors);
    free(folder);
    return ok;
}

/* A rename is on disk only when its folder is; where folders cannot be synced, the file still is.
 */
static void folder_sync(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static bool rename_synced(const char *path, const char *temporary, struct errors *errors)
{
    if (rename(temporary, path) != 0) {
        write_error(errors, path, errno);
        unlink(temporary);
        return false;
    }
    folder_sync(path);
    return true;
}

static int write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        size_t piece = size < ((size_t)1 << 26) ? size : (size_t)1 << 26;
        ssize_t written = write(fd, bytes, piece);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

/* errno's word for what went wrong, or 0. */
static int file_write(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) {
        return errno;
    }
    int reason = write_all(fd, bytes, size);
    if (reason == 0 && fsync(fd) != 0) {
        reason = errno;
    }
    if (close(fd) != 0 && reason == 0) {
        reason = errno;
    }
    if (reason != 0) {
        unlink(path);
    }
    return reason;
}

bool trace_file_replace(const char *path, const void *bytes, size_t size, struct errors *errors)
{
    char *temporary = trace_file_temporary(path);
    int reason = file_write(temporary, bytes, size);
    if (reason != 0) {
        write_error(errors, path, reason);
    }
    bool ok = reason == 0 && rename_synced(path, temporary, errors);
    free(temporary);
    return ok;
}

bool trace_file_commit(const char *path, const char *temporary, struct errors *errors)
{
    int fd = open(temporary, O_RDONLY);
    int reason = fd < 0 ? errno : 0;
    if (fd >= 0 && fsync(fd) != 0) {
        reason = errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (reason != 0) {
        write_error(errors, path, reason);
        unlink(temporary);
        return false;
    }
    return rename_synced(path, temporary, errors);
}

void trace_partial_remove(const char *path)
{
    char *partial = trace_file_partial(path);
    unlink(partial);
    free(partial);
}
