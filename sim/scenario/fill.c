#include "sim/scenario/fill.h"

#include <string.h>

#include "sim/base/check.h"

enum { NAMES_MAX = 256 };

struct fill {
    const char *place; /* of the mapping that is filled */
    struct arena *arena, *scratch;
    struct errors *errors;
};

/* Where a value hangs: its path, leaf first, and the place of its key. */
struct where {
    const struct where *up; /* NULL: the top of the file */
    const char *key;        /* NULL: an item of a list */
    size_t index;
    const struct source *source;
    size_t offset;
};

/* The variant whose config a mapping fills. */
struct chosen {
    const struct field *field;
    const struct variant *variant;
};

static void value_fill(struct fill *f, const struct field *field, const struct node *node,
                       void *target, const struct where *where);
static void fields_fill(struct fill *f, const struct field *fields, const struct chosen *chosen,
                        const struct node *mapping, void *base, const struct where *where);

/* ---- names for messages -------------------------------------------------------------------------
 */

static const char *where_path(const struct fill *f, const struct where *where)
{
    if (!where->up)
        return "";
    const char *up = where_path(f, where->up);
    if (!where->key)
        return arena_printf(f->scratch, "%s[%zu]", up, where->index);
    return arena_printf(f->scratch, "%s%s%s", up, up[0] ? "." : "",
                        node_quote(where->key, f->scratch));
}

/* "in fleet.pools[0]"; of the mapping that is filled, its place. */
static const char *where_phrase(const struct fill *f, const struct where *where)
{
    if (!where->up)
        return f->place;
    return arena_printf(f->scratch, "in %s", where_path(f, where));
}

/* "max_queue", "pools[2]". */
static const char *where_name(const struct fill *f, const struct where *where)
{
    if (where->key)
        return where->key;
    return arena_printf(f->scratch, "%s[%zu]", where_name(f, where->up), where->index);
}

static void names_collect(const struct field *fields, const char **names, size_t *count)
{
    for (const struct field *field = fields; field && field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE)
            names_collect(field->fields, names, count);
        else if (*count < NAMES_MAX)
            names[(*count)++] = field->name;
    }
}

static const char *names_join(const struct fill *f, const char *const *names)
{
    const char *text = "";
    for (size_t i = 0; names[i]; i++)
        text = arena_printf(f->scratch, "%s%s%s", text, i ? ", " : "", names[i]);
    return text;
}

