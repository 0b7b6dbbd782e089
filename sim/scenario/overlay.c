#include "sim/scenario/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/scenario/yaml.h"

/* ---- what the tables say ------------------------------------------------------------------------
 */

/* The variant named by a mapping's tag, else by the field's default; NULL when neither is known. */
static const struct variant *mapping_variant(const struct field *owner, const struct node *mapping)
{
    const struct node_entry *tag = node_get(mapping, owner->tag);
    const char *name = owner->fallback;
    if (tag)
        name = tag->value->kind == NODE_SCALAR ? tag->value->text : NULL;
    if (!tag && name && field_bare(owner, name))
        return field_bare(owner, name);
    return name ? field_variant(owner, name) : NULL;
}

const struct field *overlay_child(const struct field *owner, const struct node *mapping,
                                  const char *key)
{
    if (owner && owner->kind == FIELD_STRUCT)
        return field_find(owner->fields, key, NULL);
    if (!owner || owner->kind != FIELD_VARIANT)
        return NULL;
    const struct variant *variant = mapping_variant(owner, mapping);
    if (!variant || !variant->fields)
        return NULL;
    return field_find(variant->fields, key, NULL);
}

/* A VARIANT written as a bare scalar, "router: random" or "provision: 30 s", as the mapping it
 * stands for. */
static struct node *variant_expand(const struct field *owner, struct node *node,
                                   struct arena *arena)
{
    if (!owner || owner->kind != FIELD_VARIANT || node->kind != NODE_SCALAR || node_is_null(node))
        return node;
    const struct variant *bare = field_bare(owner, node->text);
    struct node *mapping = node_new(arena, NODE_MAPPING, node->source, node->offset);
    struct node_entry entry = {.key = bare ? bare->fields[0].name : owner->tag,
                               .source = node->source,
                               .offset = node->offset,
                               .value = node};
    node_add(arena, mapping, &entry);
    if (bare) {
        struct node *name = node_new(arena, NODE_SCALAR, node->source, node->offset);
        name->text = bare->name;
        name->plain = true;
        entry.key = owner->tag;
        entry.value = name;
        node_add(arena, mapping, &entry);
    }
    return mapping;
}

/* ---- extends ------------------------------------------------------------------------------------
 */

static bool tag_changes(const struct field *owner, const struct node *base, const struct node *over)
{
    if (!owner || owner->kind != FIELD_VARIANT || !node_get(over, owner->tag))
        return false;
    const struct variant *variant = mapping_variant(owner, over);
    return !variant || variant != mapping_variant(owner, base);
}

struct node *overlay_merge(const struct field *owner, struct node *base, struct node *over,
                           struct arena *arena)
{
    if (over->kind != NODE_MAPPING)
        return over;
    base = variant_expand(owner, base, arena);
    if (base->kind != NODE_MAPPING || tag_changes(owner, base, over))
        return over;
    for (uint32_t i = 0; i < over->count; i++) {
        struct node_entry *entry = &over->entries[i];
        struct node_entry *under = node_get(base, entry->key);
        if (under) {
            const struct field *child = overlay_child(owner, base, entry->key);
            entry->value = overlay_merge(child, under->value, entry->value, arena);
            *under = *entry;
        } else {
            node_add(arena, base, entry);
        }
    }
    return base;
}

/* ---- --set --------------------------------------------------------------------------------------
 */

struct setter {
    const struct source *source;
    struct arena *arena;
    struct errors *errors;
    const char *at; /* next character of the path */
};

static size_t setter_offset(const struct setter *s, const char *at)
{
    return (size_t)(at - s->source->text);
}

static bool setter_fail(const struct setter *s, const char *at, const char *message)
{
    source_error(s->errors, SEVERITY_ERROR, s->source, setter_offset(s, at), "%s", message);
    return false;
}

/* The name at the cursor; NULL (reported) when there is none. */
static const char *name_read(struct setter *s)
{
    size_t length = strcspn(s->at, ".[]=");
    if (length == 0) {
        setter_fail(s, s->at, "a key is missing here; a path looks like fleet.pools[0].max_queue");
        return NULL;
    }
    const char *name = arena_copyn(s->arena, s->at, length);
    s->at += length;
    return name;
}

/* "[12]" at the cursor, as the slot of that item of the list at *slot. */
static struct node **index_read(struct setter *s, struct node *list, const char *list_name)
{
    const char *at = s->at;
    char *end;
    unsigned long index = strtoul(at + 1, &end, 10);
    if (at[1] < '0' || at[1] > '9' || *end != ']' || end - at > 8) {
        setter_fail(s, at, "an index is a number in brackets, such as [0]");
        return NULL;
    }
    if (list->kind != NODE_LIST && !node_is_null(list)) {
        setter_fail(s, at,
                    arena_printf(s->arena, "'%s' is %s, not a list",
                                 node_quote(list_name, s->arena), node_describe(list, s->arena)));
        return NULL;
    }
    if (index >= list->count) {
        setter_fail(s, at,
                    arena_printf(s->arena, "'%s' has %u item%s; there is no [%lu]",
                                 node_quote(list_name, s->arena), (unsigned)list->count,
                                 list->count == 1 ? "" : "s", index));
        return NULL;
    }
    s->at = end + 1;
    return &list->entries[index].value;
}

