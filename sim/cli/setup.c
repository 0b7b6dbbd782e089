#include "sim/cli/setup.h"

#include <string.h>
#include <sys/stat.h>

#include "sim/cli/command.h"
#include "sim/trace/trace.h"

struct run *setup_open(const char *scenario, const struct options_list *sets,
                       const struct options_list *more, const char *seed, struct arena *arena,
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
                                  .set_count = count};
    return run_open(&request, errors);
}

static bool same_file(const char *a, const char *b)
{
    struct stat status_a, status_b;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &status_a) == 0 && stat(b, &status_b) == 0 &&
           status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

bool setup_targets_check(const char *const *paths, size_t count, const char *scenario, bool force,
                         struct errors *errors)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        if (!paths[i])
            continue;
        if (same_file(paths[i], scenario)) {
            errors_add(errors, SEVERITY_ERROR, NULL, "%s is the scenario: it is not overwritten",
                       paths[i]);
            ok = false;
            continue;
        }
        ok &= trace_target_check(paths[i], force, errors);
        for (size_t j = 0; j < i; j++) {
            if (paths[j] && same_file(paths[i], paths[j])) {
                errors_add(errors, SEVERITY_ERROR, NULL, "two outputs would go to %s", paths[i]);
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
