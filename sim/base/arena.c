#include "sim/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"

enum { ARENA_BLOCK_BYTES = 1 << 14 };

struct arena_block {
    struct arena_block *next; /* owned */
    size_t used, size;        /* of data */
    _Alignas(max_align_t) unsigned char data[];
};

static _Noreturn void memory_exhausted(size_t size)
{
    fprintf(stderr, "fleetsim: out of memory (%zu bytes asked for)\n", size);
    exit(1);
}

void *memory_alloc(size_t size)
{
    void *p = malloc(size > 0 ? size : 1);
    if (p == NULL) {
        memory_exhausted(size);
    }
    return p;
}

void *memory_zero(size_t count, size_t size)
{
    void *p = count > 0 && size > 0 ? calloc(count, size) : calloc(1, 1);
    if (p == NULL) {
        memory_exhausted(count > 0 && size > SIZE_MAX / count ? SIZE_MAX : count * size);
    }
    return p;
}

void *memory_grow(void *old, size_t size)
{
    void *p = realloc(old, size > 0 ? size : 1);
    if (p == NULL) {
        memory_exhausted(size);
    }
    return p;
}

void arena_init(struct arena *arena)
{
    arena->blocks = NULL;
}

void arena_free(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    while (block != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    enum { ALIGN = _Alignof(max_align_t) };
    if (size > SIZE_MAX / 2) {
        memory_exhausted(size);
    }
    size_t need = size > 0 ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < need) {
        size_t room = need > ARENA_BLOCK_BYTES ? need : ARENA_BLOCK_BYTES;
        block = memory_zero(1, sizeof(*block) + room);
        block->size = room;
        if (need > ARENA_BLOCK_BYTES / 4 && arena->blocks != NULL) {
            /* A large piece gets a block of its own behind the first, whose rest stays in use. */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
        } else {
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    void *p = block->data + block->used;
    block->used += need;
    debug_check(block->used <= block->size);
    return p;
}

char *arena_copyn(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_copy(struct arena *arena, const char *text)
{
    return arena_copyn(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    check(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}
