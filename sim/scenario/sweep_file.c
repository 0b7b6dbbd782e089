#include "sim/scenario/sweep_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/check.h"
#include "sim/scenario/file.h"
#include "sim/scenario/fill.h"
#include "sim/scenario/node.h"
#include "sim/scenario/yaml.h"

static const char *const scale_names[] = {"linear", "log", NULL};

/* ---- tables -------------------------------------------------------------------------------------
 * Keys whose values are any YAML (RAW) stand in the tables for their names and words only: they are
 * read from the nodes. */

#define RAW(type_, key_, doc_)                                                                     \
    .name = key_, .kind = FIELD_TEXT, .flags = FIELD_OPTIONAL, .offset = offsetof(type_, raw),     \
    .doc = doc_

struct span_text {
    const char *from, *to, *step;
    int64_t count;
    int scale;
    bool round;
};

struct axis_text {
    const char *name, *unit, *long_name, *raw;
    struct field_list labels;
};

struct root_text {
    const char *name, *description, *base, *raw;
    int64_t replications, memory_bytes, time_limit_ps;
    struct field_list outputs;
};

static const struct field range_fields[] = {
    {.name = "from",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct span_text, from),
     .doc = "The first value, such as 10 or 10 s"},
    {.name = "to",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct span_text, to),
     .doc = "The last value, in the same unit"},
    {.name = "step",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct span_text, step),
     .doc = "From one value to the next: added, or multiplied with `scale: log`; or `count`"},
    {.name = "count",
     .kind = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct span_text, count),
     .min = 2,
     .max = 100000,
     .doc = "How many values, both ends included; or `step`"},
    {.name = "scale",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct span_text, scale),
     .fallback = "linear",
     .choices = scale_names,
     .doc = "Equal differences, or equal ratios"},
    {.name = "round",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct span_text, round),
     .fallback = "false",
     .doc = "Round to whole numbers"},
    {0},
};

static const struct field side_item = {.kind = FIELD_TEXT, .doc = "One for each key"};
static const struct field scale_item = {
    .kind = FIELD_CHOICE, .choices = scale_names, .doc = "One for each key"};

static const struct field sample_fields[] = {
    {.name = "count",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct sweep_file_samples, count),
     .min = 1,
     .max = 100000,
     .doc = "How many points"},
    {.name = "from",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct sweep_file_samples, from),
     .item = &side_item,
     .item_size = sizeof(const char *),
     .min = 1,
     .max = SWEEP_FILE_KEYS_MAX,
     .doc = "The lower end of each key"},
    {.name = "to",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct sweep_file_samples, to),
     .item = &side_item,
     .item_size = sizeof(const char *),
     .min = 1,
     .max = SWEEP_FILE_KEYS_MAX,
     .doc = "The upper end of each key"},
    {.name = "scale",
     .kind = FIELD_LIST,
     .offset = offsetof(struct sweep_file_samples, scale),
     .item = &scale_item,
     .item_size = sizeof(int),
     .max = SWEEP_FILE_KEYS_MAX,
     .doc = "Equal differences or equal ratios, of each key; linear when not given"},
    {.name = "skip",
     .kind = FIELD_INT,
     .offset = offsetof(struct sweep_file_samples, skip),
     .fallback = "0",
     .max = 1000000,
     .doc = "Points of the sequence that are left out at its beginning"},
    {.name = "round",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct sweep_file_samples, round),
     .fallback = "false",
     .doc = "Round to whole numbers"},
    {0},
};

static const struct field label_item = {.kind = FIELD_TEXT, .doc = "One for each value"};

