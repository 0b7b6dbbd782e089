#include "sim/cli/options.h"

#include <string.h>

#include "sim/base/errors.h"

struct parser {
    const struct options_spec *specs;
    const char *who;
    int argc;
    char *const *argv;
    int at; /* index of the argument in hand */
    char *values;
    struct options_list *operands;
    struct arena *arena;
    FILE *err;
    bool help, wrong;
};

#define REPORT(p, ...)                                                                             \
    do {                                                                                           \
        fprintf((p)->err, "%s: ", (p)->who);                                                       \
        fprintf((p)->err, __VA_ARGS__);                                                            \
        fputc('\n', (p)->err);                                                                     \
        (p)->wrong = true;                                                                         \
    } while (0)

static void list_add(struct parser *p, struct options_list *list, const char *text)
{
    /* Never more items than arguments. */
    if (!list->items)
        list->items = arena_alloc(p->arena, ((size_t)p->argc + 1) * sizeof *list->items);
    list->items[list->count++] = text;
}

static void unknown_report(struct parser *p, const char *name, size_t length)
{
    const char *names[64] = {"help"};
    size_t count = 1;
    for (const struct options_spec *s = p->specs; s->kind != OPTIONS_END && count < 63; s++)
        names[count++] = s->name;
    const char *given = arena_copyn(p->arena, name, length);
    const char *near = errors_nearest(given, names);
    if (near)
        REPORT(p, "unknown option '--%s', did you mean '--%s'?", given, near);
    else
        REPORT(p, "unknown option '--%s'", given);
}

/* value: what follows `=` or the letter; NULL: none. */
static void option_take(struct parser *p, const struct options_spec *spec, const char *value)
{
    void *target = p->values + spec->offset;
    if (spec->kind == OPTIONS_FLAG) {
        if (value)
            REPORT(p, "option '--%s' takes no value", spec->name);
        *(bool *)target = true;
        return;
    }
    if (!value) {
        if (p->at + 1 >= p->argc) {
            REPORT(p, "option '--%s' needs a value: %s", spec->name, spec->value);
            return;
        }
        value = p->argv[++p->at];
    }
    if (spec->kind == OPTIONS_LIST) {
        list_add(p, target, value);
        return;
    }
    const char **text = target;
    if (*text)
        REPORT(p, "option '--%s' is given twice: '%s' and '%s'", spec->name, *text, value);
    *text = value;
}

static void long_option_take(struct parser *p, const char *text)
{
    size_t length = strcspn(text, "=");
    const char *value = text[length] ? text + length + 1 : NULL;
    if (strcmp(text, "help") == 0) {
        p->help = true;
        return;
    }
    for (const struct options_spec *s = p->specs; s->kind != OPTIONS_END; s++) {
        if (strlen(s->name) == length && strncmp(s->name, text, length) == 0) {
            option_take(p, s, value);
            return;
        }
    }
    unknown_report(p, text, length);
}

/* "-o FILE" or "-oFILE". */
static void letter_take(struct parser *p, const char *text)
{
    if (strcmp(text, "h") == 0) {
        p->help = true;
        return;
    }
    for (const struct options_spec *s = p->specs; s->kind != OPTIONS_END; s++) {
        if (s->letter == text[0]) {
            option_take(p, s, text[1] ? text + 1 : NULL);
            return;
        }
    }
    REPORT(p, "unknown option '-%s'", text);
}

enum options_result options_parse(const struct options_spec *specs, const char *who, int argc,
                                  char *const *argv, void *values, struct options_list *operands,
                                  struct arena *arena, FILE *err)
{
    struct parser p = {.specs = specs,
                       .who = who,
                       .argc = argc,
                       .argv = argv,
                       .values = values,
                       .operands = operands,
                       .arena = arena,
                       .err = err};
    bool ended = false;
    for (p.at = 0; p.at < argc; p.at++) {
        const char *text = argv[p.at];
        if (!ended && strcmp(text, "--") == 0)
            ended = true;
        else if (!ended && strncmp(text, "--", 2) == 0)
            long_option_take(&p, text + 2);
        else if (!ended && text[0] == '-' && text[1] != '\0')
            letter_take(&p, text + 1);
        else
            list_add(&p, operands, text);
    }
    if (p.help)
        return OPTIONS_HELP;
    return p.wrong ? OPTIONS_WRONG : OPTIONS_OK;
}

void options_help(const struct options_spec *specs, FILE *out)
{
    for (const struct options_spec *s = specs; s->kind != OPTIONS_END; s++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", s->name, s->value ? " " : "",
                 s->value ? s->value : "");
        if (s->letter)
            fprintf(out, "  -%c, ", s->letter);
        else
            fputs("      ", out);
        fprintf(out, "%-24s %s%s\n", left, s->doc, s->kind == OPTIONS_LIST ? "; repeatable" : "");
    }
    fprintf(out, "  -h, %-24s %s\n", "--help", "this text");
}