static const char **variant_names(const struct fill *f, const struct field *field)
{
    size_t count = 0;
    while (field->variants[count])
        count++;
    const char **names = arena_alloc(f->scratch, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = field->variants[i]->name;
    return names;
}

/* ---- unknown keys -------------------------------------------------------------------------------
 */

/* The first other variant of the same field that knows the key; NULL when none does. */
static const struct variant *key_owner(const struct chosen *chosen, const char *key)
{
    for (size_t i = 0; chosen && chosen->field->variants[i]; i++) {
        const struct variant *variant = chosen->field->variants[i];
        if (variant != chosen->variant && variant->fields && field_find(variant->fields, key, NULL))
            return variant;
    }
    return NULL;
}

static void key_unknown(struct fill *f, const struct field *fields, const struct chosen *chosen,
                        const struct node_entry *entry, const struct where *where)
{
    const char *names[NAMES_MAX + 2] = {NULL};
    size_t count = 0;
    if (f->errors->error_count >= ERRORS_KEPT_MAX) { /* not kept, so not worth the search */
        errors_add(f->errors, SEVERITY_ERROR, NULL, "unknown key");
        return;
    }
    if (chosen)
        names[count++] = chosen->field->tag;
    names_collect(fields, names, &count);
    const char *key = node_quote(entry->key, f->scratch);
    const struct variant *owner = key_owner(chosen, entry->key);
    const char *near = strlen(entry->key) < 64 ? errors_nearest(entry->key, names) : NULL;
    const char *help = "";
    if (owner) {
        source_error(f->errors, SEVERITY_ERROR, entry->source, entry->offset,
                     "'%s' belongs to %s '%s', not '%s' (%s)", key, chosen->field->tag, owner->name,
                     chosen->variant->name, where_phrase(f, where));
        return;
    }
    if (strchr(entry->key, ':'))
        help = "; a space is missing after ':'";
    else if (near)
        help = arena_printf(f->scratch, ", did you mean '%s'?", near);
    else if (count > 0)
        help = arena_printf(f->scratch, "; known here: %s", names_join(f, names));
    source_error(f->errors, SEVERITY_ERROR, entry->source, entry->offset, "unknown key '%s' %s%s",
                 key, where_phrase(f, where), help);
}

/* ---- structs ------------------------------------------------------------------------------------
 */

static void key_missing(struct fill *f, const struct field *field, const struct chosen *chosen,
                        const struct where *where)
{
    const char *whose = "";
    if (chosen)
        whose = arena_printf(f->scratch, " (%s '%s' needs it)", chosen->field->tag,
                             chosen->variant->name);
    const char *doc = field->doc ? arena_printf(f->scratch, ": %s", field->doc) : "";
    source_error(f->errors, SEVERITY_ERROR, where->source, where->offset, "missing key '%s' %s%s%s",
                 field->name, where_phrase(f, where), whose, doc);
}

/* A value that was not written keeps its defaults, but what those require is missing. */
static void absent_fill(struct fill *f, const struct field *field, void *target,
                        const struct where *where)
{
    struct where below = {
        .up = where, .key = field->name, .source = where->source, .offset = where->offset};
    if (field->kind == FIELD_STRUCT) {
        fields_fill(f, field->fields, NULL, NULL, target, &below);
    } else if (field->kind == FIELD_VARIANT && field->fallback &&
               !field_bare(field, field->fallback)) {
        const struct variant_value *value = target;
        struct chosen chosen = {.field = field, .variant = value->type};
        fields_fill(f, value->type->fields, &chosen, NULL, value->config, &below);
    }
}

/* mapping may be NULL: nothing of it was written. */
static void fields_fill(struct fill *f, const struct field *fields, const struct chosen *chosen,
                        const struct node *mapping, void *base, const struct where *where)
{
    for (const struct field *field = fields; field && field->kind != FIELD_END; field++) {
        char *target = (char *)base + field->offset;
        if (field->kind == FIELD_INLINE) {
            fields_fill(f, field->fields, chosen, mapping, target, where);
            continue;
        }
        const struct node_entry *entry = mapping ? node_get(mapping, field->name) : NULL;
        if (entry) {
            struct where below = {
                .up = where, .key = field->name, .source = entry->source, .offset = entry->offset};
            value_fill(f, field, entry->value, target, &below);
        } else if (field->flags & FIELD_REQUIRED) {
            key_missing(f, field, chosen, where);
        } else {
            absent_fill(f, field, target, where);
        }
    }
}

static void mapping_fill(struct fill *f, const struct field *fields, const struct chosen *chosen,
                         const struct node *mapping, void *base, const struct where *where)
{
    for (uint32_t i = 0; i < mapping->count; i++) {
        const struct node_entry *entry = &mapping->entries[i];
        bool tag = chosen && strcmp(entry->key, chosen->field->tag) == 0;
        if (!tag && !(fields && field_find(fields, entry->key, NULL)))
            key_unknown(f, fields, chosen, entry, where);
    }
    fields_fill(f, fields, chosen, mapping, base, where);
}

/* ---- values -------------------------------------------------------------------------------------
 */

static void kind_wrong(struct fill *f, const struct node *node, const char *expected,
                       const struct where *where)
{
    source_error(f->errors, SEVERITY_ERROR, node->source, node->offset,
                 "'%s': expected %s, found %s", where_name(f, where), expected,
                 node_describe(node, f->scratch));
}

/* A path is relative to the text that wrote it. */
static const char *path_resolve(struct fill *f, const char *path, const struct source *source)
{
    if (path[0] == '/' || path[0] == '\0' || source->folder[0] == '\0')
        return path;
    const char *slash = source->folder[strlen(source->folder) - 1] == '/' ? "" : "/";
    return arena_printf(f->arena, "%s%s%s", source->folder, slash, path);
}

static void scalar_fill(struct fill *f, const struct field *field, const struct node *node,
                        void *target, const struct where *where)
{
    char why[FIELD_WHY_MAX];
    if (node->kind != NODE_SCALAR) {
        kind_wrong(f, node, "a single value", where);
        return;
    }
    struct field named = *field; /* an item of a list has no name of its own */
    named.name = where_name(f, where);
    if (!field_parse(&named, node->text, target, f->arena, why, sizeof why)) {
        node_clean(why);
        if (field->kind == FIELD_CHOICE) /* the reason names the field itself */
            source_error(f->errors, SEVERITY_ERROR, node->source, node->offset, "%s", why);
        else
            source_error(f->errors, SEVERITY_ERROR, node->source, node->offset, "'%s': %s",
                         named.name, why);
    } else if (field->kind == FIELD_PATH) {
        *(const char **)target = path_resolve(f, *(const char **)target, node->source);
    }
}

static void list_fill(struct fill *f, const struct field *field, const struct node *node,
                      void *target, const struct where *where)
{
    struct field_list *list = target;
    if (node->kind != NODE_LIST) {
        kind_wrong(f, node, "a list", where);
        return;
    }
    double count = node->count;
    bool few = field_has_min(field) && count < field->min;
    if (few || (field_has_max(field) && count > field->max)) {
        double limit = few ? field->min : field->max;
        const char *rule = field->min == field->max ? "exactly" : few ? "at least" : "at most";
        source_error(f->errors, SEVERITY_ERROR, where->source, where->offset,
                     "'%s' needs %s %.0f item%s, not %u", where_name(f, where), rule, limit,
                     limit == 1 ? "" : "s", (unsigned)node->count);
    }
    list->items = arena_alloc(f->arena, node->count * field->item_size);
    list->count = node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node *item = node->entries[i].value;
        struct where below = {
            .up = where, .index = i, .source = item->source, .offset = item->offset};
        void *place = (char *)list->items + i * field->item_size;
        if (field->item->kind == FIELD_STRUCT)
            field_defaults(field->item->fields, place, f->arena);
        else
            field_unset(field->item, place);
        value_fill(f, field->item, item, place, &below);
    }
}