static const struct field axis_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct axis_text, name),
     .doc = "The axis in the results: a letter, then letters, digits and _; the key's last part "
            "when not given"},
    {RAW(struct axis_text, "key",
         "What is varied: one path, such as `fleet.pools[0].max_queue`, or a list of paths")},
    {.name = "unit",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct axis_text, unit),
     .doc = "In which unit the results show it: `min`, or any word where values are bare numbers"},
    {.name = "long_name",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct axis_text, long_name),
     .doc = "A few words for a plot's axis"},
    {.name = "labels",
     .kind = FIELD_LIST,
     .offset = offsetof(struct axis_text, labels),
     .item = &label_item,
     .item_size = sizeof(const char *),
     .doc = "What the values are called in the results"},
    {RAW(struct axis_text, "list",
         "The values, each given to every key: numbers, texts or whole mappings")},
    {RAW(struct axis_text, "grid", "The same as `list`")},
    {RAW(struct axis_text, "zip", "Rows of values, one for each key, varied together")},
    {RAW(struct axis_text, "range", "Values between two numbers")},
    {RAW(struct axis_text, "samples",
         "Quasi-random points (Sobol) between two corners, one coordinate for each key")},
    {0},
};

static const struct field output_item = {.kind = FIELD_TEXT, .doc = "A column of the summary"};

static const struct field root_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct root_text, name),
     .doc = "A short name: the folder of results is NAME.sweep; by default that of the folder the "
            "file is in"},
    {.name = "description",
     .kind = FIELD_TEXT,
     .fallback = "",
     .offset = offsetof(struct root_text, description),
     .doc = "One line for people"},
    {.name = "base",
     .kind = FIELD_PATH,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct root_text, base),
     .doc = "The scenario that is varied; by default the scenario.yaml beside this file"},
    {.name = "replications",
     .kind = FIELD_INT,
     .offset = offsetof(struct root_text, replications),
     .fallback = "1",
     .min = 1,
     .max = SWEEP_FILE_REPLICATIONS_MAX,
     .doc = "Runs of every point under independent chance, the same at all points"},
    {.name = "outputs",
     .kind = FIELD_LIST,
     .offset = offsetof(struct root_text, outputs),
     .item = &output_item,
     .item_size = sizeof(const char *),
     .doc = "The columns of the summary that sweep.h5 holds; all when not given"},
    {.name = "memory",
     .kind = FIELD_INT,
     .unit = UNIT_BYTES,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct root_text, memory_bytes),
     .min = 1 << 20,
     .max = 1e15,
     .doc = "What one run may take; a run that takes more is stopped and counts as failed. By "
            "default nine tenths of the machine's, shared by the runs at work"},
    {.name = "time_limit",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct root_text, time_limit_ps),
     .min = 1,
     .max = 8640000,
     .doc = "How long one run may work, by the clock on the wall; a run that takes longer is "
            "stopped and counts as failed. By default for ever"},
    {RAW(struct root_text, "axes", "What is varied")},
    {0},
};

/* ---- reading ------------------------------------------------------------------------------------
 */

struct reader {
    struct sweep_file *file;
    struct arena *arena;
    struct errors *errors;
};

