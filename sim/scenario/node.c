#include "sim/scenario/node.h"

#include <string.h>

#include "sim/base/check.h"

enum { LINEAR_MAX = 8, QUOTED_MAX = 60 };

struct node *node_new(struct arena *arena, enum node_kind kind, const struct source *source,
                      size_t offset)
{
    struct node *node = arena_alloc(arena, sizeof *node);
    *node = (struct node){.kind = kind, .source = source, .offset = (uint32_t)offset, .text = ""};
    return node;
}

/* FNV-1a. */
static uint32_t key_hash(const char *key)
{
    uint32_t hash = UINT32_C(2166136261);
    for (const unsigned char *c = (const unsigned char *)key; *c; c++)
        hash = (hash ^ *c) * UINT32_C(16777619);
    return hash;
}

static void slot_put(struct node *mapping, uint32_t entry)
{
    uint32_t mask = mapping->slot_count - 1;
    uint32_t slot = key_hash(mapping->entries[entry].key) & mask;
    while (mapping->slots[slot])
        slot = (slot + 1) & mask;
    mapping->slots[slot] = entry + 1;
}

struct node_entry *node_get(const struct node *mapping, const char *key)
{
    if (!mapping->slots) {
        for (uint32_t i = 0; i < mapping->count; i++)
            if (strcmp(mapping->entries[i].key, key) == 0)
                return &mapping->entries[i];
        return NULL;
    }
    uint32_t mask = mapping->slot_count - 1;
    for (uint32_t slot = key_hash(key) & mask; mapping->slots[slot]; slot = (slot + 1) & mask) {
        struct node_entry *entry = &mapping->entries[mapping->slots[slot] - 1];
        if (strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

void node_add(struct arena *arena, struct node *node, const struct node_entry *entry)
{
    check(node->kind != NODE_SCALAR && (node->kind == NODE_MAPPING) == (entry->key != NULL));
    if (node->count == node->capacity) {
        node->capacity = node->capacity ? 2 * node->capacity : 4;
        struct node_entry *entries = arena_alloc(arena, node->capacity * sizeof *entries);
        if (node->count)
            memcpy(entries, node->entries, node->count * sizeof *entries);
        node->entries = entries;
    }
    node->entries[node->count++] = *entry;
    if (node->kind != NODE_MAPPING || node->count <= LINEAR_MAX)
        return;
    if (node->count * 2 <= node->slot_count) {
        slot_put(node, node->count - 1);
        return;
    }
    node->slot_count = node->slot_count ? 2 * node->slot_count : 4 * LINEAR_MAX;
    node->slots = arena_alloc(arena, node->slot_count * sizeof *node->slots);
    for (uint32_t i = 0; i < node->count; i++)
        slot_put(node, i);
}

struct node *node_without(struct arena *arena, const struct node *mapping,
                          bool (*drop)(const char *key, const void *context), const void *context)
{
    struct node *kept = node_new(arena, NODE_MAPPING, mapping->source, mapping->offset);
    for (uint32_t i = 0; i < mapping->count; i++)
        if (!drop(mapping->entries[i].key, context))
            node_add(arena, kept, &mapping->entries[i]);
    return kept;
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->plain &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

void node_clean(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

const char *node_quote(const char *text, struct arena *arena)
{
    size_t length = strlen(text), shown = length;
    if (length > QUOTED_MAX) {
        shown = QUOTED_MAX;
        while (shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
            shown--; /* never cut inside a UTF-8 character */
    }
    char *copy = arena_printf(arena, "%.*s%s", (int)shown, text, shown < length ? "..." : "");
    node_clean(copy);
    return copy;
}

const char *node_describe(const struct node *node, struct arena *arena)
{
    if (node->kind == NODE_MAPPING)
        return "a mapping";
    if (node->kind == NODE_LIST)
        return "a list";
    if (node_is_null(node))
        return "nothing";
    return arena_printf(arena, "the value '%s'", node_quote(node->text, arena));
}
