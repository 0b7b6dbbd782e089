#include "sim/cli/variant.h"

#include <string.h>

/* The end of the KEY=VALUE that begins at text: the first comma outside brackets and quotes. */
static const char *piece_end(const char *text, bool *balanced)
{
    int depth = 0;
    char quote = '\0';
    const char *c = text;
    for (; *c != '\0' && !(*c == ',' && depth == 0 && quote == '\0'); c++) {
        if (quote != '\0') {
            if (*c == '\\' && quote == '"' && c[1] != '\0')
                c++;
            else if (*c == quote)
                quote = '\0';
        } else if (*c == '"' || *c == '\'') {
            quote = *c;
        } else if (*c == '[' || *c == '{') {
            depth++;
        } else if (*c == ']' || *c == '}') {
            depth--;
        }
    }
    *balanced = depth == 0 && quote == '\0';
    return c;
}

bool variant_parse(const char *text, const char *who, struct variant_spec *variant,
                   struct arena *arena, FILE *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    if (length == 0 || memchr(text, '=', length)) {
        fprintf(err, "%s: variant '%s' has no name: NAME:KEY=VALUE[,KEY=VALUE]…\n", who, text);
        return false;
    }
    variant->name = arena_copyn(arena, text, length);
    variant->sets.items = arena_alloc(arena, (strlen(text) + 1) * sizeof *variant->sets.items);
    variant->sets.count = 0;
    for (const char *piece = colon + 1; *piece != '\0';) {
        bool balanced;
        const char *end = piece_end(piece, &balanced);
        size_t size = (size_t)(end - piece);
        if (!balanced) {
            fprintf(err, "%s: variant '%s': brackets or quotes do not close in '%s'\n", who,
                    variant->name, piece);
            return false;
        }
        if (!memchr(piece, '=', size) || piece[0] == '=') {
            fprintf(err, "%s: variant '%s': '%.*s' is not KEY=VALUE\n", who, variant->name,
                    (int)size, piece);
            return false;
        }
        variant->sets.items[variant->sets.count++] = arena_copyn(arena, piece, size);
        piece = *end == ',' ? end + 1 : end;
    }
    return true;
}
