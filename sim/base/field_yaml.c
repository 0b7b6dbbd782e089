/* field_yaml: the echo of a struct as YAML. Writing YAML needs no library: every scalar is either a
 * plain word of safe characters or double-quoted. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/base/check.h"
#include "sim/base/field.h"

struct yaml_writer {
    FILE *out;
    struct arena *arena; /* borrowed; for scalar texts */
    int dashes;          /* "- " owed at the next line: list items just opened */
    bool after_key;      /* the line in hand ends in "key:" */
};

static void mapping_write(struct yaml_writer *w, const struct field *fields, const void *base,
                          int indent);
static void value_write(struct yaml_writer *w, const struct field *field, const void *target,
                        int indent);

/* Starts a line at this indentation; dashes of the list items it opens count as part of it. */
static void line_start(struct yaml_writer *w, int indent)
{
    fprintf(w->out, "%*s", indent - 2 * w->dashes, "");
    for (; w->dashes > 0; w->dashes--)
        fputs("- ", w->out);
}

/* Texts that other YAML readers would take for something else than a text are quoted too. */
static bool text_plain(const char *text)
{
    static const char *const reserved[] = {"true", "false", "yes", "no", "on",
                                           "off",  "null",  "y",   "n",  NULL};
    if (!isalpha((unsigned char)text[0]) && text[0] != '/' && text[0] != '_')
        return false;
    for (size_t i = 0; reserved[i]; i++)
        if (strcasecmp(reserved[i], text) == 0)
            return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-./+", *c))
            return false;
    return true;
}

size_t field_yaml_escape(const char **at, char escaped[FIELD_ESCAPE_MAX])
{
    const unsigned char *c = (const unsigned char *)*at;
    size_t taken = 1;
    if (*c == '"' || *c == '\\') {
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\%c", *c);
    } else if (*c == '\n' || *c == '\t') {
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\%c", *c == '\n' ? 'n' : 't');
    } else if (*c < 0x20 || *c == 0x7f) {
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\x%02x", *c);
    } else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) { /* C1 controls: not printable */
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\x%02x", c[1]);
        taken = 2;
    } else if (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9)) {
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\u20%02x", c[2] - 0x80); /* line separators */
        taken = 3;
    } else if (c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf) {
        snprintf(escaped, FIELD_ESCAPE_MAX, "\\ufeff"); /* a byte order mark */
        taken = 3;
    } else {
        snprintf(escaped, FIELD_ESCAPE_MAX, "%c", *c);
    }
    *at += taken;
    return strlen(escaped);
}

static void text_quote(FILE *out, const char *text)
{
    char escaped[FIELD_ESCAPE_MAX];
    fputc('"', out);
    while (*text) {
        field_yaml_escape(&text, escaped);
        fputs(escaped, out);
    }
    fputc('"', out);
}

static void scalar_write(struct yaml_writer *w, const struct field *field, const void *target)
{
    const char *text = field_is_scalar(field) ? field_text(field, target, w->arena) : NULL;
    if (!text) /* an unset item of a list: nothing else can hold its place */
        fputs("null", w->out);
    else if ((field->kind == FIELD_TEXT || field->kind == FIELD_PATH) && !text_plain(text))
        text_quote(w->out, text);
    else
        fputs(text, w->out);
}

static bool value_unset(const struct yaml_writer *w, const struct field *field, const void *target)
{
    if (field->kind == FIELD_VARIANT)
        return !((const struct variant_value *)target)->type;
    if (field->kind == FIELD_LIST)
        return (field->flags & FIELD_OPTIONAL) && !((const struct field_list *)target)->items;
    return field_is_scalar(field) && !field_text(field, target, w->arena);
}

static bool fields_unset(const struct yaml_writer *w, const struct field *fields, const void *base)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        const void *target = (const char *)base + field->offset;
        if (field->kind == FIELD_INLINE ? !fields_unset(w, field->fields, target)
                                        : !value_unset(w, field, target))
            return false;
    }
    return true;
}

/* What fits on one line: after its key, or on a line of its own as a list's item. */
static void inline_start(struct yaml_writer *w, int indent)
{
    if (w->after_key)
        fputc(' ', w->out);
    else
        line_start(w, indent);
    w->after_key = false;
}

static void block_start(struct yaml_writer *w)
{
    if (w->after_key)
        fputc('\n', w->out);
    w->after_key = false;
}

static void list_write(struct yaml_writer *w, const struct field *field, const void *target,
                       int indent)
{
    const struct field_list *list = target;
    bool flow = field_is_scalar(field->item) || list->count == 0;
    if (flow) {
        inline_start(w, indent);
        fputc('[', w->out);
    } else {
        block_start(w);
    }
    for (size_t i = 0; i < list->count; i++) {
        const void *item = (const char *)list->items + i * field->item_size;
        if (flow) {
            fputs(i ? ", " : "", w->out);
            scalar_write(w, field->item, item);
        } else {
            w->dashes++;
            value_write(w, field->item, item, indent + 2);
        }
    }
    if (flow)
        fputs("]\n", w->out);
}

static void variant_write(struct yaml_writer *w, const struct field *field, const void *target,
                          int indent)
{
    const struct variant_value *value = target;
    block_start(w);
    line_start(w, indent);
    fprintf(w->out, "%s: %s\n", field->tag, value->type->name);
    if (value->type->fields)
        mapping_write(w, value->type->fields, value->config, indent);
}

static void value_write(struct yaml_writer *w, const struct field *field, const void *target,
                        int indent)
{
    if (field->kind == FIELD_LIST) {
        list_write(w, field, target, indent);
    } else if (field->kind == FIELD_VARIANT && ((const struct variant_value *)target)->type) {
        variant_write(w, field, target, indent);
    } else if (field->kind == FIELD_STRUCT && !fields_unset(w, field->fields, target)) {
        block_start(w);
        mapping_write(w, field->fields, target, indent);
    } else {
        inline_start(w, indent);
        if (field->kind == FIELD_STRUCT)
            fputs("{}", w->out);
        else
            scalar_write(w, field, target);
        fputc('\n', w->out);
    }
}

static void mapping_write(struct yaml_writer *w, const struct field *fields, const void *base,
                          int indent)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        const void *target = (const char *)base + field->offset;
        if (field->kind == FIELD_INLINE) {
            mapping_write(w, field->fields, target, indent);
        } else if (!value_unset(w, field, target)) {
            line_start(w, indent);
            fprintf(w->out, "%s:", field->name);
            w->after_key = true;
            value_write(w, field, target, indent + 2);
        }
    }
}

char *field_yaml(const struct field *fields, const void *base, struct arena *arena)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    check(out);
    struct yaml_writer w = {.out = out, .arena = arena};
    if (fields_unset(&w, fields, base))
        fputs("{}\n", out);
    else
        mapping_write(&w, fields, base, 0);
    check(fclose(out) == 0);
    char *copy = arena_copyn(arena, text, length);
    free(text);
    return copy;
}