static bool fail(const struct reader *r, uint32_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(const struct reader *r, uint32_t offset, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    source_error(r->errors, SEVERITY_ERROR, &r->file->source, offset, "%s", message);
    return false;
}

void sweep_file_error(const struct sweep_file *file, uint32_t offset, struct errors *errors,
                      const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    source_error(errors, SEVERITY_ERROR, &file->source, offset, "%s", message);
}

/* The mapping with nothing where its raw values are, so that the tables can be walked. */
static struct node *raw_blank(const struct reader *r, const struct node *mapping,
                              const char *const *raw)
{
    struct node *copy = node_new(r->arena, NODE_MAPPING, mapping->source, mapping->offset);
    for (uint32_t i = 0; i < mapping->count; i++) {
        struct node_entry entry = mapping->entries[i];
        for (size_t k = 0; raw[k]; k++) {
            if (strcmp(entry.key, raw[k]) != 0)
                continue;
            struct node *nothing =
                node_new(r->arena, NODE_SCALAR, entry.value->source, entry.value->offset);
            nothing->plain = true;
            entry.value = nothing;
        }
        node_add(r->arena, copy, &entry);
    }
    return copy;
}

/* ---- values as one line of YAML -----------------------------------------------------------------
 */

struct line {
    char *text; /* arena */
    size_t length, capacity;
    struct sweep_file_mark *marks; /* arena */
    size_t mark_count, mark_capacity;
    const struct reader *reader;
};

static void line_put(struct line *line, const char *text, size_t length)
{
    if (line->length + length + 1 > line->capacity) {
        size_t capacity = 2 * (line->length + length) + 64;
        char *grown = arena_alloc(line->reader->arena, capacity);
        if (line->length > 0)
            memcpy(grown, line->text, line->length);
        line->text = grown;
        line->capacity = capacity;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
    line->text[line->length] = '\0';
}

static void line_mark(struct line *line, uint32_t offset)
{
    if (line->mark_count == line->mark_capacity) {
        line->mark_capacity = 2 * line->mark_capacity + 8;
        struct sweep_file_mark *grown =
            arena_alloc(line->reader->arena, line->mark_capacity * sizeof *grown);
        if (line->mark_count > 0)
            memcpy(grown, line->marks, line->mark_count * sizeof *grown);
        line->marks = grown;
    }
    line->marks[line->mark_count++] =
        (struct sweep_file_mark){.text = (uint32_t)line->length, .offset = offset};
}

/* Whether a text means the same without quotes, also inside brackets. */
static bool plain_safe(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_./+$%";
    size_t length = strlen(text);
    if (length == 0 || text[0] == ' ' || text[0] == '%' || text[length - 1] == ' ')
        return false;
    for (size_t i = 0; i < length; i++) {
        bool dash = text[i] == '-' && length > 1 && text[i + 1] != ' ';
        if (!strchr(safe, text[i]) && text[i] != ' ' && !dash)
            return false;
    }
    return true;
}

static void scalar_put(struct line *line, const char *text, bool plain)
{
    if (plain && plain_safe(text)) {
        line_put(line, text, strlen(text));
        return;
    }
    line_put(line, "\"", 1);
    while (*text) {
        char escaped[FIELD_ESCAPE_MAX];
        size_t length = field_yaml_escape(&text, escaped);
        line_put(line, escaped, length);
    }
    line_put(line, "\"", 1);
}

/* A value that begins with ./ or ../ is a path beside the sweep's file; --set would take it from
 * the working directory. */
static const char *path_place(const struct reader *r, const char *text)
{
    const char *folder = r->file->source.folder;
    bool relative = strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0;
    if (!relative || folder[0] == '\0')
        return text;
    return arena_printf(r->arena, "%s/%s", folder, text);
}

/* Recursion is bounded by YAML_DEPTH_MAX. */
static void node_put(struct line *line, const struct node *node)
{
    line_mark(line, node->offset);
    if (node->kind == NODE_SCALAR) {
        if (node_is_null(node))
            line_put(line, "~", 1);
        else
            scalar_put(line, path_place(line->reader, node->text), node->plain);
        return;
    }
    line_put(line, node->kind == NODE_LIST ? "[" : "{", 1);
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            line_put(line, ", ", 2);
        if (node->kind == NODE_MAPPING) {
            line_mark(line, node->entries[i].offset);
            scalar_put(line, node->entries[i].key, true);
            line_put(line, ": ", 2);
        }
        node_put(line, node->entries[i].value);
    }
    line_put(line, node->kind == NODE_LIST ? "]" : "}", 1);
}

static struct sweep_file_value value_of(const struct reader *r, const struct node *node)
{
    struct line line = {.reader = r};
    node_put(&line, node);
    return (struct sweep_file_value){.text = line.text,
                                     .scalar = node->kind == NODE_SCALAR,
                                     .offset = node->offset,
                                     .marks = line.marks,
                                     .mark_count = line.mark_count};
}

/* ---- axes ---------------------------------------------------------------------------------------
 */

static bool keys_read(const struct reader *r, const struct node *axis, struct sweep_file_axis *out)
{
    const struct node_entry *entry = node_get(axis, "key");
    if (!entry)
        return fail(r, axis->offset, "missing key 'key': the path of the value that is varied");
    const struct node *value = entry->value;
    size_t count = value->kind == NODE_LIST ? value->count : 1;
    if (value->kind == NODE_MAPPING || count == 0 || count > SWEEP_FILE_KEYS_MAX)
        return fail(r, value->offset, "'key': expected a path or a list of 1 to %d paths, found %s",
                    SWEEP_FILE_KEYS_MAX, node_describe(value, r->arena));
    out->keys = arena_alloc(r->arena, count * sizeof *out->keys);
    for (size_t i = 0; i < count; i++) {
        const struct node *key = value->kind == NODE_LIST ? value->entries[i].value : value;
        if (key->kind != NODE_SCALAR || node_is_null(key) || strchr(key->text, '='))
            return fail(r, key->offset,
                        "'key': expected a path such as fleet.pools[0].max_queue, found %s",
                        node_describe(key, r->arena));
        for (size_t k = 0; k < i; k++)
            if (strcmp(out->keys[k].path, key->text) == 0)
                return fail(r, key->offset, "'key': '%s' is there twice",
                            node_quote(key->text, r->arena));
        out->keys[out->key_count++] =
            (struct sweep_file_key){.path = key->text, .offset = key->offset};
    }
    return true;
}

static bool name_ok(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return name[0] && strspn(name, letters) == strlen(name) &&
           !(name[0] >= '0' && name[0] <= '9') && strlen(name) <= 64;
}

/* The last part of a path, as a name: "fleet.pools[0].max_queue" → "max_queue". */
static const char *key_name(const struct reader *r, const char *path)
{
    const char *dot = strrchr(path, '.');
    char *name = arena_copy(r->arena, dot ? dot + 1 : path);
    name[strcspn(name, "[")] = '\0';
    return name;
}

static bool list_read(const struct reader *r, const struct node *list, struct sweep_file_axis *out)
{
    if (list->kind != NODE_LIST || list->count == 0)
        return fail(r, list->offset, "'list': expected a list of values, found %s",
                    list->kind == NODE_LIST ? "an empty one" : node_describe(list, r->arena));
    out->kind = SWEEP_FILE_LIST;
    out->count = list->count;
    out->values = arena_alloc(r->arena, list->count * sizeof *out->values);
    for (uint32_t i = 0; i < list->count; i++)
        out->values[i] = value_of(r, list->entries[i].value);
    return true;
}

static bool zip_read(const struct reader *r, const struct node *list, struct sweep_file_axis *out)
{
    if (list->kind != NODE_LIST || list->count == 0)
        return fail(r, list->offset, "'zip': expected a list of rows, found %s",
                    list->kind == NODE_LIST ? "an empty one" : node_describe(list, r->arena));
    out->kind = SWEEP_FILE_ZIP;
    out->count = list->count;
    out->values = arena_alloc(r->arena, list->count * out->key_count * sizeof *out->values);
    bool ok = true;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *row = list->entries[i].value;
        if (row->kind != NODE_LIST || row->count != out->key_count) {
            ok = fail(r, row->offset, "'zip': expected a row of %zu values, one for each key",
                      out->key_count);
            continue;
        }
        for (uint32_t k = 0; k < row->count; k++)
            out->values[i * out->key_count + k] = value_of(r, row->entries[k].value);
    }
    return ok;
}

