#define _XOPEN_SOURCE 700 /* realpath */
#include "sim/run/sweep_check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "sim/run/catalog.h"
#include "sim/run/run.h"
#include "sim/run/run_models.h"
#include "sim/scenario/file.h"
#include "sim/scenario/node.h"
#include "sim/scenario/scenario.h"

enum { READ_BYTES = 1 << 16, REASON_MAX = 400 };

struct sweep_file_print {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    XXH128_hash_t hash;
};

static struct sweep_print print_of(XXH128_hash_t hash)
{
    struct sweep_print print;
    snprintf(print.hex, sizeof print.hex, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return print;
}

struct sweep_print sweep_check_bytes(const void *bytes, size_t size)
{
    return print_of(XXH3_128bits(bytes, size));
}

/* ---- files --------------------------------------------------------------------------------------
 */

static bool descriptor_hash(int fd, XXH128_hash_t *hash, uint64_t *bytes)
{
    XXH3_state_t *state = XXH3_createState();
    char *buffer = memory_alloc(READ_BYTES);
    ssize_t got = 1;
    XXH3_128bits_reset(state);
    while (got > 0) {
        got = read(fd, buffer, READ_BYTES);
        if (got > 0) {
            XXH3_128bits_update(state, buffer, (size_t)got);
            *bytes += (uint64_t)got;
        }
        if (got < 0 && errno == EINTR)
            got = 1;
    }
    *hash = XXH3_128bits_digest(state);
    free(buffer);
    XXH3_freeState(state);
    return got == 0;
}

bool sweep_check_file(const char *path, struct sweep_print *print, uint64_t *bytes)
{
    XXH128_hash_t hash;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *bytes = 0;
    bool ok = fd >= 0 && descriptor_hash(fd, &hash, bytes);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    if (ok)
        *print = print_of(hash);
    return ok;
}

static void print_remember(struct sweep_check *check, const struct sweep_file_print *print)
{
    if (check->file_count == check->file_capacity) {
        check->file_capacity = 2 * check->file_capacity + 8;
        struct sweep_file_print *grown =
            arena_alloc(check->arena, check->file_capacity * sizeof *grown);
        if (check->file_count > 0)
            memcpy(grown, check->files, check->file_count * sizeof *grown);
        check->files = grown;
    }
    check->files[check->file_count++] = *print;
}

/* The content of a file that can be read; false: it cannot (the run says why). */
static bool file_hash(struct sweep_check *check, const char *path, XXH128_hash_t *hash)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    for (size_t i = 0; ok && i < check->file_count; i++) {
        const struct sweep_file_print *known = &check->files[i];
        if (known->device == info.st_dev && known->inode == info.st_ino &&
            known->size == info.st_size && known->changed.tv_sec == info.st_mtim.tv_sec &&
            known->changed.tv_nsec == info.st_mtim.tv_nsec) {
            *hash = known->hash;
            close(fd);
            return true;
        }
    }
    uint64_t bytes = 0;
    ok = ok && descriptor_hash(fd, hash, &bytes);
    if (ok)
        print_remember(check, &(struct sweep_file_print){.device = info.st_dev,
                                                         .inode = info.st_ino,
                                                         .size = info.st_size,
                                                         .changed = info.st_mtim,
                                                         .hash = *hash});
    close(fd);
    return ok;
}

/* What a scenario reads beside itself. */
struct reading {
    struct sweep_check *check;
    XXH3_state_t *state;
    bool found; /* a path of its own is among them */
};

static void path_take(struct reading *r, const char *path)
{
    XXH128_hash_t hash = {0};
    if (!path || !file_hash(r->check, path, &hash))
        return;
    XXH3_128bits_update(r->state, &hash, sizeof hash);
}

static void value_take(struct reading *r, const struct field *field, const void *value);

static void fields_take(struct reading *r, const struct field *fields, const void *base)
{
    for (const struct field *f = fields; f && f->kind != FIELD_END; f++)
        value_take(r, f, (const char *)base + f->offset);
}

