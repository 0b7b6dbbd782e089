#include "sim/scenario/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/scenario/file.h"
#include "sim/scenario/fill.h"
#include "sim/scenario/node.h"
#include "sim/scenario/overlay.h"
#include "sim/scenario/yaml.h"

enum { EXTENDS_MAX = 16 };

struct scenario {
    struct arena arena; /* everything below */
    const char *path;
    const char *text;
    struct node *tree; /* NULL until loaded */
    size_t nodes_left;
    struct {
        dev_t device;
        ino_t inode;
    } files[EXTENDS_MAX]; /* those opened */
    size_t file_count;
};

/* A chain of files, the one asked for first. */
struct chain {
    struct file_text files[EXTENDS_MAX];
    struct node *trees[EXTENDS_MAX];
    size_t count;
};

static struct scenario *scenario_create(void)
{
    struct scenario *scenario = memory_zero(1, sizeof *scenario);
    arena_init(&scenario->arena);
    scenario->nodes_left = YAML_NODES_MAX;
    return scenario;
}

void scenario_free(struct scenario *scenario)
{
    if (!scenario)
        return;
    arena_free(&scenario->arena);
    free(scenario);
}

/* ---- files --------------------------------------------------------------------------------------
 */

static bool key_is(const char *key, const void *context)
{
    return strcmp(key, context) == 0;
}

/* One text as a tree; its `extends` (NULL when there is none) is taken out of it. */
static struct node *text_parse(struct scenario *scenario, const struct file_text *file,
                               struct node_entry *extends, struct errors *errors)
{
    struct arena *arena = &scenario->arena;
    struct source *source = arena_alloc(arena, sizeof *source);
    source_init(source, file->path, file->folder, file->text, file->length, arena);
    struct node *tree = yaml_parse(source, 0, &scenario->nodes_left, arena, errors);
    *extends = (struct node_entry){.key = NULL};
    if (!tree)
        return NULL;
    if (tree->kind != NODE_MAPPING) {
        source_error(errors, SEVERITY_ERROR, source, tree->offset,
                     "a scenario is a mapping of keys to values, not %s",
                     node_describe(tree, arena));
        return NULL;
    }
    const struct node_entry *entry = node_get(tree, "extends");
    if (!entry)
        return tree;
    *extends = *entry;
    return node_without(arena, tree, key_is, "extends");
}

/* The path an `extends` means; NULL (reported) when it is none. */
static const char *extends_path(struct scenario *scenario, const struct node_entry *extends,
                                const struct file_text *from, struct errors *errors)
{
    const struct node *value = extends->value;
    if (value->kind != NODE_SCALAR || value->text[0] == '\0' || node_is_null(value)) {
        source_error(errors, SEVERITY_ERROR, value->source, value->offset,
                     "'extends': expected the path of a scenario file, found %s",
                     node_describe(value, &scenario->arena));
        return NULL;
    }
    if (value->text[0] == '/' || from->folder[0] == '\0')
        return value->text;
    return arena_printf(&scenario->arena, "%s/%s", from->folder, value->text);
}

/* Reads the file that the last of the chain extends into the chain. */
static bool chain_extend(struct scenario *scenario, struct chain *chain,
                         const struct node_entry *extends, struct errors *errors)
{
    struct source_pos pos;
    const struct node *value = extends->value;
    const char *path = extends_path(scenario, extends, &chain->files[chain->count - 1], errors);
    if (!path)
        return false;
    source_place(value->source, value->offset, &pos);
    if (chain->count == EXTENDS_MAX) {
        errors_add(errors, SEVERITY_ERROR, &pos, "more than %d files extend one another",
                   EXTENDS_MAX);
        return false;
    }
    struct file_text *file = &chain->files[chain->count];
    if (!file_read(path, SOURCE_LENGTH_MAX, &pos, file, &scenario->arena, errors))
        return false;
    for (size_t i = 0; i < chain->count; i++) {
        if (chain->files[i].device == file->device && chain->files[i].inode == file->inode) {
            errors_add(errors, SEVERITY_ERROR, &pos,
                       "'extends' goes in a circle: %s is read already", path);
            return false;
        }
    }
    chain->count++;
    return true;
}

