/* A text that scenarios are read from, and the places in it. */
#ifndef FLEETSIM_SIM_SCENARIO_SOURCE_H
#define FLEETSIM_SIM_SCENARIO_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"

/* One text that nodes come from: a file, or one --set. */
struct source {
    const char *name;      /* as shown in messages */
    const char *folder;    /* what its relative paths start from; "" is the working directory */
    const char *text;      /* NUL-terminated */
    size_t length;         /* ≤ SOURCE_LENGTH_MAX */
    uint32_t *line_starts; /* offset of each line's first byte; made by source_init */
    size_t line_count;
};

enum { SOURCE_LENGTH_MAX = 16 << 20 };

/* Indexes the lines. All pointers are borrowed. */
void source_init(struct source *source, const char *name, const char *folder, const char *text,
                 size_t length, struct arena *arena);
/* The line and column of a byte. */
void source_place(const struct source *source, size_t offset, struct source_pos *pos);

/* Reports at a place of a source. */
void source_error(struct errors *errors, enum severity severity, const struct source *source,
                  size_t offset, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