/* The variant a value names, NULL (reported) when it names none. */
static const struct variant *variant_choose(struct fill *f, const struct field *field,
                                            const struct node *node, const struct where *where)
{
    const struct node *named = node;
    if (node->kind == NODE_MAPPING) {
        const struct node_entry *tag = node_get(node, field->tag);
        if (!tag && field->fallback) {
            const struct variant *bare = field_bare(field, field->fallback);
            return bare ? bare : field_variant(field, field->fallback);
        }
        if (!tag) {
            source_error(f->errors, SEVERITY_ERROR, where->source, where->offset,
                         "missing key '%s' in %s (one of %s)", field->tag, where_path(f, where),
                         names_join(f, variant_names(f, field)));
            return NULL;
        }
        named = tag->value;
    }
    if (named->kind != NODE_SCALAR || node_is_null(named)) {
        const char *expected = named == node ? "a mapping" : "a name";
        kind_wrong(f, named,
                   arena_printf(f->scratch, "%s (%s: %s)", expected, field->tag,
                                names_join(f, variant_names(f, field))),
                   where);
        return NULL;
    }
    const struct variant *variant = field_variant(field, named->text);
    if (!variant) {
        char why[FIELD_WHY_MAX];
        const struct where *holder = where;
        while (!holder->key)
            holder = holder->up; /* of a list's item: the list */
        const char *kind = strcmp(holder->key, field->tag) == 0
                               ? field->tag
                               : arena_printf(f->scratch, "%s %s", holder->key, field->tag);
        field_name_refuse(node_quote(named->text, f->scratch),
                          (const char *const *)variant_names(f, field), field->later, kind, why,
                          sizeof why);
        source_error(f->errors, SEVERITY_ERROR, named->source, named->offset, "%s", why);
    }
    return variant;
}

static void variant_fill(struct fill *f, const struct field *field, const struct node *node,
                         void *target, const struct where *where)
{
    bool scalar = node->kind == NODE_SCALAR && !node_is_null(node);
    const struct variant *bare = scalar ? field_bare(field, node->text) : NULL;
    struct chosen chosen = {.field = field,
                            .variant = bare ? bare : variant_choose(f, field, node, where)};
    if (!chosen.variant)
        return;
    struct variant_value *value = target;
    if (bare) {
        const struct field *first = bare->fields;
        field_variant_init(bare, value, f->arena);
        value_fill(f, first, node, (char *)value->config + first->offset, where);
        return;
    }
    field_variant_init(chosen.variant, value, f->arena);
    if (node->kind == NODE_MAPPING)
        mapping_fill(f, chosen.variant->fields, &chosen, node, value->config, where);
    else
        fields_fill(f, chosen.variant->fields, &chosen, NULL, value->config, where);
}

static void value_fill(struct fill *f, const struct field *field, const struct node *node,
                       void *target, const struct where *where)
{
    if (node_is_null(node) && field->kind != FIELD_STRUCT) {
        if (field->flags & FIELD_OPTIONAL)
            field_unset(field, target);
        else
            source_error(f->errors, SEVERITY_ERROR, node->source, node->offset, "'%s' has no value",
                         where_name(f, where));
        return;
    }
    switch (field->kind) {
    case FIELD_STRUCT:
        if (node->kind == NODE_MAPPING)
            mapping_fill(f, field->fields, NULL, node, target, where);
        else
            kind_wrong(f, node, "a mapping", where);
        return;
    case FIELD_VARIANT:
        variant_fill(f, field, node, target, where);
        return;
    case FIELD_LIST:
        list_fill(f, field, node, target, where);
        return;
    default:
        scalar_fill(f, field, node, target, where);
    }
}

void fill_root(const struct field *root, const struct node *mapping, const char *place,
               void *target, struct arena *arena, struct arena *scratch, struct errors *errors)
{
    check(mapping->kind == NODE_MAPPING);
    struct fill f = {.place = place, .arena = arena, .scratch = scratch, .errors = errors};
    struct where top = {.source = mapping->source, .offset = mapping->offset};
    mapping_fill(&f, root, NULL, mapping, target, &top);
}
