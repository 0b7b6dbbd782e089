#include "sim/base/errors.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"

enum {
    SHOWN_WIDTH_MAX =
        120,       /* bytes of a source line printed; longer ones are cut around the caret */
    WORD_MAX = 64, /* longer words are never taken for a slip */
};

void errors_init(struct errors *errors)
{
    *errors = (struct errors){0};
    arena_init(&errors->arena);
}

void errors_free(struct errors *errors)
{
    free(errors->items);
    arena_free(&errors->arena);
    *errors = (struct errors){0};
}

/* Makes room for one more error by dropping the last kept warning: a flood of warnings must not
 * hide what stops the run. */
static bool errors_drop_warning(struct errors *errors)
{
    for (size_t i = errors->count; i-- > 0;) {
        if (errors->items[i].severity == SEVERITY_WARNING) {
            memmove(&errors->items[i], &errors->items[i + 1],
                    (errors->count - i - 1) * sizeof(*errors->items));
            errors->count--;
            return true;
        }
    }
    return false;
}

static struct source_pos errors_copy_pos(struct arena *arena, const struct source_pos *pos)
{
    struct source_pos copy = {0};
    if (pos == NULL) {
        return copy;
    }
    copy.line = pos->line;
    copy.column = pos->column;
    if (pos->file != NULL) {
        copy.file = arena_copy(arena, pos->file);
    }
    if (pos->text != NULL) {
        copy.text = arena_copyn(arena, pos->text, strcspn(pos->text, "\r\n"));
    }
    return copy;
}

void errors_add(struct errors *errors, enum severity severity, const struct source_pos *pos,
                const char *fmt, ...)
{
    if (severity == SEVERITY_ERROR) {
        errors->error_count++;
    } else {
        errors->warning_count++;
    }
    if (errors->count == ERRORS_KEPT_MAX &&
        (severity == SEVERITY_WARNING || !errors_drop_warning(errors))) {
        return;
    }
    if (errors->items == NULL) {
        errors->items = memory_zero(ERRORS_KEPT_MAX, sizeof(*errors->items));
    }
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    check(length >= 0);
    char *message = arena_alloc(&errors->arena, (size_t)length + 1);
    vsnprintf(message, (size_t)length + 1, fmt, again);
    va_end(again);
    errors->items[errors->count++] = (struct error){
        .severity = severity,
        .pos = errors_copy_pos(&errors->arena, pos),
        .message = message,
    };
}

static int pos_compare(const struct source_pos *a, const struct source_pos *b)
{
    int order = strcmp(a->file != NULL ? a->file : "", b->file != NULL ? b->file : "");
    if (order != 0) {
        return order;
    }
    if (a->line != b->line) {
        return a->line < b->line ? -1 : 1;
    }
    return (a->column > b->column) - (a->column < b->column);
}

void errors_sort(struct errors *errors)
{
    /* By insertion: stable, and there are at most ERRORS_KEPT_MAX. */
    for (size_t i = 1; i < errors->count; i++) {
        struct error item = errors->items[i];
        size_t j = i;
        for (; j > 0 && pos_compare(&item.pos, &errors->items[j - 1].pos) < 0; j--) {
            errors->items[j] = errors->items[j - 1];
        }
        errors->items[j] = item;
    }
}

static bool byte_continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80; /* inside a UTF-8 sequence */
}

/* The source line and a caret below the column. The caret's indent counts characters, repeats tabs,
 * and control characters are shown as '?': they would move the terminal's cursor. */
static void print_source(const struct source_pos *pos, FILE *out)
{
    size_t length = strlen(pos->text), from = 0, to = length;
    size_t caret = pos->column > 0 ? pos->column - 1 : 0;
    if (caret > length) {
        caret = length; /* what is missing is missing at the end */
    }
    if (length > SHOWN_WIDTH_MAX) {
        from = caret > SHOWN_WIDTH_MAX / 2 ? caret - SHOWN_WIDTH_MAX / 2 : 0;
        to = length - from > SHOWN_WIDTH_MAX ? from + SHOWN_WIDTH_MAX : length;
        while (from > 0 && byte_continues(pos->text[from])) {
            from--;
        }
        while (to < length && byte_continues(pos->text[to])) {
            to++;
        }
    }
    fprintf(out, "%5u | %s", (unsigned)pos->line, from > 0 ? "…" : "");
    for (size_t i = from; i < to; i++) {
        unsigned char c = (unsigned char)pos->text[i];
        fputc(c == '\t' || (c >= 0x20 && c != 0x7F) ? c : '?', out);
    }
    fprintf(out, "%s\n", to < length ? "…" : "");
    if (pos->column == 0) {
        return;
    }
    fprintf(out, "      | %s", from > 0 ? " " : "");
    for (size_t i = from; i < caret; i++) {
        if (!byte_continues(pos->text[i])) {
            fputc(pos->text[i] == '\t' ? '\t' : ' ', out);
        }
    }
    fputs("^\n", out);
}

static void print_error(const struct error *error, FILE *out)
{
    const struct source_pos *pos = &error->pos;
    if (pos->file != NULL) {
        fputs(pos->file, out);
        if (pos->line > 0) {
            fprintf(out, ":%u", (unsigned)pos->line);
            if (pos->column > 0) {
                fprintf(out, ":%u", (unsigned)pos->column);
            }
        }
        fputs(": ", out);
    }
    fprintf(out, "%s: %s\n", error->severity == SEVERITY_ERROR ? "error" : "warning",
            error->message);
    if (pos->text != NULL && pos->line > 0) {
        print_source(pos, out);
    }
}

void errors_print(const struct errors *errors, FILE *out)
{
    for (size_t i = 0; i < errors->count; i++) {
        print_error(&errors->items[i], out);
    }
    size_t all = errors->error_count + errors->warning_count;
    if (all > errors->count) {
        fprintf(out, "… and %zu more (%zu errors and %zu warnings in all)\n", all - errors->count,
                errors->error_count, errors->warning_count);
    }
}

/* What a slip does not change: case, and '-' for '_'. */
static char letter_fold(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edit distance with transpositions of neighbours (optimal string alignment); a, b ≤ WORD_MAX. */
static size_t word_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = letter_fold(a[i - 1]), y = letter_fold(b[j - 1]);
            row[j] = min3(row[j - 1] + 1, last[j] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == letter_fold(b[j - 2]) && letter_fold(a[i - 2]) == y &&
                before[j - 2] + 1 < row[j]) {
                row[j] = before[j - 2] + 1;
            }
        }
    }
    return rows[a_length % 3][b_length];
}

const char *errors_nearest(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX) {
        return NULL;
    }
    size_t limit = length / 3 > 1 ? length / 3 : 1;
    const char *best = NULL;
    for (; *names != NULL; names++) {
        size_t name_length = strlen(*names);
        if (name_length > WORD_MAX || name_length > length + limit ||
            length > name_length + limit) {
            continue;
        }
        size_t distance = word_distance(word, length, *names, name_length);
        /* Fewer edits than letters: "a" is no slip of "b". */
        if (distance <= limit && distance < length) {
            best = *names;
            if (distance == 0) {
                break;
            }
            limit = distance - 1; /* only a nearer one replaces it: the first listed wins ties */
        }
    }
    return best;
}
