/* We read libfyaml's event stream, not its document tree: the tree is quadratic in the keys of one
 * mapping, recurses as deep as its input does, and expands aliases without a limit. Places come
 * from byte offsets, because libfyaml counts columns in characters. */
#include "sim/scenario/yaml.h"

#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"

/* An open mapping or list. */
struct frame {
    struct node *node;
    const char *anchor; /* registered when the node is complete; NULL: none */
    const char *key;    /* MAPPING: read, its value is next; NULL: a key is next */
    size_t key_offset;
    bool duplicate; /* the key was seen before: drop the value */
};

struct builder {
    const struct source *source;
    size_t from; /* libfyaml's offset 0 */
    size_t *nodes_left;
    struct arena *arena;
    struct errors *errors;
    struct node *root;
    struct node *anchors; /* a mapping: anchor → complete node */
    struct frame stack[YAML_DEPTH_MAX];
    size_t depth;
    size_t documents;
    size_t last_offset; /* of the last token that had a place */
    char diagnostic[256];
    char *text; /* owned; where a token's chunks are put together */
    size_t text_capacity;
};

static bool fail(struct builder *b, size_t offset, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(struct builder *b, size_t offset, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    source_error(b->errors, SEVERITY_ERROR, b->source, offset, "%s", message);
    return false;
}

/* ---- texts libfyaml never sees ------------------------------------------------------------------
 */

/* Bytes of the UTF-8 character at text, 0 when it is none. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    unsigned char c = text[0];
    size_t length = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : (c & 0xf0) == 0xe0    ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] >= 0x90))
        return 0; /* overlong, a surrogate, or beyond U+10FFFF */
    return length;
}

/* Binary files and stray control characters are refused here, with their place: libfyaml 0.7.12
 * stops at some of them without an error. */
static bool text_check(struct builder *b)
{
    const unsigned char *text = (const unsigned char *)b->source->text;
    size_t length = b->source->length;
    if (memchr(text + b->from, 0, length - b->from)) {
        struct source_pos pos = {.file = b->source->name};
        errors_add(b->errors, SEVERITY_ERROR, &pos, "a binary file, not a YAML text");
        return false;
    }
    bool blank = true;
    for (size_t i = b->from; i < length;) {
        size_t bytes = utf8_length(text + i, length - i);
        if (bytes == 0)
            return fail(b, i, "byte 0x%02x is not UTF-8 text", text[i]);
        bool line_char = text[i] == '\t' || text[i] == '\n' || text[i] == '\r';
        if ((text[i] < 0x20 && !line_char) || text[i] == 0x7f)
            return fail(b, i, "control character 0x%02x in the text", text[i]);
        if (bytes == 2 && text[i] == 0xc2 && text[i + 1] < 0xa0)
            return fail(b, i, "control character 0x%02x in the text", text[i + 1]);
        if (bytes == 3 && i > b->from && memcmp(text + i, "\xef\xbb\xbf", 3) == 0)
            return fail(b, i, "a byte order mark inside the text");
        blank &= text[i] == ' ' || line_char;
        i += bytes;
    }
    return blank ? fail(b, b->from, "there is nothing in it") : true;
}

/* ---- tokens -------------------------------------------------------------------------------------
 */

/* Offset in the source of a token; of the last one before it when it has no place. */
static size_t token_offset(struct builder *b, struct fy_token *token)
{
    const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
    if (mark) {
        enum fy_scalar_style style = fy_token_scalar_style(token);
        size_t offset = b->from + mark->input_pos;
        /* The mark of a quoted scalar is after the quote. */
        if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && offset > b->from)
            offset--;
        b->last_offset = offset;
    }
    return b->last_offset;
}

/* The text, chunk by chunk: fy_token_get_text of libfyaml 0.7.12 leaks memory for a text with many
 * '' in a row, and returns bytes it never wrote for some ill-indented block texts. *whole: there is
 * no NUL in it. */
static const char *token_text(struct builder *b, struct fy_token *token, bool *whole)
{
    *whole = true;
    if (!token)
        return "";
    struct fy_token_iter *iterator = fy_token_iter_create(token);
    check(iterator);
    size_t length = 0;
    const struct fy_iter_chunk *chunk = NULL;
    while ((chunk = fy_token_iter_chunk_next(iterator, chunk, NULL))) {
        if (length + chunk->len >= b->text_capacity) {
            b->text_capacity = 2 * (length + chunk->len) + 256;
            b->text = memory_grow(b->text, b->text_capacity);
        }
        memcpy(b->text + length, chunk->str, chunk->len);
        length += chunk->len;
    }
    fy_token_iter_destroy(iterator);
    *whole = length == 0 || !memchr(b->text, 0, length);
    return length ? arena_copyn(b->arena, b->text, length) : "";
}

/* ---- building -----------------------------------------------------------------------------------
 */

static bool node_count(struct builder *b, size_t offset)
{
    if (*b->nodes_left == 0)
        return fail(b, offset, "more than %d values (aliases expanded)", YAML_NODES_MAX);
    --*b->nodes_left;
    return true;
}