struct drop {
    const struct variant *from, *to;
    const char *tag;
};

static bool variant_knows(const struct variant *variant, const char *key)
{
    return variant && variant->fields && field_find(variant->fields, key, NULL);
}

static bool key_dropped(const char *key, const void *context)
{
    const struct drop *drop = context;
    return strcmp(key, drop->tag) != 0 && variant_knows(drop->from, key) &&
           !variant_knows(drop->to, key);
}

/* The tag of a VARIANT is about to change: takes the old variant's own keys out of the mapping. */
static void variant_change(struct setter *s, const struct field *owner, struct node *mapping,
                           const struct node *tag, const char *at)
{
    if (tag->kind != NODE_SCALAR)
        return;
    struct drop drop = {.from = mapping_variant(owner, mapping),
                        .to = field_variant(owner, tag->text),
                        .tag = owner->tag};
    if (!drop.from || !drop.to || drop.from == drop.to)
        return;
    const char *names = NULL;
    for (uint32_t i = 0; i < mapping->count; i++)
        if (key_dropped(mapping->entries[i].key, &drop))
            names = arena_printf(s->arena, "%s%s'%s'", names ? names : "", names ? ", " : "",
                                 mapping->entries[i].key);
    if (!names)
        return;
    *mapping = *node_without(s->arena, mapping, key_dropped, &drop);
    source_error(s->errors, SEVERITY_WARNING, s->source, setter_offset(s, at),
                 "%s '%s' has no use for what %s '%s' was given: dropped %s", owner->tag,
                 drop.to->name, owner->tag, drop.from->name, names);
}

/* One "name" step: the slot of that key in the mapping at *slot, made when missing. */
static struct node **key_step(struct setter *s, const struct field *owner, struct node **slot,
                              const char *name, const char *at)
{
    if (node_is_null(*slot))
        *slot = node_new(s->arena, NODE_MAPPING, s->source, setter_offset(s, at));
    *slot = variant_expand(owner, *slot, s->arena);
    if ((*slot)->kind != NODE_MAPPING) {
        setter_fail(s, at,
                    arena_printf(s->arena, "there is no '%s' here: this is %s, not a mapping",
                                 node_quote(name, s->arena), node_describe(*slot, s->arena)));
        return NULL;
    }
    struct node_entry *entry = node_get(*slot, name);
    if (entry)
        return &entry->value;
    struct node *nothing = node_new(s->arena, NODE_SCALAR, s->source, setter_offset(s, at));
    nothing->plain = true;
    node_add(s->arena, *slot,
             &(struct node_entry){.key = name,
                                  .source = s->source,
                                  .offset = (uint32_t)setter_offset(s, at),
                                  .value = nothing});
    return &node_get(*slot, name)->value;
}

/* Writes the value; where it is a key's, that key is now this --set's and not the file's. */
static void value_put(const struct setter *s, struct node_entry *entry, struct node **slot,
                      struct node *value, const char *at)
{
    if (slot == &entry->value) {
        entry->source = s->source;
        entry->offset = (uint32_t)setter_offset(s, at);
    }
    *slot = value;
}

bool overlay_set(const struct field *owner, struct node *root, const struct source *source,
                 size_t *nodes_left, struct arena *arena, struct errors *errors)
{
    struct setter s = {.source = source, .arena = arena, .errors = errors, .at = source->text};
    const char *equals = strchr(source->text, '=');
    if (!equals)
        return setter_fail(&s, source->text + source->length, "expected path=value: no '='");
    struct node *value =
        yaml_parse(source, setter_offset(&s, equals + 1), nodes_left, arena, errors);
    if (!value)
        return false;
    struct node **slot = &root;
    const struct field *field = owner;
    for (size_t depth = 0;; depth++) {
        const char *at = s.at;
        const char *name = name_read(&s);
        if (!name)
            return false;
        if (depth >= YAML_DEPTH_MAX)
            return setter_fail(&s, at, "a path this deep leads nowhere");
        owner = field;
        struct node **holder_slot = slot;
        slot = key_step(&s, owner, slot, name, at);
        if (!slot)
            return false;
        struct node *holder = *holder_slot;
        if (s.at == equals && owner && owner->kind == FIELD_VARIANT &&
            strcmp(name, owner->tag) == 0) {
            variant_change(&s, owner, holder, value, at);
            slot = &node_get(holder, name)->value;
        }
        field = overlay_child(owner, holder, name);
        while (*s.at == '[') {
            slot = index_read(&s, *slot, name);
            if (!slot)
                return false;
            field = field && field->kind == FIELD_LIST ? field->item : NULL;
        }
        if (s.at == equals) {
            value_put(&s, node_get(holder, name), slot, value, at);
            return true;
        }
        if (*s.at != '.')
            return setter_fail(&s, s.at, "expected '.', '[' or '='");
        s.at++;
    }
}
