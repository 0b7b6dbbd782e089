#include "sim/scenario/source.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/base/check.h"

void source_init(struct source *source, const char *name, const char *folder, const char *text,
                 size_t length, struct arena *arena)
{
    check(length <= SOURCE_LENGTH_MAX);
    *source = (struct source){.name = name, .folder = folder, .text = text, .length = length};
    size_t lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    source->line_starts = arena_alloc(arena, lines * sizeof *source->line_starts);
    source->line_starts[0] = 0;
    source->line_count = 1;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n')
            source->line_starts[source->line_count++] = (uint32_t)(i + 1);
}

void source_place(const struct source *source, size_t offset, struct source_pos *pos)
{
    if (offset > source->length)
        offset = source->length;
    size_t low = 0, high = source->line_count; /* line_starts[low] ≤ offset < line_starts[high] */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (source->line_starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    size_t start = source->line_starts[low];
    *pos = (struct source_pos){.file = source->name,
                               .line = (uint32_t)(low + 1),
                               .column = (uint32_t)(offset - start + 1),
                               .text = source->text + start};
}

void source_error(struct errors *errors, enum severity severity, const struct source *source,
                  size_t offset, const char *fmt, ...)
{
    char message[1024];
    struct source_pos pos;
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    source_place(source, offset, &pos);
    errors_add(errors, severity, &pos, "%s", message);
}
