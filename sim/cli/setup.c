#define _XOPEN_SOURCE 700 /* realpath */
#include "sim/cli/setup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/command.h"
#include "sim/trace/trace.h"

struct run *setup_open(const char *scenario, const struct options_list *sets,
                       const struct options_list *more, const char *seed, struct arena *arena,
                       struct errors *errors)
{
    return setup_open_measuring(scenario, sets, more, seed, NULL, arena, errors);
}

struct run *setup_open_measuring(const char *scenario, const struct options_list *sets,
                                 const struct options_list *more, const char *seed,
                                 const struct capacity_ask *ask, struct arena *arena,
                                 struct errors *errors)
{
    size_t count = sets->count + (more ? more->count : 0) + 1;
    const char **all = arena_alloc(arena, count * sizeof *all);
    count = 0;
    for (size_t i = 0; i < sets->count; i++)
        all[count++] = sets->items[i];
    for (size_t i = 0; more && i < more->count; i++)
        all[count++] = more->items[i];
    if (seed)
        all[count++] = arena_printf(arena, "seed=%s", seed);
    struct run_request request = {.scenario = scenario,
                                  .folders = command_scenario_folders(arena),
                                  .sets = all,
                                  .set_count = count,
                                  .capacity = ask};
    return run_open(&request, errors);
}

const char *setup_target_path(const char *path, struct arena *arena)
{
    struct stat status;
    if (!path || lstat(path, &status) != 0 || !S_ISLNK(status.st_mode) ||
        stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return path;
    char *real = realpath(path, NULL);
    const char *copy = real ? arena_copy(arena, real) : path;
    free(real);
    return copy;
}

static void folder_stat(const char *path, struct stat *status)
{
    struct arena arena;
    arena_init(&arena);
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_copyn(&arena, path, (size_t)(slash - path) + 1) : ".";
    if (stat(folder, status) != 0)
        *status = (struct stat){0};
    arena_free(&arena);
}

/* "a" and "./a" are the same, also before there is such a file. */
static bool same_file(const char *a, const char *b)
{
    struct stat status_a, status_b;
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    bool same_name = strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) == 0;
    if (stat(a, &status_a) != 0 || stat(b, &status_b) != 0) {
        if (!same_name)
            return false;
        folder_stat(a, &status_a);
        folder_stat(b, &status_b);
    }
    return status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

static bool target_check(const struct setup_target *target, const struct run *run, bool force,
                         struct errors *errors)
{
    if (run && run_reads(run, target->path)) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "cannot write %s: the run reads it: scenario, trace, model or GPU",
                   target->path);
        return false;
    }
    return trace_target_check(target->path, force, errors);
}

bool setup_targets_check(const struct setup_target *targets, size_t count, const struct run *run,
                         bool force, struct errors *errors)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        const struct setup_target *target = &targets[i];
        if (!target->path || (!target->binary && trace_target_is_device(target->path)))
            continue;
        ok &= target_check(target, run, force, errors);
        for (size_t j = 0; j < i; j++) {
            if (targets[j].path && same_file(target->path, targets[j].path)) {
                errors_add(errors, SEVERITY_ERROR, NULL, "two outputs would go to %s",
                           target->path);
                ok = false;
            }
        }
    }
    return ok;
}

void setup_errors_print(struct errors *errors)
{
    errors_sort(errors);
    errors_print(errors, stderr);
}