/* A mapping read by a table. */
static bool table_read(const struct reader *r, const struct field *fields, const struct node *node,
                       const char *name, void *target)
{
    size_t before = r->errors->error_count;
    if (node->kind != NODE_MAPPING)
        return fail(r, node->offset, "'%s': expected a mapping, found %s", name,
                    node_describe(node, r->arena));
    field_defaults(fields, target, r->arena);
    fill_root(fields, node, arena_printf(r->arena, "in %s", name), target, r->arena, r->arena,
              r->errors);
    return r->errors->error_count == before;
}

static bool range_read(const struct reader *r, const struct node *node, struct sweep_file_axis *out)
{
    struct span_text span;
    out->kind = SWEEP_FILE_RANGE;
    if (!table_read(r, range_fields, node, "range", &span))
        return false;
    if ((span.step != NULL) == (span.count != FIELD_INT_UNSET))
        return fail(r, node->offset, "'range' needs step or count, one of the two");
    out->range = (struct sweep_file_span){.from = span.from,
                                          .to = span.to,
                                          .step = span.step,
                                          .count = span.count,
                                          .scale = span.scale,
                                          .round = span.round};
    return true;
}

static bool samples_read(const struct reader *r, const struct node *node,
                         struct sweep_file_axis *out)
{
    out->kind = SWEEP_FILE_SAMPLES;
    if (!table_read(r, sample_fields, node, "samples", &out->samples))
        return false;
    const struct sweep_file_samples *s = &out->samples;
    if (s->from.count != out->key_count || s->to.count != out->key_count ||
        (s->scale.count != 0 && s->scale.count != out->key_count))
        return fail(r, node->offset,
                    "'samples': from, to and scale need one item for each of the %zu keys",
                    out->key_count);
    out->count = (size_t)s->count;
    return true;
}

