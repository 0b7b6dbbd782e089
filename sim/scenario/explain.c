#include "sim/scenario/explain.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/errors.h"

enum { DEPTH_MAX = 16 }; /* tables that hold themselves end here */

/* ---- one field in words -------------------------------------------------------------------------
 */

static const char *type_text(const struct field *field, struct arena *arena)
{
    switch (field->kind) {
    case FIELD_BOOL:
        return "true or false";
    case FIELD_INT:
    case FIELD_REAL: {
        const char *number = field->kind == FIELD_INT ? "whole number" : "number";
        const char *unlimited = field->flags & FIELD_UNLIMITED ? " or 'unlimited'" : "";
        if (field->unit == UNIT_NONE)
            return arena_printf(arena, "%s%s", number, unlimited);
        return arena_printf(arena, "%s%s; %s", number, unlimited, units_hint(field->unit));
    }
    case FIELD_TIME:
        return units_hint(UNIT_TIME);
    case FIELD_STAMP:
        return "a UTC time such as 2026-03-02T00:00:00Z";
    case FIELD_TEXT:
        return "text";
    case FIELD_PATH:
        return "path, relative to the file that names it";
    case FIELD_CHOICE:
        return "name";
    case FIELD_STRUCT:
    case FIELD_INLINE:
        return "mapping";
    case FIELD_VARIANT:
        if (field->bare)
            return arena_printf(arena, "%s; or mapping, '%s' chooses",
                                type_text(field_variant(field, field->bare)->fields, arena),
                                field->tag);
        return arena_printf(arena, "mapping; '%s' chooses", field->tag);
    case FIELD_LIST:
        return arena_printf(arena, "list; item: %s", type_text(field->item, arena));
    case FIELD_END:
        break;
    }
    check_fail(__FILE__, __LINE__, "known kind", "field %s", field->name);
}

/* "1 to 1024", "more than 0 s"; NULL: any. */
static const char *range_text(const struct field *field, struct arena *arena)
{
    char low[UNITS_TEXT_MAX], high[UNITS_TEXT_MAX];
    bool has_low = field_has_min(field), has_high = field_has_max(field);
    if ((field->kind != FIELD_INT && field->kind != FIELD_REAL && field->kind != FIELD_TIME &&
         field->kind != FIELD_LIST) ||
        (!has_low && !has_high))
        return NULL;
    const char *items = field->kind == FIELD_LIST ? " items" : "";
    const char *open = field->flags & FIELD_MIN_OPEN ? "more than " : "";
    field_limit_text(field, field->min, low);
    if (!has_high)
        return arena_printf(arena, "%s%s%s", open[0] ? open : "at least ", low, items);
    field_limit_text(field, field->max, high);
    if (field->min == field->max)
        return arena_printf(arena, "exactly %s%s", high, items);
    return arena_printf(arena, "%s%s %s %s%s", open, low, open[0] ? "up to" : "to", high, items);
}

static const char *default_text(const struct field *field)
{
    if (field->flags & FIELD_REQUIRED)
        return "none, must be given";
    if (field->flags & FIELD_OPTIONAL)
        return "none, may be left out";
    if (field->fallback)
        return field->fallback[0] ? field->fallback : "empty";
    return field->kind == FIELD_LIST ? "empty" : NULL;
}

/* ---- walking all tables -------------------------------------------------------------------------
 */

/* One key as a user finds it. */
struct place {
    const char *path;
    const struct field *field;
    const struct field *owner;     /* the VARIANT in whose config it is; NULL: none */
    const struct variant *variant; /* of owner */
};

struct places {
    struct arena arena;
    struct place *items; /* owned */
    size_t count, capacity;
};

static void fields_collect(struct places *places, const struct field *fields, const char *path,
                           const struct field *owner, const struct variant *variant, int depth);

static void nested_collect(struct places *places, const struct field *field, const char *path,
                           const struct field *owner, const struct variant *variant, int depth)
{
    while (field->kind == FIELD_LIST)
        field = field->item;
    if (field->kind == FIELD_STRUCT)
        fields_collect(places, field->fields, path, owner, variant, depth + 1);
    for (size_t i = 0; field->kind == FIELD_VARIANT && field->variants[i]; i++)
        if (field->variants[i]->fields)
            fields_collect(places, field->variants[i]->fields, path, field, field->variants[i],
                           depth + 1);
}