/* Parses the whole chain that begins with files[0]. */
static bool chain_read(struct scenario *scenario, struct chain *chain, bool follow,
                       struct errors *errors)
{
    for (size_t i = 0; i < chain->count; i++) {
        struct node_entry extends;
        chain->trees[i] = text_parse(scenario, &chain->files[i], &extends, errors);
        if (!chain->trees[i])
            return false;
        if (extends.value && !follow) {
            source_error(errors, SEVERITY_ERROR, extends.source, extends.offset,
                         "'extends' is not followed here");
            return false;
        }
        if (extends.value && !chain_extend(scenario, chain, &extends, errors))
            return false;
    }
    return true;
}

/* The first file as it is, the others after it, each under a comment with its path. */
static const char *chain_text(const struct chain *chain, struct arena *arena)
{
    size_t size = 1;
    for (size_t i = 0; i < chain->count; i++)
        size += chain->files[i].length + strlen(chain->files[i].path) + 16;
    char *text = arena_alloc(arena, size);
    size_t used = 0;
    for (size_t i = 0; i < chain->count; i++) {
        const struct file_text *file = &chain->files[i];
        if (i > 0)
            used += (size_t)snprintf(text + used, size - used, "%s# extends %s\n",
                                     used > 0 && text[used - 1] != '\n' ? "\n" : "", file->path);
        memcpy(text + used, file->text, file->length);
        used += file->length;
    }
    text[used] = '\0';
    return text;
}

/* ---- loading ------------------------------------------------------------------------------------
 */

/* Applies request->sets; their texts are copied, so that places in them outlive the request. */
static void sets_apply(struct scenario *scenario, const struct scenario_request *request,
                       const struct field *owner, struct errors *errors)
{
    struct arena *arena = &scenario->arena;
    for (size_t i = 0; i < request->set_count; i++) {
        const char *text = request->sets[i];
        size_t length = strlen(text);
        const char *name = arena_printf(arena, "--set '%s'", node_quote(text, arena));
        if (length > SOURCE_LENGTH_MAX) {
            errors_add(errors, SEVERITY_ERROR, NULL, "%s: larger than %d MiB", name,
                       SOURCE_LENGTH_MAX >> 20);
            continue;
        }
        struct source *source = arena_alloc(arena, sizeof *source);
        source_init(source, name, "", arena_copyn(arena, text, length), length, arena);
        overlay_set(owner, scenario->tree, source, &scenario->nodes_left, arena, errors);
    }
}

/* From a chain of texts to a filled target. Takes the scenario over: freed when NULL is returned.
 */
static struct scenario *chain_load(struct scenario *scenario, struct chain *chain, bool follow,
                                   const struct scenario_request *request, struct arena *arena,
                                   struct errors *errors)
{
    struct field owner = {.name = "", .kind = FIELD_STRUCT, .fields = request->root};
    size_t errors_before = errors->error_count;
    if (chain_read(scenario, chain, follow, errors)) {
        scenario->path = chain->files[0].path;
        scenario->text = chain_text(chain, &scenario->arena);
        scenario->file_count = follow ? chain->count : 0;
        for (size_t i = 0; i < scenario->file_count; i++) {
            scenario->files[i].device = chain->files[i].device;
            scenario->files[i].inode = chain->files[i].inode;
        }
        scenario->tree = chain->trees[chain->count - 1];
        for (size_t i = chain->count - 1; i-- > 0;)
            scenario->tree =
                overlay_merge(&owner, scenario->tree, chain->trees[i], &scenario->arena);
        sets_apply(scenario, request, &owner, errors);
        field_defaults(request->root, request->target, arena);
        fill_root(request->root, scenario->tree, "at the top level", request->target, arena,
                  &scenario->arena, errors);
    }
    if (errors->error_count == errors_before)
        return scenario;
    errors_sort(errors);
    scenario_free(scenario);
    return NULL;
}