/* Which of list, grid, zip, range and samples gives the values. */
static bool values_read(const struct reader *r, const struct node *axis,
                        struct sweep_file_axis *out)
{
    static const struct {
        const char *key;
        bool (*read)(const struct reader *r, const struct node *node, struct sweep_file_axis *out);
    } ways[] = {{"list", list_read},
                {"grid", list_read},
                {"zip", zip_read},
                {"range", range_read},
                {"samples", samples_read}};
    const struct node_entry *found = NULL;
    size_t way = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct node_entry *entry = node_get(axis, ways[i].key);
        if (entry && found)
            return fail(r, entry->offset, "'%s' and '%s' both give the values of one axis",
                        ways[way].key, ways[i].key);
        if (entry) {
            found = entry;
            way = i;
        }
    }
    if (!found)
        return fail(r, axis->offset, "an axis needs values: list, zip, range or samples");
    out->kind_offset = found->offset;
    return ways[way].read(r, found->value, out);
}

static void axis_read(const struct reader *r, const struct node *axis, struct sweep_file_axis *out)
{
    static const char *const raw[] = {"key", "list", "grid", "zip", "range", "samples", NULL};
    struct axis_text text = {0};
    out->offset = axis->offset;
    if (axis->kind != NODE_MAPPING) {
        fail(r, axis->offset, "an axis is a mapping of keys to values, not %s",
             node_describe(axis, r->arena));
        return;
    }
    /* range and samples are read apart, with defaults only where they are there. */
    field_defaults(axis_fields, &text, r->arena);
    fill_root(axis_fields, raw_blank(r, axis, raw), "in an axis", &text, r->arena, r->arena,
              r->errors);
    out->unit = text.unit;
    out->long_name = text.long_name;
    out->labels = text.labels;
    if (!keys_read(r, axis, out))
        return;
    out->name = text.name ? text.name : key_name(r, out->keys[0].path);
    if (!name_ok(out->name))
        fail(r, axis->offset,
             "the axis name '%s' is not a letter followed by letters, digits and _ (at most 64)",
             node_quote(out->name, r->arena));
    if (values_read(r, axis, out) && out->labels.count > 0 && out->count > 0 &&
        out->labels.count != out->count)
        fail(r, axis->offset, "'labels' has %zu items for %zu values", out->labels.count,
             out->count);
}

static void axes_read(const struct reader *r, const struct node *root)
{
    struct sweep_file *file = r->file;
    const struct node_entry *entry = node_get(root, "axes");
    if (!entry || node_is_null(entry->value))
        return; /* nothing is varied: replications alone */
    const struct node *axes = entry->value;
    if (axes->kind != NODE_LIST || axes->count > SWEEP_FILE_AXES_MAX) {
        fail(r, entry->offset, "'axes': expected a list of at most %d axes", SWEEP_FILE_AXES_MAX);
        return;
    }
    file->axes = arena_alloc(r->arena, axes->count * sizeof *file->axes);
    for (uint32_t i = 0; i < axes->count; i++) {
        struct sweep_file_axis *axis = &file->axes[file->axis_count++];
        axis_read(r, axes->entries[i].value, axis);
        for (size_t k = 0; k + 1 < file->axis_count && axis->name; k++)
            if (file->axes[k].name && strcmp(file->axes[k].name, axis->name) == 0)
                fail(r, axis->offset, "two axes are called '%s'", node_quote(axis->name, r->arena));
    }
}