static void fields_collect(struct places *places, const struct field *fields, const char *path,
                           const struct field *owner, const struct variant *variant, int depth)
{
    if (depth > DEPTH_MAX)
        return;
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE) {
            fields_collect(places, field->fields, path, owner, variant, depth + 1);
            continue;
        }
        if (places->count == places->capacity) {
            places->capacity = places->capacity ? 2 * places->capacity : 64;
            places->items = memory_grow(places->items, places->capacity * sizeof *places->items);
        }
        const char *own =
            arena_printf(&places->arena, "%s%s%s", path, path[0] ? "." : "", field->name);
        places->items[places->count++] =
            (struct place){.path = own, .field = field, .owner = owner, .variant = variant};
        nested_collect(places, field, own, owner, variant, depth);
    }
}

static void places_init(struct places *places, const struct field *root)
{
    *places = (struct places){.count = 0};
    arena_init(&places->arena);
    fields_collect(places, root, "", NULL, NULL, 0);
}

static void places_free(struct places *places)
{
    free(places->items);
    arena_free(&places->arena);
}

/* ---- explain_print ------------------------------------------------------------------------------
 */

static const struct field *field_innermost(const struct field *field)
{
    while (field->kind == FIELD_LIST)
        field = field->item;
    return field;
}

static void keys_print(FILE *out, const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE)
            keys_print(out, field->fields);
        else
            fprintf(out, "    %-24s %s\n", field->name, field->doc ? field->doc : "");
    }
}

static void names_print(FILE *out, const char *label, const char *const *names)
{
    if (!names || !names[0])
        return;
    fprintf(out, "  %-9s", label);
    for (size_t i = 0; names[i]; i++)
        fprintf(out, "%s%s", i ? ", " : "", names[i]);
    fputc('\n', out);
}

static void place_print(FILE *out, const struct place *place, struct arena *arena)
{
    const struct field *field = place->field, *inner = field_innermost(field);
    const char *range = range_text(field, arena), *value = default_text(field);
    fprintf(out, "%s", place->path);
    if (place->owner)
        fprintf(out, "   (%s: %s)", place->owner->tag, place->variant->name);
    fprintf(out, "\n  %s\n  type     %s\n", field->doc ? field->doc : "", type_text(field, arena));
    if (value)
        fprintf(out, "  default  %s\n", value);
    if (range)
        fprintf(out, "  range    %s\n", range);
    if (inner != field && (range = range_text(inner, arena)))
        fprintf(out, "  items    %s\n", range);
    names_print(out, "choices", inner->choices);
    if (inner->kind == FIELD_STRUCT) {
        fprintf(out, "  keys\n");
        keys_print(out, inner->fields);
    }
    if (inner->kind == FIELD_VARIANT) {
        fprintf(out, "  %s\n", inner->tag);
        for (size_t i = 0; inner->variants[i]; i++)
            fprintf(out, "    %-24s %s\n", inner->variants[i]->name, inner->variants[i]->doc);
    }
    names_print(out, "not yet", inner->later);
}

static void variant_print(FILE *out, const struct place *place, const struct variant *variant)
{
    fprintf(out, "%s: {%s: %s}\n  %s\n", place->path, field_innermost(place->field)->tag,
            variant->name, variant->doc);
    if (variant->fields) {
        fprintf(out, "  keys\n");
        keys_print(out, variant->fields);
    }
}

/* Without indices: "pools[0].name" is "pools.name". */
static char *key_plain(const char *key, struct arena *arena)
{
    char *plain = arena_copy(arena, key), *out = plain;
    for (const char *c = key; *c; c++) {
        if (*c == '[') {
            c += strcspn(c, "]");
            if (!*c)
                break;
        } else {
            *out++ = *c;
        }
    }
    *out = '\0';
    return plain;
}