struct scenario *scenario_load(const struct scenario_request *request, struct arena *arena,
                               struct errors *errors)
{
    struct scenario *scenario = scenario_create();
    struct chain chain = {.count = 1};
    const char *path = file_find(request->name, request->folders, &scenario->arena, errors);
    if (!path ||
        !file_read(path, SOURCE_LENGTH_MAX, NULL, &chain.files[0], &scenario->arena, errors)) {
        scenario_free(scenario);
        return NULL;
    }
    return chain_load(scenario, &chain, true, request, arena, errors);
}

struct scenario *scenario_load_text(const struct scenario_request *request, const char *text,
                                    size_t length, struct arena *arena, struct errors *errors)
{
    struct scenario *scenario = scenario_create();
    if (length > SOURCE_LENGTH_MAX) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%s: larger than %d MiB, the limit for a scenario",
                   request->name, SOURCE_LENGTH_MAX >> 20);
        scenario_free(scenario);
        return NULL;
    }
    struct chain chain = {.count = 1};
    chain.files[0] = (struct file_text){.path = arena_copy(&scenario->arena, request->name),
                                        .folder = "",
                                        .text = arena_copyn(&scenario->arena, text, length),
                                        .length = length};
    return chain_load(scenario, &chain, false, request, arena, errors);
}

/* ---- looking back -------------------------------------------------------------------------------
 */

const char *scenario_path(const struct scenario *scenario)
{
    return scenario->path;
}

bool scenario_reads(const struct scenario *scenario, dev_t device, ino_t inode)
{
    for (size_t i = 0; i < scenario->file_count; i++) {
        if (scenario->files[i].device == device && scenario->files[i].inode == inode)
            return true;
    }
    return false;
}

const char *scenario_text(const struct scenario *scenario)
{
    return scenario->text;
}

/* Follows path as far as it was written. *entry: the last value found (value NULL: none). Returns
 * whether that was the whole path. */
static bool tree_walk(const struct scenario *scenario, const char *path, struct node_entry *entry)
{
    const struct node *node = scenario->tree;
    *entry = (struct node_entry){.key = NULL};
    while (*path) {
        const struct node_entry *next = NULL;
        if (*path == '[') {
            char *end;
            unsigned long index = strtoul(path + 1, &end, 10);
            if (node->kind == NODE_LIST && *end == ']' && index < node->count)
                next = &node->entries[index];
            path = *end == ']' ? end + 1 : end;
        } else {
            path += *path == '.';
            char key[128];
            size_t length = strcspn(path, ".[");
            snprintf(key, sizeof key, "%.*s", (int)(length < sizeof key ? length : sizeof key - 1),
                     path);
            if (node->kind == NODE_MAPPING && length > 0 && length < sizeof key)
                next = node_get(node, key);
            path += length;
        }
        if (!next)
            return false;
        *entry = *next;
        node = next->value;
    }
    return entry->value;
}

static void scenario_find(void *self, const char *path, struct source_pos *pos)
{
    const struct scenario *scenario = self;
    struct node_entry entry;
    bool whole = tree_walk(scenario, path, &entry);
    if (!entry.value)
        *pos = (struct source_pos){.file = scenario->path};
    else if (!entry.key || (whole && entry.value->kind == NODE_SCALAR))
        source_place(entry.value->source, entry.value->offset, pos);
    else /* the key of what holds it */
        source_place(entry.source, entry.offset, pos);
}

struct locator scenario_locator(struct scenario *scenario)
{
    return (struct locator){.find = scenario_find, .self = scenario};
}

bool scenario_wrote(const struct scenario *scenario, const char *path)
{
    struct node_entry entry;
    return tree_walk(scenario, path, &entry) && !node_is_null(entry.value);
}
