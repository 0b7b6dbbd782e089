#include "sim/cli/sweep_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/errors.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

/* A whole number from low to high that is all of text. */
static bool number_read(const char *text, unsigned long low, unsigned long high,
                        unsigned long *number)
{
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoul(text, &end, 10);
    return *end == '\0' && *number >= low && *number <= high;
}

bool sweep_options_jobs(const char *text, size_t *jobs)
{
    unsigned long number;
    if (text) {
        if (!number_read(text, 1, SWEEP_POOL_JOBS_MAX, &number)) {
            fprintf(stderr, "fleetsim sweep: --jobs is a number from 1 to %d\n",
                    SWEEP_POOL_JOBS_MAX);
            return false;
        }
        *jobs = number;
        return true;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    *jobs = online < 1 ? 1 : online > SWEEP_POOL_JOBS_MAX ? SWEEP_POOL_JOBS_MAX : (size_t)online;
    if (number_read(getenv("SLURM_CPUS_PER_TASK"), 1, SWEEP_POOL_JOBS_MAX, &number) ||
        number_read(getenv("SLURM_CPUS_ON_NODE"), 1, SWEEP_POOL_JOBS_MAX, &number))
        *jobs = number;
    return true;
}

bool sweep_options_memory(const char *text, int64_t file_bytes, size_t jobs, uint64_t *bytes)
{
    char why[256];
    int64_t given = file_bytes;
    if (text && (!units_parse_int(text, UNIT_BYTES, &given, why, sizeof why) || given < 1 << 20)) {
        fputs("fleetsim sweep: --memory is a size of at least 1 MiB, such as '2 GiB'\n", stderr);
        return false;
    }
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *bytes = 0;
    if (given != FIELD_INT_UNSET)
        *bytes = (uint64_t)given;
    else if (pages > 0 && page > 0)
        *bytes = (uint64_t)((double)pages * (double)page * 0.9 / (double)jobs);
    return true;
}

bool sweep_options_time(const char *text, int64_t file_ps, double *seconds)
{
    char why[256];
    int64_t given = file_ps;
    if (text && (!units_parse_time(text, &given, why, sizeof why) || given < PS_PER_SECOND ||
                 given > HORIZON_MAX_PS)) {
        fputs("fleetsim sweep: --time-limit is a time from 1 s to 100 days, such as '10 min'\n",
              stderr);
        return false;
    }
    *seconds = given == FIELD_INT_UNSET ? 0 : time_seconds(given);
    return true;
}

bool sweep_options_replications(const char *text, int64_t *count)
{
    unsigned long number = 0;
    if (text && !number_read(text, 1, SWEEP_FILE_REPLICATIONS_MAX, &number)) {
        fprintf(stderr, "fleetsim sweep: --replications is a number from 1 to %d\n",
                SWEEP_FILE_REPLICATIONS_MAX);
        return false;
    }
    *count = (int64_t)number;
    return true;
}

/* The place of this task among those of its Slurm job array. */
static bool array_shard(size_t *shard, size_t *shards)
{
    unsigned long id, count, first = 0, step = 1;
    const char *text = getenv("SLURM_ARRAY_TASK_ID");
    if (!text)
        return true;
    if (getenv("SLURM_ARRAY_TASK_MIN") &&
        !number_read(getenv("SLURM_ARRAY_TASK_MIN"), 0, 1000000000, &first))
        first = 0;
    if (getenv("SLURM_ARRAY_TASK_STEP") &&
        !number_read(getenv("SLURM_ARRAY_TASK_STEP"), 1, 1000000000, &step))
        step = 1;
    if (!number_read(text, first, 1000000000, &id) ||
        !number_read(getenv("SLURM_ARRAY_TASK_COUNT"), 1, SWEEP_POINTS_RUNS_MAX, &count) ||
        (id - first) % step != 0 || (id - first) / step >= count) {
        fputs(
            "fleetsim sweep: the variables SLURM_ARRAY_TASK_ID, _MIN, _STEP and _COUNT do not say "
            "which shard this is; --shard i/n does\n",
            stderr);
        return false;
    }
    *shard = (id - first) / step;
    *shards = count;
    return true;
}

bool sweep_options_shard(const char *text, size_t *shard, size_t *shards)
{
    char *end;
    *shard = *shards = 0;
    if (!text)
        return array_shard(shard, shards);
    unsigned long index = strtoul(text, &end, 10), count;
    if (text[0] < '0' || text[0] > '9' || *end != '/' ||
        !number_read(end + 1, 1, SWEEP_POINTS_RUNS_MAX, &count) || index >= count) {
        fputs("fleetsim sweep: --shard is i/n with i from 0 to n-1, such as 0/4\n", stderr);
        return false;
    }
    *shard = index;
    *shards = count;
    return true;
}

/* ---- --only -------------------------------------------------------------------------------------
 */

struct chooser {
    const struct sweep_plan *plan;
    bool *points;                      /* [points]: named by number */
    bool by_number;                    /* any was */
    bool *values[SWEEP_FILE_AXES_MAX]; /* [axis count]: named by value; NULL: none was */
    struct arena *arena;
};

static bool points_take(struct chooser *c, const char *text)
{
    char *end;
    const char *at = text[0] == 'p' ? text + 1 : text;
    if (at[0] < '0' || at[0] > '9')
        return false;
    unsigned long first = strtoul(at, &end, 10), last = first;
    if (*end == '-') {
        at = end[1] == 'p' ? end + 2 : end + 1;
        last = at[0] >= '0' && at[0] <= '9' ? strtoul(at, &end, 10) : 0;
    }
    if (*end != '\0' || last < first || last >= c->plan->points)
        return false;
    c->by_number = true;
    for (unsigned long p = first; p <= last; p++)
        c->points[p] = true;
    return true;
}

static bool value_take(struct chooser *c, const char *text, const char *equals)
{
    const char *name = arena_copyn(c->arena, text, (size_t)(equals - text));
    const char *names[SWEEP_FILE_AXES_MAX + 1] = {NULL};
    for (size_t i = 0; i < c->plan->input_count; i++) {
        const struct sweep_input *input = &c->plan->inputs[i];
        names[i] = input->axis.name;
        if (strcmp(name, input->axis.name) != 0)
            continue;
        size_t value = sweep_points_find(input, equals + 1, 0);
        if (value != SIZE_MAX && !c->values[i])
            c->values[i] = arena_alloc(c->arena, input->axis.count * sizeof(bool));
        for (size_t k = value; k != SIZE_MAX; k = sweep_points_find(input, equals + 1, k + 1))
            c->values[i][k] = true;
        if (value != SIZE_MAX)
            return true;
        fprintf(stderr, "fleetsim sweep: --only '%s': the axis '%s' has the values", text, name);
        for (size_t k = 0; k < input->axis.count && k < 20; k++)
            fprintf(stderr, "%s %s", k ? "," : "", input->axis.columns[0].labels[k]);
        fputs(input->axis.count > 20 ? ", …\n" : "\n", stderr);
        return false;
    }
    const char *near = errors_nearest(name, names);
    fprintf(stderr, "fleetsim sweep: --only '%s': no axis is called '%s'", text, name);
    if (near)
        fprintf(stderr, ", did you mean '%s'?", near);
    fputc('\n', stderr);
    return false;
}

static bool point_chosen(const struct chooser *c, size_t point)
{
    if (c->by_number && !c->points[point])
        return false;
    for (size_t i = 0; i < c->plan->input_count; i++) {
        size_t value = sweep_points_value(c->plan, point, i);
        if (c->values[i] && (value == SIZE_MAX || !c->values[i][value]))
            return false;
    }
    return true;
}

bool sweep_options_only(const struct options_list *only, const struct sweep_plan *plan,
                        const bool **selected, struct arena *arena)
{
    struct chooser c = {.plan = plan, .arena = arena};
    bool ok = true;
    *selected = NULL;
    if (only->count == 0)
        return true;
    c.points = arena_alloc(arena, plan->points * sizeof *c.points);
    for (size_t i = 0; i < only->count; i++) {
        const char *text = only->items[i], *equals = strchr(text, '=');
        if (equals) {
            ok &= value_take(&c, text, equals);
        } else if (!points_take(&c, text)) {
            fprintf(stderr,
                    "fleetsim sweep: --only '%s' is neither a point from 0 to %zu, a range such as "
                    "3-7, nor AXIS=VALUE\n",
                    text, plan->points - 1);
            ok = false;
        }
    }
    bool *runs = arena_alloc(arena, plan->runs * sizeof *runs);
    size_t count = 0;
    for (size_t run = 0; run < plan->runs; run++) {
        runs[run] = point_chosen(&c, run / plan->replications);
        count += runs[run];
    }
    if (ok && count == 0) {
        fputs("fleetsim sweep: --only leaves no point\n", stderr);
        ok = false;
    }
    *selected = runs;
    return ok;
}