static void anchor_set(struct builder *b, const char *anchor, struct node *node)
{
    if (!anchor)
        return;
    struct node_entry *known = node_get(b->anchors, anchor);
    if (known)
        known->value = node;
    else
        node_add(b->arena, b->anchors,
                 &(struct node_entry){.key = anchor, .source = b->source, .value = node});
}

/* Hangs a finished or just opened node into the open one. */
static void attach(struct builder *b, struct node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    struct frame *top = &b->stack[b->depth - 1];
    struct node_entry entry = {
        .key = top->key, .source = b->source, .offset = (uint32_t)top->key_offset, .value = node};
    if (!top->duplicate)
        node_add(b->arena, top->node, &entry);
    top->key = NULL;
    top->duplicate = false;
}

static bool key_next(const struct builder *b)
{
    return b->depth > 0 && b->stack[b->depth - 1].node->kind == NODE_MAPPING &&
           !b->stack[b->depth - 1].key;
}

static bool key_take(struct builder *b, const char *key, size_t offset)
{
    struct frame *top = &b->stack[b->depth - 1];
    if (strcmp(key, "<<") == 0)
        return fail(b, offset, "merge keys ('<<') are not known here; 'extends:' builds on a file");
    top->key = key;
    top->key_offset = offset;
    const struct node_entry *first = node_get(top->node, key);
    top->duplicate = first;
    if (first) {
        struct source_pos pos;
        source_place(first->source, first->offset, &pos);
        fail(b, offset, "duplicate key '%s', first given in line %u", node_quote(key, b->arena),
             (unsigned)pos.line);
    }
    return true;
}

static bool scalar_take(struct builder *b, const struct fy_event *event)
{
    bool whole, anchor_whole;
    struct fy_token *token = event->scalar.value;
    size_t offset = token_offset(b, token);
    const char *text = token_text(b, token, &whole);
    if (!node_count(b, offset))
        return false;
    if (!whole)
        return fail(b, offset, "a NUL character inside a text");
    if (event->scalar.tag)
        fail(b, offset, "tags such as !text are not known here");
    if (key_next(b)) {
        if (!token)
            return fail(b, offset, "a key is missing before ':'");
        return key_take(b, text, offset);
    }
    struct node *node = node_new(b->arena, NODE_SCALAR, b->source, offset);
    node->text = text;
    node->plain = !token || fy_token_scalar_style(token) == FYSS_PLAIN;
    if (event->scalar.anchor)
        anchor_set(b, token_text(b, event->scalar.anchor, &anchor_whole), node);
    attach(b, node);
    return true;
}

static bool container_open(struct builder *b, enum node_kind kind, struct fy_token *start,
                           struct fy_token *anchor, struct fy_token *tag)
{
    bool whole;
    size_t offset = token_offset(b, start);
    if (!node_count(b, offset))
        return false;
    if (tag)
        fail(b, offset, "tags such as !text are not known here");
    if (key_next(b))
        return fail(b, offset, "a key must be a name, not a mapping or a list");
    if (b->depth == YAML_DEPTH_MAX)
        return fail(b, offset, "nested more than %d deep", YAML_DEPTH_MAX);
    struct node *node = node_new(b->arena, kind, b->source, offset);
    attach(b, node);
    b->stack[b->depth++] =
        (struct frame){.node = node, .anchor = anchor ? token_text(b, anchor, &whole) : NULL};
    return true;
}

static void container_close(struct builder *b)
{
    check(b->depth > 0);
    const struct frame *top = &b->stack[--b->depth];
    anchor_set(b, top->anchor, top->node);
}

/* A copy that may be changed apart from its original. NULL: over a limit (reported). Recursion is
 * bounded by YAML_DEPTH_MAX. */
static struct node *subtree_copy(struct builder *b, const struct node *node, size_t depth,
                                 size_t offset)
{
    if (depth > YAML_DEPTH_MAX) {
        fail(b, offset, "nested more than %d deep", YAML_DEPTH_MAX);
        return NULL;
    }
    if (!node_count(b, offset))
        return NULL;
    struct node *copy = node_new(b->arena, node->kind, node->source, node->offset);
    copy->text = node->text;
    copy->plain = node->plain;
    for (uint32_t i = 0; i < node->count; i++) {
        struct node_entry entry = node->entries[i];
        entry.value = subtree_copy(b, entry.value, depth + 1, offset);
        if (!entry.value)
            return NULL;
        node_add(b->arena, copy, &entry);
    }
    return copy;
}