/* Every FIELD_PATH of a filled struct. Recursion is bounded by the tables. */
static void value_take(struct reading *r, const struct field *field, const void *value)
{
    const struct variant_value *variant = value;
    const struct field_list *list = value;
    switch (field->kind) {
    case FIELD_PATH:
        r->found |= *(const char *const *)value != NULL;
        path_take(r, *(const char *const *)value);
        return;
    case FIELD_STRUCT:
    case FIELD_INLINE:
        fields_take(r, field->fields, value);
        return;
    case FIELD_VARIANT:
        if (variant->type && variant->config)
            fields_take(r, variant->type->fields, variant->config);
        return;
    case FIELD_LIST:
        for (size_t i = 0; i < list->count; i++)
            value_take(r, field->item, (const char *)list->items + i * field->item_size);
        return;
    default:
        return;
    }
}

/* A model or a GPU: a name of the catalogue, or a path, from the scenario or from here. */
static void reference_take(struct reading *r, const char *name, enum catalog_kind kind)
{
    if (!name)
        return;
    struct arena *arena = r->check->arena;
    const char *folder = file_folder(r->check->base, arena), *root = catalog_root(arena);
    const char *places[] = {name, arena_printf(arena, "%s/config.json", name),
                            arena_printf(arena, "%s/%s", folder, name),
                            arena_printf(arena, "%s/%s/config.json", folder, name)};
    if (!strchr(name, '/') && root)
        path_take(r, arena_printf(arena, "%s/%s/%s.yaml", root, catalog_folders[kind], name));
    for (size_t i = 0; strchr(name, '/') && i < sizeof places / sizeof places[0]; i++)
        path_take(r, places[i]);
}

/* Returns whether the scenario names files of its own. */
static bool config_take(struct sweep_check *check, XXH3_state_t *state,
                        const struct run_config *config)
{
    struct reading r = {.check = check, .state = state};
    fields_take(&r, config_fields, config);
    for (size_t p = 0; p < config->fleet.pools.count; p++) {
        reference_take(&r, config_pool(config, p)->model, CATALOG_LLM);
        reference_take(&r, config_pool(config, p)->gpu, CATALOG_GPU);
    }
    return r.found;
}

/* ---- messages -----------------------------------------------------------------------------------
 */

/* Where a byte of a set's text was written in sweep.yaml. */
static void set_place(const struct sweep_check *check, const struct sweep_set *set, size_t at,
                      struct source_pos *pos)
{
    size_t path = strlen(set->key->path);
    uint32_t offset = set->key->offset;
    if (at > path) {
        offset = set->value->offset;
        for (size_t i = 0; i < set->value->mark_count; i++)
            if (set->value->marks[i].text + path + 1 <= at)
                offset = set->value->marks[i].offset;
    }
    source_place(&check->plan->file->source, offset, pos);
}

static bool pos_same(const struct source_pos *a, const struct source_pos *b)
{
    bool files = a->file && b->file ? strcmp(a->file, b->file) == 0 : a->file == b->file;
    return files && a->line == b->line && a->column == b->column;
}

static bool said_already(const struct errors *errors, const struct error *error,
                         const struct source_pos *pos)
{
    for (size_t i = 0; i < errors->count; i++)
        if (errors->items[i].severity == error->severity && pos_same(&errors->items[i].pos, pos) &&
            strcmp(errors->items[i].message, error->message) == 0)
            return true;
    return false;
}

/* A path below the working directory as people write it. */
static const char *path_shorten(const struct sweep_check *check, const char *path)
{
    size_t length = strlen(check->here);
    bool below = path && length > 1 && strncmp(path, check->here, length) == 0;
    return below && path[length] == '/' ? path + length + 1 : path;
}

void sweep_check_translate(const struct sweep_check *check, size_t point, const struct errors *from,
                           struct errors *to)
{
    struct arena arena;
    arena_init(&arena);
    size_t count;
    const struct sweep_set *sets = sweep_points_sets(check->plan, point, &count, &arena);
    for (size_t i = 0; i < from->count; i++) {
        const struct error *error = &from->items[i];
        struct source_pos pos = error->pos;
        for (size_t k = 0; k < count && error->pos.file; k++) {
            const char *name = arena_printf(&arena, "--set '%s'", node_quote(sets[k].text, &arena));
            if (strcmp(name, error->pos.file) == 0 && error->pos.column > 0)
                set_place(check, &sets[k], error->pos.column - 1, &pos);
        }
        pos.file = path_shorten(check, pos.file);
        if (!said_already(to, error, &pos))
            errors_add(to, error->severity, pos.file ? &pos : NULL, "%s", error->message);
    }
    arena_free(&arena);
}

