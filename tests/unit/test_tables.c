/* The scenario's own field tables are well made: every key is unique in its mapping, has a meaning
 * for explain and the reference, and a default that its own range accepts. */
#include <string.h>

#include "sim/run/config.h"
#include "tests/unit/suite_run.h"

enum { NAMES_MAX = 200, DEPTH_MAX = 16 };

struct names {
    const char *list[NAMES_MAX];
    size_t count;
    size_t keys; /* of all tables */
};

static void name_take(struct names *names, const char *name, const char *path)
{
    for (size_t i = 0; i < names->count; i++)
        ck_assert_msg(strcmp(names->list[i], name) != 0, "%s has two keys '%s'", path, name);
    ck_assert_uint_lt(names->count, NAMES_MAX);
    names->list[names->count++] = name;
}

static void fields_judge(const struct field *fields, struct names *names, const char *path,
                         int depth);

static void variants_judge(const struct field *field, const char *path, int depth, size_t *keys)
{
    struct arena arena;
    ck_assert_msg(field->tag && field->variants, "%s: no tag or no variants", path);
    ck_assert_msg(!field->fallback || field_variant(field, field->fallback) ||
                      field_bare(field, field->fallback),
                  "%s: default", path);
    ck_assert_msg(!field->bare || field_variant(field, field->bare), "%s: bare", path);
    arena_init(&arena);
    for (size_t i = 0; field->variants[i]; i++) {
        const struct variant *variant = field->variants[i];
        struct variant_value value;
        struct names own = {.count = 0};
        ck_assert_msg(field_variant(field, variant->name) == variant, "%s: two '%s'", path,
                      variant->name);
        ck_assert_msg(variant->doc && variant->doc[0], "%s: '%s' has no doc", path, variant->name);
        ck_assert_msg(!variant->fields || variant->size > 0, "%s: '%s'", path, variant->name);
        name_take(&own, field->tag, path);
        if (variant->fields)
            fields_judge(variant->fields, &own, path, depth + 1);
        *keys += own.keys;
        field_variant_init(variant, &value, &arena); /* a bad default ends the program */
    }
    for (size_t i = 0; field->later && field->later[i]; i++)
        ck_assert_msg(!field_variant(field, field->later[i]), "%s: '%s' is built", path,
                      field->later[i]);
    arena_free(&arena);
}

static void field_judge(const struct field *field, const char *path, int depth, size_t *keys)
{
    struct names own = {.count = 0};
    if (field->kind == FIELD_LIST) {
        ck_assert_msg(field->item && field->item_size > 0, "%s: no item", path);
        field_judge(field->item, path, depth, keys);
    } else if (field->kind == FIELD_STRUCT) {
        fields_judge(field->fields, &own, path, depth + 1);
        *keys += own.keys;
    } else if (field->kind == FIELD_VARIANT) {
        variants_judge(field, path, depth, keys);
    } else if (field->kind == FIELD_CHOICE) {
        ck_assert_msg(field->choices && field->choices[0], "%s: no choices", path);
    }
    if (field_has_min(field) && field_has_max(field))
        ck_assert_msg(field->min <= field->max, "%s: its range is empty", path);
}

static void fields_judge(const struct field *fields, struct names *names, const char *path,
                         int depth)
{
    ck_assert_int_lt(depth, DEPTH_MAX);
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        char own[512];
        if (field->kind == FIELD_INLINE) {
            fields_judge(field->fields, names, path, depth + 1);
            continue;
        }
        ck_assert_msg(field->name != NULL, "%s: a key without a name", path);
        snprintf(own, sizeof own, "%s%s%s", path, path[0] ? "." : "", field->name);
        ck_assert_msg(field->doc && field->doc[0], "%s has no doc", own);
        name_take(names, field->name, path);
        names->keys++;
        field_judge(field, own, depth, &names->keys);
    }
}

START_TEST(the_scenarios_tables_are_well_made)
{
    struct names names = {.count = 0};
    struct arena arena;
    struct run_config config;
    fields_judge(config_fields, &names, "", 0);
    ck_assert_uint_gt(names.keys, 50);
    arena_init(&arena);
    field_defaults(config_fields, &config, &arena); /* a bad default ends the program */
    arena_free(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_scenarios_tables_are_well_made, NULL};
    return suite_run("tables", tests, 60);
}
