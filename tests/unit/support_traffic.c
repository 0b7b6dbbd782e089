#include "tests/unit/support_traffic.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void traffic_set(const struct field *fields, void *base, char *path, char *text,
                        struct arena *arena);

/* "1,2,3", or structs as "at:1 h|factor:3,at:2 h|factor:4". */
static void list_set(const struct field *field, struct field_list *list, char *text,
                     struct arena *arena)
{
    char why[200];
    enum { ITEMS_MAX = 168 };
    list->items = arena_alloc(arena, ITEMS_MAX * field->item_size);
    list->count = 0;
    for (char *save = NULL, *item = strtok_r(text, ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        ck_assert_uint_lt(list->count, ITEMS_MAX);
        char *target = (char *)list->items + list->count++ * field->item_size;
        if (field->item->kind != FIELD_STRUCT) {
            ck_assert_msg(field_parse(field->item, item, target, arena, why, sizeof why), "%s: %s",
                          item, why);
            continue;
        }
        field_defaults(field->item->fields, target, arena);
        for (char *rest = NULL, *pair = strtok_r(item, "|", &rest); pair;
             pair = strtok_r(NULL, "|", &rest)) {
            char *colon = strchr(pair, ':');
            ck_assert_ptr_nonnull(colon);
            *colon = '\0';
            traffic_set(field->item->fields, target, pair, colon + 1, arena);
        }
    }
}

static void variant_set(const struct field *field, struct variant_value *value, const char *name,
                        struct arena *arena)
{
    for (size_t i = 0; field->variants[i]; i++) {
        if (strcmp(field->variants[i]->name, name) != 0)
            continue;
        value->type = field->variants[i];
        value->config = value->type->size ? arena_alloc(arena, value->type->size) : NULL;
        if (value->type->fields)
            field_defaults(value->type->fields, value->config, arena);
        return;
    }
    ck_abort_msg("no variant '%s' of %s", name, field->name);
}

static void traffic_set(const struct field *fields, void *base, char *path, char *text,
                        struct arena *arena)
{
    char *dot = strchr(path, '.');
    if (dot)
        *dot = '\0';
    size_t offset = 0;
    const struct field *f = field_find(fields, path, &offset);
    ck_assert_msg(f != NULL, "no key '%s'", path);
    void *target = (char *)base + offset;
    struct variant_value *variant = target;
    char why[200];
    if (dot && f->kind == FIELD_VARIANT)
        traffic_set(variant->type->fields, variant->config, dot + 1, text, arena);
    else if (dot)
        traffic_set(f->fields, target, dot + 1, text, arena);
    else if (f->kind == FIELD_VARIANT)
        variant_set(f, variant, text, arena);
    else if (f->kind == FIELD_LIST)
        list_set(f, target, text, arena);
    else
        ck_assert_msg(field_parse(f, text, target, arena, why, sizeof why), "%s=%s: %s", path, text,
                      why);
}

struct traffic_config *traffic_make(struct arena *arena, const char *spec)
{
    struct traffic_config *config = arena_alloc(arena, sizeof *config);
    field_defaults(workload_class_fields, config, arena);
    char *copy = arena_copy(arena, spec);
    for (char *save = NULL, *pair = strtok_r(copy, ";", &save); pair;
         pair = strtok_r(NULL, ";", &save)) {
        pair += strspn(pair, " ");
        if (*pair == '\0')
            continue;
        char *equals = strchr(pair, '=');
        ck_assert_ptr_nonnull(equals);
        *equals = '\0';
        traffic_set(workload_class_fields, config, pair, equals + 1, arena);
    }
    return config;
}

struct workload *traffic_open(const struct traffic_config *const *classes, size_t count,
                              int64_t horizon_ps, struct errors *errors)
{
    struct workload_config config = {
        .classes = classes,
        .class_count = count,
        .seed = 1,
        .horizon_ps = horizon_ps,
    };
    return workload_open(&config, NULL, errors);
}

void traffic_expect_error(const struct errors *errors, uint32_t line, uint32_t column,
                          const char *text)
{
    for (size_t i = 0; i < errors->count; i++) {
        const struct error *e = &errors->items[i];
        if (strstr(e->message, text) && (!line || e->pos.line == line) &&
            (!column || e->pos.column == column))
            return;
    }
    errors_print(errors, stderr);
    ck_abort_msg("no error '%s' at %u:%u", text, line, column);
}

const char *traffic_temp(const char *suffix)
{
    static char path[256];
    snprintf(path, sizeof path, "test-traffic-%ld-%s", (long)getpid(), suffix);
    return path;
}

const char *traffic_shared(const char *relative)
{
    static char path[1024];
    const char *shared = getenv("FLEETSIM_SHARED");
    if (shared)
        snprintf(path, sizeof path, "%s/%s", shared, relative);
    else
        snprintf(path, sizeof path, "%s/../shared/%s", FLEETSIM_SOURCE_DIR, relative);
    if (access(path, R_OK) == 0)
        return path;
    printf("SKIP: %s absent\n", path);
    return NULL;
}