const char *sweep_check_reason(const struct errors *errors, struct arena *arena)
{
    const struct error *first = NULL;
    for (size_t i = 0; i < errors->count && !first; i++)
        if (errors->items[i].severity == SEVERITY_ERROR)
            first = &errors->items[i];
    if (!first)
        return "no reason was given";
    char where[256] = "";
    if (first->pos.file && first->pos.line > 0)
        snprintf(where, sizeof where, "%s:%u:%u: ", first->pos.file, (unsigned)first->pos.line,
                 (unsigned)first->pos.column);
    else if (first->pos.file)
        snprintf(where, sizeof where, "%s: ", first->pos.file);
    size_t more = errors->error_count - 1;
    char *reason = more > 0 ? arena_printf(arena, "%s%.*s (and %zu more error%s)", where,
                                           REASON_MAX, first->message, more, more == 1 ? "" : "s")
                            : arena_printf(arena, "%s%.*s", where, REASON_MAX, first->message);
    node_clean(reason);
    return reason;
}

/* ---- points -------------------------------------------------------------------------------------
 */

bool sweep_check_init(struct sweep_check *check, const struct sweep_plan *plan,
                      const char *const *sets, size_t set_count, struct arena *arena,
                      struct errors *errors)
{
    char *here = getcwd(NULL, 0), *base;
    struct errors *said = check->said;
    *check = (struct sweep_check){
        .plan = plan, .sets = sets, .set_count = set_count, .arena = arena, .said = said};
    check->here = arena_copy(arena, here ? here : "");
    free(here);
    const char *found = file_find(plan->file->base, NULL, arena, errors);
    base = found ? realpath(found, NULL) : NULL;
    if (found && !base)
        errors_add(errors, SEVERITY_ERROR, NULL, "the base scenario %s: %s", plan->file->base,
                   strerror(errno));
    if (!base)
        return false;
    check->base = arena_copy(arena, base);
    free(base);
    struct stat info;
    if (stat(check->base, &info) == 0 && !S_ISREG(info.st_mode)) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "the base scenario %s is no file that every run can read anew", check->base);
        return false;
    }
    XXH128_hash_t hash;
    if (!file_hash(check, "/proc/self/exe", &hash)) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read /proc/self/exe, the program itself");
        return false;
    }
    check->program = print_of(hash);
    return true;
}

const char *const *sweep_check_sets(const struct sweep_check *check, size_t run, size_t *count,
                                    struct arena *arena)
{
    size_t own, replications = check->plan->replications;
    const struct sweep_set *sets = sweep_points_sets(check->plan, run / replications, &own, arena);
    const char **all = arena_alloc(arena, (check->set_count + own + 1) * sizeof *all);
    *count = 0;
    for (size_t i = 0; i < check->set_count; i++)
        all[(*count)++] = check->sets[i];
    for (size_t i = 0; i < own; i++)
        all[(*count)++] = sets[i].text;
    if (replications > 1)
        all[(*count)++] = arena_printf(arena, "replication=%zu", run % replications);
    return all;
}

/* The scenario as far as it can be checked without reading its traces; NULL with errors. */
static const char *scenario_resolve(const struct scenario_request *request, struct arena *arena,
                                    struct errors *errors)
{
    struct run_config *config = request->target;
    struct scenario *scenario = scenario_load(request, arena, errors);
    if (!scenario)
        return NULL;
    struct locator where = scenario_locator(scenario);
    bool ok = config_validate(config, &where, errors);
    for (size_t p = 0; p < config->fleet.pools.count; p++) {
        struct step_model model;
        ok &= run_models_build((struct pool_config *)config->fleet.pools.items + p, p, scenario,
                               &model, arena, errors);
    }
    const char *resolved = ok ? field_yaml(config_fields, config, arena) : NULL;
    scenario_free(scenario);
    return resolved;
}