static bool alias_take(struct builder *b, struct fy_token *token)
{
    bool whole;
    size_t offset = token_offset(b, token);
    if (offset > b->from && b->source->text[offset - 1] == '*')
        offset--; /* its mark is after the asterisk */
    const char *name = token_text(b, token, &whole);
    if (key_next(b))
        return fail(b, offset, "a key must be a name, not an alias");
    const struct node_entry *anchor = node_get(b->anchors, name);
    if (!anchor)
        return fail(b, offset, "no complete value is anchored as '&%s' before this",
                    node_quote(name, b->arena));
    struct node *copy = subtree_copy(b, anchor->value, b->depth, offset);
    if (copy)
        attach(b, copy);
    return copy;
}

static bool event_take(struct builder *b, const struct fy_event *event)
{
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (b->documents++ > 0)
            return fail(b, token_offset(b, event->document_start.document_start),
                        "a second document begins here; one is expected");
        return true;
    case FYET_SCALAR:
        return scalar_take(b, event);
    case FYET_ALIAS:
        return alias_take(b, event->alias.anchor);
    case FYET_MAPPING_START:
        return container_open(b, NODE_MAPPING, event->mapping_start.mapping_start,
                              event->mapping_start.anchor, event->mapping_start.tag);
    case FYET_SEQUENCE_START:
        return container_open(b, NODE_LIST, event->sequence_start.sequence_start,
                              event->sequence_start.anchor, event->sequence_start.tag);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        container_close(b);
        return true;
    default:
        return true;
    }
}

/* ---- libfyaml -----------------------------------------------------------------------------------
 */

/* libfyaml prints unless its diagnostics have a function; the first message is kept for errors that
 * it does not collect (bad directives). */
static void diagnostic_take(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag;
    struct builder *b = user;
    if (b->diagnostic[0] != '\0')
        return;
    const char *colon = memchr(text, ':', length);
    if (text[0] == '[' && colon && colon + 2 < text + length) { /* "[ERR]: …" */
        length -= (size_t)(colon + 2 - text);
        text = colon + 2;
    }
    snprintf(b->diagnostic, sizeof b->diagnostic, "%.*s", (int)length, text);
    b->diagnostic[strcspn(b->diagnostic, "\n")] = '\0';
}

/* The first line with a tab in its indentation, which YAML forbids and libfyaml does not always
 * say; 0: none. */
static size_t tab_line(const struct source *source)
{
    for (size_t i = 0; i < source->line_count; i++) {
        const char *line = source->text + source->line_starts[i];
        line += strspn(line, " ");
        if (*line == '\t' && line[strspn(line, " \t\r")] != '\n')
            return i + 1;
    }
    return 0;
}

static void syntax_fail(struct builder *b, size_t offset, const char *message)
{
    size_t tab = tab_line(b->source);
    if (tab > 0)
        fail(b, offset, "YAML: %s; line %zu is indented with a tab", message, tab);
    else
        fail(b, offset, "YAML: %s", message);
}

static void syntax_error(struct builder *b, struct fy_diag *diag)
{
    void *iterator = NULL;
    struct fy_diag_error *error;
    while ((error = fy_diag_errors_iterate(diag, &iterator))) {
        const struct fy_mark *mark = error->fyt ? fy_token_start_mark(error->fyt) : NULL;
        if (error->type < FYET_ERROR || !error->msg)
            continue;
        syntax_fail(b, mark ? b->from + mark->input_pos : b->last_offset, error->msg);
        return;
    }
    syntax_fail(b, b->last_offset, b->diagnostic[0] ? b->diagnostic : "cannot be read");
}

static bool events_read(struct builder *b)
{
    struct fy_diag_cfg diag_config;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = NULL;
    diag_config.output_fn = diagnostic_take;
    diag_config.user = b;
    diag_config.level = FYET_ERROR;
    diag_config.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_config);
    check(diag);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg config = {.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
                                  .diag = diag};
    struct fy_parser *parser = fy_parser_create(&config);
    check(parser);
    bool ok =
        fy_parser_set_string(parser, b->source->text + b->from, b->source->length - b->from) == 0;
    check(ok);
    bool ended = false;
    struct fy_event *event;
    while (ok && !ended && (event = fy_parser_parse(parser))) {
        ended = event->type == FYET_STREAM_END;
        ok = event_take(b, event);
        fy_parser_event_free(parser, event);
    }
    if (ok && (!ended || fy_parser_get_stream_error(parser))) {
        syntax_error(b, diag);
        ok = false;
    }
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return ok;
}

struct node *yaml_parse(const struct source *source, size_t from, size_t *nodes_left,
                        struct arena *arena, struct errors *errors)
{
    static const char bom[] = "\xef\xbb\xbf";
    check(from <= source->length);
    if (source->length - from >= 3 && memcmp(source->text + from, bom, 3) == 0)
        from += 3;
    struct builder b = {.source = source,
                        .from = from,
                        .last_offset = from,
                        .nodes_left = nodes_left,
                        .arena = arena,
                        .errors = errors};
    b.anchors = node_new(arena, NODE_MAPPING, source, 0);
    bool read = text_check(&b) && events_read(&b);
    free(b.text);
    if (!read)
        return NULL;
    if (!b.root)
        fail(&b, from, "there is nothing in it");
    return b.root;
}