static bool path_ends_with(const char *path, const char *key)
{
    size_t path_length = strlen(path), length = strlen(key);
    if (length == 0 || length > path_length || strcmp(path + path_length - length, key) != 0)
        return false;
    return length == path_length || path[path_length - length - 1] == '.';
}

/* The key that chooses the variant of a place, as a path; NULL when it has none. */
static const char *tag_path(const struct place *place, struct arena *arena)
{
    const struct field *inner = field_innermost(place->field);
    if (inner->kind != FIELD_VARIANT)
        return NULL;
    return arena_printf(arena, "%s.%s", place->path, inner->tag);
}

static void nearest_print(FILE *out, const struct places *places, const char *key,
                          struct arena *arena)
{
    size_t count = 0;
    size_t room = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct field *inner = field_innermost(places->items[i].field);
        room += 3;
        for (size_t j = 0; inner->kind == FIELD_VARIANT && inner->variants[j]; j++)
            room++;
    }
    const char **names = arena_alloc(arena, (room + 1) * sizeof *names);
    for (size_t i = 0; i < places->count; i++) {
        const struct field *inner = field_innermost(places->items[i].field);
        names[count++] = places->items[i].field->name;
        names[count++] = places->items[i].path;
        if (inner->kind == FIELD_VARIANT)
            names[count++] = tag_path(&places->items[i], arena);
        for (size_t j = 0; inner->kind == FIELD_VARIANT && inner->variants[j]; j++)
            names[count++] = inner->variants[j]->name;
    }
    const char *near = errors_nearest(key, names);
    fprintf(out, "unknown key '%s'", key);
    if (near)
        fprintf(out, ", did you mean '%s'?", near);
    fputc('\n', out);
}

bool explain_print(FILE *out, const struct field *root, const char *key)
{
    struct places places;
    places_init(&places, root);
    const char *plain = key_plain(key, &places.arena);
    size_t found = 0;
    bool whole = false; /* the whole path of a key beats the ends of longer ones */
    for (size_t i = 0; i < places.count; i++) {
        const char *tag = tag_path(&places.items[i], &places.arena);
        whole |= strcmp(places.items[i].path, plain) == 0 || (tag && strcmp(tag, plain) == 0);
    }
    for (size_t i = 0; i < places.count; i++) {
        const struct place *place = &places.items[i];
        const struct field *inner = field_innermost(place->field);
        const char *tag = tag_path(place, &places.arena);
        bool is_key = whole ? strcmp(place->path, plain) == 0 : path_ends_with(place->path, plain);
        bool is_tag = tag && (whole ? strcmp(tag, plain) == 0 : path_ends_with(tag, plain));
        if (is_key || is_tag) {
            fputs(found++ ? "\n" : "", out);
            place_print(out, place, &places.arena);
        }
        for (size_t j = 0; inner->kind == FIELD_VARIANT && inner->variants[j]; j++) {
            if (strcmp(inner->variants[j]->name, plain) == 0) {
                fputs(found++ ? "\n" : "", out);
                variant_print(out, place, inner->variants[j]);
            }
        }
    }
    if (!found)
        nearest_print(out, &places, key, &places.arena);
    places_free(&places);
    return found > 0;
}

/* ---- explain_reference --------------------------------------------------------------------------
 */

/* Text for a table's cell. */
static void cell_print(FILE *out, const char *text)
{
    for (; text && *text; text++)
        fprintf(out, *text == '|' ? "\\%c" : "%c", *text == '\n' ? ' ' : *text);
}

/* A section that is there already: a mapping that several variants have alike. */
struct section {
    const char *path;
    const void *table; /* fields or variants */
};

struct reference {
    FILE *out;
    struct arena *arena;
    struct section *sections; /* owned */
    size_t count;
};

static bool section_is_new(struct reference *ref, const char *path, const void *table)
{
    for (size_t i = 0; i < ref->count; i++) {
        if (ref->sections[i].table == table && strcmp(ref->sections[i].path, path) == 0)
            return false;
    }
    ref->sections = memory_grow(ref->sections, (ref->count + 1) * sizeof *ref->sections);
    ref->sections[ref->count++] = (struct section){path, table};
    return true;
}