/* ---- the file -----------------------------------------------------------------------------------
 */

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char *file_path(const char *name, const char *const *folders, struct arena *arena,
                             struct errors *errors)
{
    for (size_t i = 0; !strchr(name, '/') && folders && folders[i]; i++) {
        const char *path = arena_printf(arena, "%s/%s/sweep.yaml", folders[i], name);
        if (is_file(path))
            return path;
    }
    if (is_file(name))
        return name;
    const char *inside = arena_printf(arena, "%s/sweep.yaml", name);
    if (is_file(inside))
        return inside;
    if (is_folder(name))
        errors_add(errors, SEVERITY_ERROR, NULL, "%s: there is no sweep.yaml in this folder", name);
    else
        errors_add(errors, SEVERITY_ERROR, NULL, "no sweep named '%s' and no such file", name);
    return NULL;
}

static void outputs_place(const struct reader *r, const struct node *root)
{
    struct sweep_file *file = r->file;
    const struct node_entry *entry = node_get(root, "outputs");
    file->output_offsets = arena_alloc(r->arena, file->outputs.count * sizeof(uint32_t));
    for (size_t i = 0; i < file->outputs.count; i++)
        file->output_offsets[i] = entry->value->entries[i].value->offset;
}

/* The name of the folder the file is in, or "sweep". */
static const char *default_name(const struct reader *r)
{
    const char *folder = r->file->source.folder;
    const char *slash = strrchr(folder, '/');
    const char *last = slash ? slash + 1 : folder;
    return last[0] && last[0] != '.' ? last : "sweep";
}

static void root_read(const struct reader *r, const struct node *root)
{
    static const char *const raw[] = {"axes", NULL};
    struct sweep_file *file = r->file;
    struct root_text text = {0};
    size_t before = r->errors->error_count;
    field_defaults(root_fields, &text, r->arena);
    fill_root(root_fields, raw_blank(r, root, raw), "at the top level", &text, r->arena, r->arena,
              r->errors);
    file->name = text.name ? text.name : default_name(r);
    file->description = text.description;
    file->replications = text.replications;
    file->memory_bytes = text.memory_bytes;
    file->time_limit_ps = text.time_limit_ps;
    const char *folder = file->source.folder;
    file->base = text.base
                     ? text.base
                     : arena_printf(r->arena, "%s%sscenario.yaml", folder, folder[0] ? "/" : "");
    bool plain = true; /* the name is also in scripts and on the terminal */
    for (const char *c = file->name; *c; c++)
        plain &= (unsigned char)*c >= 0x20 && *c != 0x7f && *c != '/';
    if (!plain || file->name[0] == '\0' || file->name[0] == '.')
        fail(r, root->offset, "'name': '%s' cannot be the name of a folder",
             node_quote(file->name, r->arena));
    file->outputs = text.outputs;
    if (r->errors->error_count == before)
        outputs_place(r, root);
    axes_read(r, root);
}

struct sweep_file *sweep_file_load(const char *name, const char *const *folders,
                                   struct arena *arena, struct errors *errors)
{
    struct file_text text;
    size_t before = errors->error_count, nodes_left = YAML_NODES_MAX;
    const char *path = file_path(name, folders, arena, errors);
    if (!path || !file_read(path, SOURCE_LENGTH_MAX, NULL, &text, arena, errors))
        return NULL;
    struct sweep_file *file = arena_alloc(arena, sizeof *file);
    struct reader r = {.file = file, .arena = arena, .errors = errors};
    file->path = text.path;
    file->text = text.text;
    source_init(&file->source, text.path, text.folder, text.text, text.length, arena);
    const struct node *root = yaml_parse(&file->source, 0, &nodes_left, arena, errors);
    if (root && root->kind != NODE_MAPPING)
        fail(&r, root->offset, "a sweep is a mapping of keys to values, not %s",
             node_describe(root, arena));
    else if (root)
        root_read(&r, root);
    return errors->error_count == before ? file : NULL;
}
