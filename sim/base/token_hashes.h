/* What a trace says of its prompts' contents: 64-bit names of blocks of tokens, so that two prompts
 * with equal names from the first on are equal token for token that far. Taken from a pool that
 * keeps what is given back, so that reading a trace does not allocate for every row. */
#ifndef FLEETSIM_SIM_BASE_TOKEN_HASHES_H
#define FLEETSIM_SIM_BASE_TOKEN_HASHES_H

#include <stdint.h>

struct token_hash_pool;

/* ids[i] names the tokens [i, i + 1) × block_tokens of a prompt and its answer, together with all
 * before them. All of the blocks are full. */
struct token_hashes {
    struct token_hash_pool *pool; /* borrowed: where they go back to */
    uint32_t count;
    uint32_t block_tokens; /* ≥ 1 */
    uint64_t ids[];
};

struct token_hash_pool *token_hashes_pool_create(void);
/* Frees what was given back; nothing of the pool may be in use any more. NULL is fine. */
void token_hashes_pool_free(struct token_hash_pool *pool);
/* Room for count ids, to be filled by the caller; until token_hashes_release. */
struct token_hashes *token_hashes_acquire(struct token_hash_pool *pool, uint32_t count,
                                          uint32_t block_tokens);
/* NULL is fine. */
void token_hashes_release(struct token_hashes *hashes);

#endif
