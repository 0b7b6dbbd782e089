/* The tree a scenario file becomes: scalars, mappings and lists that remember where they were
 * written. All of it lives in the scenario's arena. */
#ifndef FLEETSIM_SIM_SCENARIO_NODE_H
#define FLEETSIM_SIM_SCENARIO_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/scenario/source.h"

enum node_kind { NODE_SCALAR, NODE_MAPPING, NODE_LIST };

struct node;
struct node_entry {
    const char *key;             /* NULL in a list */
    const struct source *source; /* of the key */
    uint32_t offset;             /* of the key */
    struct node *value;
};

struct node {
    enum node_kind kind;
    bool plain;      /* SCALAR: written without quotes */
    uint32_t offset; /* where it begins in source */
    const struct source *source;
    const char *text;           /* SCALAR: NUL-terminated, without inner NULs */
    struct node_entry *entries; /* MAPPING, LIST: in the order written */
    uint32_t count, capacity;
    uint32_t *slots; /* MAPPING of many keys: open-addressing hash, entry number + 1 */
    uint32_t slot_count;
};

struct node *node_new(struct arena *arena, enum node_kind kind, const struct source *source,
                      size_t offset);
/* The entry of a key, NULL when the mapping has none. O(1) on average. */
struct node_entry *node_get(const struct node *mapping, const char *key);
/* Adds a key that is not there yet (mapping), or an item with key NULL (list). */
void node_add(struct arena *arena, struct node *node, const struct node_entry *entry);
/* A mapping without the entries for which drop says true. The values are shared. */
struct node *node_without(struct arena *arena, const struct node *mapping,
                          bool (*drop)(const char *key, const void *context), const void *context);
/* Nothing was written: an empty, null or ~ scalar without quotes. */
bool node_is_null(const struct node *node);
/* "a mapping", "a list", "the value 'x'" for messages. In the arena. */
const char *node_describe(const struct node *node, struct arena *arena);
/* A user's text fit for one line of a message: cut off, control characters replaced. */
const char *node_quote(const char *text, struct arena *arena);
/* The same without cutting, in place. */
void node_clean(char *text);

#endif
