/* Memory that lives as long as its owner: scenario texts, config structs, lists. Freed all at once.
 * Not for the event loop. Allocation failure ends the program with a message (exit 1): nothing a
 * caller could do would be better. */
#ifndef FLEETSIM_SIM_BASE_ARENA_H
#define FLEETSIM_SIM_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *blocks; /* owned */
};

void arena_init(struct arena *arena);
void arena_free(struct arena *arena);
/* Zeroed, aligned for any type; size 0 gives a valid unique pointer. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy of text (length bytes of it for _copyn), NUL-terminated. */
char *arena_copy(struct arena *arena, const char *text);
char *arena_copyn(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* malloc, calloc and realloc that end the program with a message instead of returning NULL. */
void *memory_alloc(size_t size);
void *memory_zero(size_t count, size_t size);
void *memory_grow(void *old, size_t size);

#endif