static void row_print(struct reference *ref, const struct field *field)
{
    FILE *out = ref->out;
    struct arena *arena = ref->arena;
    const struct field *inner = field_innermost(field);
    const char *range = range_text(field, arena), *value = default_text(field);
    bool quoted = field->fallback && value == field->fallback;
    fprintf(out, "| `%s` | ", field->name);
    cell_print(out, type_text(field, arena));
    for (size_t i = 0; inner->choices && inner->choices[i]; i++)
        fprintf(out, "%s`%s`", i ? ", " : ": ", inner->choices[i]);
    fprintf(out, " | %s", quoted ? "`" : "");
    cell_print(out, value);
    fprintf(out, "%s | ", quoted ? "`" : "");
    cell_print(out, range);
    fputs(" | ", out);
    cell_print(out, field->doc);
    fputs(" |\n", out);
}

static void rows_print(struct reference *ref, const struct field *fields)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE)
            rows_print(ref, field->fields);
        else
            row_print(ref, field);
    }
}

static void table_print(struct reference *ref, const struct field *fields, const char *path,
                        int depth);

static void variants_print(struct reference *ref, const struct field *field, const char *path,
                           int depth)
{
    FILE *out = ref->out;
    fprintf(out, "\nThe key `%s` of `%s` chooses:\n\n", field->tag, path);
    for (size_t i = 0; field->variants[i]; i++)
        fprintf(out, "- `%s`: %s\n", field->variants[i]->name, field->variants[i]->doc);
    for (size_t i = 0; field->later && field->later[i]; i++)
        fprintf(out, "- `%s`: designed but not built yet\n", field->later[i]);
    for (size_t i = 0; field->variants[i]; i++) {
        if (!field->variants[i]->fields)
            continue;
        fprintf(out, "\n### `%s` with `%s: %s`\n\n", path, field->tag, field->variants[i]->name);
        table_print(ref, field->variants[i]->fields, path, depth + 1);
    }
}

/* The sections of what fields hold, after their own table. */
static void sections_print(struct reference *ref, const struct field *fields, const char *path,
                           int depth)
{
    FILE *out = ref->out;
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE) {
            sections_print(ref, field->fields, path, depth);
            continue;
        }
        const struct field *inner = field_innermost(field);
        const char *own = arena_printf(ref->arena, "%s%s%s%s", path, path[0] ? "." : "",
                                       field->name, field->kind == FIELD_LIST ? "[]" : "");
        if (inner->kind == FIELD_STRUCT && section_is_new(ref, own, inner->fields)) {
            fprintf(out, "\n## `%s`\n\n", own);
            if (field->doc)
                fprintf(out, "%s\n\n", field->doc);
            table_print(ref, inner->fields, own, depth + 1);
        } else if (inner->kind == FIELD_VARIANT && section_is_new(ref, own, inner->variants)) {
            fprintf(out, "\n## `%s`\n\n%s\n", own, field->doc ? field->doc : "");
            variants_print(ref, inner, own, depth + 1);
        }
    }
}

static void table_print(struct reference *ref, const struct field *fields, const char *path,
                        int depth)
{
    if (depth > DEPTH_MAX)
        return;
    fputs("| key | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n",
          ref->out);
    rows_print(ref, fields);
    sections_print(ref, fields, path, depth);
}

void explain_reference(FILE *out, const struct field *root)
{
    struct arena arena;
    arena_init(&arena);
    fputs("# Scenario reference\n\n"
          "Every key of a scenario file, from the same tables that read it. `fleetsim explain KEY`"
          " prints one of them.\n\n"
          "A value with a unit may be written with it (`2 ms`, `80 GiB`, `$2.10/h`, `70 %`); a bare"
          " number is in the unit named. `extends: FILE` at the top level builds on another file,"
          " relative to this one: mappings merge, lists and scalars replace, and a mapping whose"
          " choosing key changes replaces the other file's as a whole.\n\n"
          "## Top level\n\n",
          out);
    struct reference ref = {.out = out, .arena = &arena};
    table_print(&ref, root, "", 0);
    free(ref.sections);
    arena_free(&arena);
}