static double requests_expected(const struct run *run)
{
    double sum = 0;
    for (size_t c = 0; c < run_config(run)->workload.count; c++)
        sum += workload_expected(run_workload(run), c, 0, run_horizon(run));
    return sum;
}

/* Absorbs what the point is made of into state; false with errors. */
static bool point_take(struct sweep_check *check, const char *const *sets, size_t count,
                       XXH3_state_t *state, double *requests, struct errors *errors)
{
    if (!check->reads_traces) {
        struct run_request request = {.scenario = check->base, .sets = sets, .set_count = count};
        struct run *run = run_open(&request, errors);
        if (!run)
            return false;
        *requests = requests_expected(run);
        check->reads_traces = config_take(check, state, run_config(run));
        if (!check->reads_traces)
            XXH3_128bits_update(state, run_resolved(run), strlen(run_resolved(run)));
        run_free(run);
        if (!check->reads_traces)
            return true;
        XXH3_128bits_reset(state); /* as for the points that follow */
    }
    struct arena arena;
    struct run_config config;
    arena_init(&arena);
    struct scenario_request request = {.name = check->base,
                                       .sets = sets,
                                       .set_count = count,
                                       .root = config_fields,
                                       .target = &config};
    const char *resolved = scenario_resolve(&request, &arena, errors);
    if (resolved) {
        config_take(check, state, &config);
        XXH3_128bits_update(state, resolved, strlen(resolved));
    }
    arena_free(&arena);
    return resolved != NULL;
}

struct sweep_checked sweep_check_point(struct sweep_check *check, size_t point)
{
    struct sweep_checked checked = {.requests = NAN};
    struct errors errors, translated;
    XXH3_state_t *state = XXH3_createState();
    size_t count, own;
    errors_init(&errors);
    errors_init(&translated);
    struct arena arena;
    arena_init(&arena);
    const char *const *sets =
        sweep_check_sets(check, point * check->plan->replications, &count, &arena);
    XXH3_128bits_reset(state);
    checked.valid = point_take(check, sets, count, state, &checked.requests, &errors);
    if (!checked.valid) {
        XXH3_128bits_reset(state);
        const struct sweep_set *texts = sweep_points_sets(check->plan, point, &own, &arena);
        for (size_t i = 0; i < own; i++)
            XXH3_128bits_update(state, texts[i].text, strlen(texts[i].text) + 1);
    }
    XXH3_128bits_update(state, check->program.hex, sizeof check->program.hex);
    checked.print = print_of(XXH3_128bits_digest(state));
    sweep_check_translate(check, point, &errors, &translated);
    translated.error_count = errors.error_count;
    if (!checked.valid)
        checked.reason = sweep_check_reason(&translated, check->arena);
    sweep_check_translate(check, point, &errors, check->said);
    XXH3_freeState(state);
    arena_free(&arena);
    errors_free(&translated);
    errors_free(&errors);
    return checked;
}

bool sweep_check_still(const struct sweep_check *check, size_t point,
                       const struct sweep_print *print)
{
    struct arena arena;
    struct errors said;
    arena_init(&arena);
    errors_init(&said);
    struct sweep_check again = *check;
    again.arena = &arena;
    again.said = &said;
    again.files = NULL; /* its own: what is known of them belongs to another arena */
    again.file_count = again.file_capacity = 0;
    if (check->file_count > 0) {
        again.files = arena_alloc(&arena, check->file_count * sizeof *again.files);
        memcpy(again.files, check->files, check->file_count * sizeof *again.files);
        again.file_count = again.file_capacity = check->file_count;
    }
    struct sweep_checked now = sweep_check_point(&again, point);
    bool same = now.valid && strcmp(now.print.hex, print->hex) == 0;
    errors_free(&said);
    arena_free(&arena);
    return same;
}

struct sweep_print sweep_check_print(const struct sweep_plan *plan, size_t run,
                                     const struct sweep_checked *point)
{
    if (plan->replications == 1)
        return point->print;
    char text[SWEEP_PRINT_MAX + 32];
    int length = snprintf(text, sizeof text, "%s r%zu", point->print.hex, run % plan->replications);
    return sweep_check_bytes(text, (size_t)length);
}
