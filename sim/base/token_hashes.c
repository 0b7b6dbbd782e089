#include "sim/base/token_hashes.h"

#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

enum { SIZE_CLASSES = 33 };

/* A block given back: its first bytes link it to the others of its size class. */
struct spare {
    struct spare *next;
};

struct token_hash_pool {
    struct spare *spares[SIZE_CLASSES]; /* owned; class c has room for 2^c ids */
    uint64_t in_use;
};

_Static_assert(sizeof(struct spare) <= sizeof(struct token_hashes), "a spare fits in its block");

struct token_hash_pool *token_hashes_pool_create(void)
{
    return memory_zero(1, sizeof(struct token_hash_pool));
}

void token_hashes_pool_free(struct token_hash_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    check(pool->in_use == 0);
    for (int class = 0; class < SIZE_CLASSES; class ++) {
        while (pool->spares[class] != NULL) {
            struct spare *spare = pool->spares[class];
            pool->spares[class] = spare->next;
            free(spare);
        }
    }
    free(pool);
}

static int size_class(uint32_t count)
{
    return count <= 1 ? 0 : 32 - __builtin_clz(count - 1);
}

struct token_hashes *token_hashes_acquire(struct token_hash_pool *pool, uint32_t count,
                                          uint32_t block_tokens)
{
    check(block_tokens >= 1);
    int class = size_class(count);
    struct token_hashes *hashes;
    if (pool->spares[class] != NULL) {
        struct spare *spare = pool->spares[class];
        pool->spares[class] = spare->next;
        hashes = (struct token_hashes *)(void *)spare;
    } else {
        hashes = memory_alloc(sizeof *hashes + (sizeof hashes->ids[0] << class));
    }
    pool->in_use++;
    hashes->pool = pool;
    hashes->count = count;
    hashes->block_tokens = block_tokens;
    return hashes;
}

void token_hashes_release(struct token_hashes *hashes)
{
    if (hashes == NULL) {
        return;
    }
    struct token_hash_pool *pool = hashes->pool;
    int class = size_class(hashes->count);
    struct spare *spare = (struct spare *)(void *)hashes;
    spare->next = pool->spares[class];
    pool->spares[class] = spare;
    pool->in_use--;
}
