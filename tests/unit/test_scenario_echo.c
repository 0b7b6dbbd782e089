/* Property: whatever a struct holds, its echo loads back to the same struct. Random values of every
 * kind, drawn by walking the table. */
#include <math.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/scenario/scenario.h"
#include "tests/scenario_table.h"
#include "tests/unit/suite_run.h"

enum { STRUCTS = 3000, TEXT_LENGTH_MAX = 24 };

struct maker {
    struct arena *arena; /* borrowed */
    uint64_t key, entity, draw;
};

static uint64_t draw(struct maker *m, uint64_t below)
{
    uint64_t bits = rng_draw(m->key, m->entity, m->draw++).a;
    return below ? bits % below : bits;
}

static const char *text_make(struct maker *m)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         " ",
                                         "\n",
                                         "\t",
                                         "\"",
                                         "'",
                                         "\\",
                                         "#",
                                         ":",
                                         "-",
                                         "~",
                                         "{",
                                         "]",
                                         ",",
                                         "&",
                                         "*",
                                         "%",
                                         "@",
                                         "!",
                                         "\r",
                                         "/",
                                         "<",
                                         "é",
                                         "日",
                                         "null",
                                         "true",
                                         "\xc2\x85",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "\x01",
                                         "\x7f",
                                         "\xf0\x9f\x98\x80",
                                         "=",
                                         "|",
                                         ">",
                                         "?",
                                         "`",
                                         "  ",
                                         ": ",
                                         " #"};
    char text[TEXT_LENGTH_MAX * 4 + 1] = "";
    size_t used = 0;
    for (uint64_t i = draw(m, TEXT_LENGTH_MAX); i > 0; i--) {
        const char *piece = pieces[draw(m, sizeof pieces / sizeof pieces[0])];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", piece);
    }
    return arena_copy(m->arena, text);
}

/* Small, large and extreme numbers within the field's range. */
static double number_make(struct maker *m, const struct field *field)
{
    double low = field_has_min(field) ? field->min : -1e12;
    double high = field_has_max(field) ? field->max : 1e12;
    double unit = rng_unit_open(draw(m, 0));
    switch (draw(m, 4)) {
    case 0:
        return field->flags & FIELD_MIN_OPEN ? low + unit * (high - low) : low;
    case 1:
        return high;
    case 2:
        return low + (high - low) * unit * 1e-6;
    default:
        return low + (high - low) * unit;
    }
}

static void value_make(struct maker *m, const struct field *field, void *target);

static void fields_make(struct maker *m, const struct field *fields, void *base)
{
    for (const struct field *field = fields; field && field->kind != FIELD_END; field++)
        value_make(m, field, (char *)base + field->offset);
}

static int64_t whole_make(struct maker *m, const struct field *field)
{
    if ((field->flags & FIELD_UNLIMITED) && draw(m, 4) == 0)
        return FIELD_INT_UNLIMITED;
    if (!field_has_min(field) && !field_has_max(field) && draw(m, 2))
        return (int64_t)draw(m, UINT64_MAX - 2) - (INT64_MAX - 1);
    return (int64_t)number_make(m, field);
}

static void list_make(struct maker *m, const struct field *field, struct field_list *list)
{
    list->count = draw(m, 4);
    if (field_has_min(field) && (double)list->count < field->min)
        list->count = (size_t)field->min;
    list->items = arena_alloc(m->arena, list->count * field->item_size);
    for (size_t i = 0; i < list->count; i++) {
        void *item = (char *)list->items + i * field->item_size;
        if (field->item->kind == FIELD_STRUCT)
            fields_make(m, field->item->fields, item);
        else
            value_make(m, field->item, item);
    }
}

