#include "sim/run/cold_start_preset.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/run/catalog.h"

#define TEXT(member, flags_, doc_)                                                                 \
    {                                                                                              \
        .name = #member, .kind = FIELD_TEXT, .flags = flags_,                                      \
        .offset = offsetof(struct cold_start_preset, member), .doc = doc_                          \
    }

const struct field cold_start_preset_fields[] = {
    TEXT(name, FIELD_REQUIRED, "What was started"),
    TEXT(hardware, FIELD_REQUIRED, "On what"),
    TEXT(engine, FIELD_REQUIRED, "By which engine and loader"),
    TEXT(source, FIELD_REQUIRED, "Who measured it"),
    TEXT(date, FIELD_REQUIRED, "When"),
    TEXT(notes, FIELD_OPTIONAL, "How the phases follow from what was published"),
    {.kind = FIELD_INLINE,
     .offset = offsetof(struct cold_start_preset, phases),
     .fields = cold_start_fields},
    {0},
};

/* Bytes of a phase's value in struct cold_start_config. */
static size_t value_size(const struct field *field)
{
    switch (field->kind) {
    case FIELD_VARIANT:
        return sizeof(struct variant_value);
    case FIELD_REAL:
        return sizeof(double);
    case FIELD_INT:
    case FIELD_TIME:
        return sizeof(int64_t);
    default:
        check(field->kind == FIELD_TEXT);
        return sizeof(const char *);
    }
}

const struct cold_start_preset *cold_start_preset_load(const char *name, uint64_t *stated,
                                                       struct arena *arena, struct errors *errors,
                                                       const struct source_pos *where)
{
    const char *path = catalog_path(CATALOG_COLD_START, name, arena, errors, where);
    if (path == NULL) {
        return NULL;
    }
    static const char *const no_folders[] = {NULL};
    struct cold_start_preset *preset = arena_alloc(arena, sizeof *preset);
    struct scenario_request request = {
        .name = path, .folders = no_folders, .root = cold_start_preset_fields, .target = preset};
    struct scenario *file = scenario_load(&request, arena, errors);
    if (file == NULL) {
        return NULL;
    }
    *stated = 0;
    for (size_t i = 0; cold_start_fields[i].kind != FIELD_END; i++) {
        if (scenario_wrote(file, cold_start_fields[i].name)) {
            *stated |= UINT64_C(1) << i;
        }
    }
    scenario_free(file);
    if (preset->phases.preset != NULL) {
        struct source_pos pos = {.file = path};
        errors_add(errors, SEVERITY_ERROR, &pos, "a preset cannot name another preset");
        return NULL;
    }
    return preset;
}

static bool preset_apply(struct pool_config *pool, size_t index, const struct scenario *scenario,
                         const struct locator *where, struct arena *arena, struct errors *errors)
{
    char path[128];
    struct source_pos pos;
    snprintf(path, sizeof path, "fleet.pools[%zu].cold_start.preset", index);
    where->find(where->self, path, &pos);
    uint64_t stated;
    const struct cold_start_preset *preset =
        cold_start_preset_load(pool->cold_start.preset, &stated, arena, errors, &pos);
    if (preset == NULL) {
        return false;
    }
    bool taken = false;
    for (size_t i = 0; cold_start_fields[i].kind != FIELD_END; i++) {
        const struct field *field = &cold_start_fields[i];
        snprintf(path, sizeof path, "fleet.pools[%zu].cold_start.%s", index, field->name);
        if ((stated >> i & 1) != 0 && !scenario_wrote(scenario, path)) {
            memcpy((char *)&pool->cold_start + field->offset,
                   (const char *)&preset->phases + field->offset, value_size(field));
            taken = true;
        }
    }
    if (!taken) {
        errors_add(errors, SEVERITY_WARNING, &pos,
                   "the scenario itself states all that preset '%s' does: it changes nothing",
                   pool->cold_start.preset);
    }
    return true;
}

bool cold_start_preset_apply(struct run_config *config, const struct scenario *scenario,
                             const struct locator *where, struct arena *arena,
                             struct errors *errors)
{
    bool ok = true;
    for (size_t i = 0; i < config->fleet.pools.count; i++) {
        struct pool_config *pool = (struct pool_config *)config->fleet.pools.items + i;
        if (pool->cold_start.preset != NULL) {
            ok &= preset_apply(pool, i, scenario, where, arena, errors);
        }
    }
    return ok;
}