static void value_make(struct maker *m, const struct field *field, void *target)
{
    size_t choices = 0;
    if ((field->flags & FIELD_OPTIONAL) && draw(m, 3) == 0) {
        field_unset(field, target);
        return;
    }
    switch (field->kind) {
    case FIELD_BOOL:
        *(bool *)target = draw(m, 2);
        break;
    case FIELD_INT:
        *(int64_t *)target = whole_make(m, field);
        break;
    case FIELD_REAL:
        *(double *)target = number_make(m, field);
        break;
    case FIELD_TIME:
        *(int64_t *)target = time_from_seconds(number_make(m, field)) | (int64_t)draw(m, 2);
        if (*(int64_t *)target > time_from_seconds(field->max))
            *(int64_t *)target -= 1;
        break;
    case FIELD_STAMP:
        *(int64_t *)target = (int64_t)draw(m, UINT64_C(315537897600)) - INT64_C(62135596800);
        break;
    case FIELD_TEXT:
    case FIELD_PATH:
        *(const char **)target = text_make(m);
        break;
    case FIELD_CHOICE:
        while (field->choices[choices])
            choices++;
        *(int *)target = (int)draw(m, choices);
        break;
    case FIELD_VARIANT:
        while (field->variants[choices])
            choices++;
        field_variant_init(field->variants[draw(m, choices)], target, m->arena);
        fields_make(m, ((struct variant_value *)target)->type->fields,
                    ((struct variant_value *)target)->config);
        break;
    case FIELD_LIST:
        list_make(m, field, target);
        break;
    default:
        fields_make(m, field->fields, target);
    }
}

static void values_compare(const struct field *field, const void *a, const void *b);

static void fields_compare(const struct field *fields, const void *a, const void *b)
{
    for (const struct field *field = fields; field && field->kind != FIELD_END; field++)
        values_compare(field, (const char *)a + field->offset, (const char *)b + field->offset);
}

static void lists_compare(const struct field *field, const struct field_list *a,
                          const struct field_list *b)
{
    ck_assert_msg(a->count == b->count, "%s: %zu and %zu items", field->name, a->count, b->count);
    if (field->flags & FIELD_OPTIONAL)
        ck_assert_int_eq(a->items == NULL, b->items == NULL);
    for (size_t i = 0; i < a->count; i++)
        values_compare(field->item, (const char *)a->items + i * field->item_size,
                       (const char *)b->items + i * field->item_size);
}

/* Bit by bit, texts by content. */
static void values_compare(const struct field *field, const void *a, const void *b)
{
    const struct variant_value *one = a, *other = b;
    const char *name = field->name ? field->name : "item";
    switch (field->kind) {
    case FIELD_BOOL:
        ck_assert_msg(*(const bool *)a == *(const bool *)b, "%s", name);
        break;
    case FIELD_CHOICE:
        ck_assert_msg(*(const int *)a == *(const int *)b, "%s", name);
        break;
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_STAMP:
        ck_assert_msg(*(const int64_t *)a == *(const int64_t *)b, "%s", name);
        break;
    case FIELD_REAL:
        ck_assert_msg(isnan(*(const double *)a) == isnan(*(const double *)b) &&
                          (isnan(*(const double *)a) || *(const double *)a == *(const double *)b),
                      "%s: %.17g and %.17g", name, *(const double *)a, *(const double *)b);
        break;
    case FIELD_TEXT:
    case FIELD_PATH:
        ck_assert_pstr_eq(*(const char *const *)a, *(const char *const *)b);
        break;
    case FIELD_VARIANT:
        ck_assert_ptr_eq(one->type, other->type);
        if (one->type && one->type->fields)
            fields_compare(one->type->fields, one->config, other->config);
        break;
    case FIELD_LIST:
        lists_compare(field, a, b);
        break;
    default:
        fields_compare(field->fields, a, b);
    }
}

START_TEST(the_echo_loads_back_to_the_same_struct)
{
    for (uint64_t i = 0; i < STRUCTS; i++) {
        struct arena arena;
        struct errors errors;
        struct table_root made, loaded;
        arena_init(&arena);
        errors_init(&errors);
        struct maker maker = {.arena = &arena, .key = rng_key(1, 0, RNG_TEST, 77), .entity = i};
        fields_make(&maker, table_root_fields, &made);
        const char *echo = field_yaml(table_root_fields, &made, &arena);
        struct scenario_request request = {
            .name = "echo", .root = table_root_fields, .target = &loaded};
        struct scenario *scenario =
            scenario_load_text(&request, echo, strlen(echo), &arena, &errors);
        if (!scenario)
            errors_print(&errors, stderr);
        ck_assert_msg(scenario != NULL, "struct %d: the echo is refused:\n%s", (int)i, echo);
        fields_compare(table_root_fields, &made, &loaded);
        ck_assert_str_eq(field_yaml(table_root_fields, &loaded, &arena), echo);
        scenario_free(scenario);
        errors_free(&errors);
        arena_free(&arena);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_echo_loads_back_to_the_same_struct, NULL};
    return suite_run("scenario_echo", tests, 120);
}
