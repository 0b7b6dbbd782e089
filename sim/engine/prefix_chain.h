/* What a request's tokens are, as a prefix cache sees them: its full KV blocks in order, gathered
 * into *parts* whose content has one name. Block j holds the tokens [j, j + 1) × block_size of the
 * prompt and, behind it, of the outputs.
 *
 *   shared   the blocks wholly inside the first shared_tokens: those of the shared prompt
 *   hash     the blocks that one of the request's hashes names; a part per hash
 *   stream   all others of a request with a stream: a conversation that goes on for ever
 *   own      all others: like nobody else's (the request itself may find them after a preemption)
 *
 * A block's content is its part's name, its place in it, and all parts before it: equal chains of
 * parts are equal tokens from the first on. */
#ifndef FLEETSIM_SIM_ENGINE_PREFIX_CHAIN_H
#define FLEETSIM_SIM_ENGINE_PREFIX_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/request.h"

enum prefix_chain_kind {
    PREFIX_CHAIN_SHARED,
    PREFIX_CHAIN_HASH,
    PREFIX_CHAIN_STREAM,
    PREFIX_CHAIN_OWN,
};

enum { PREFIX_CHAIN_UNBOUNDED = UINT32_MAX };

struct prefix_part {
    uint64_t id;    /* with kind: its name behind its predecessors */
    uint32_t first; /* its first block's number in the chain */
    uint32_t end;   /* the number behind its last block; PREFIX_CHAIN_UNBOUNDED */
    enum prefix_chain_kind kind;
};

/* The part that holds block `block` of a request. The hashes' block_tokens must be a multiple of
 * block_size (checked). */
struct prefix_part prefix_chain_part(const struct request *request, uint32_t block_size,
                                     uint32_t block);
/* The path key of a part: 64 bits that name it together with all before it, given the key of the
 * part before it (0 for the first). Two of n different paths have equal keys with a chance of
 * n² / 2^65: 3e-7 for three million paths. */
uint64_t prefix_chain_key(uint64_t before, const struct prefix_part *part);
/* How many leading blocks other requests can have in common with it: those before its own part;
 * PREFIX_CHAIN_UNBOUNDED with a stream. */
uint32_t prefix_chain_common(const struct request *request, uint32_t block_size);

/* Walks a chain part by part:
 *
 *     struct prefix_chain chain;
 *     prefix_chain_begin(&chain, request, block_size);
 *     while (prefix_chain_next(&chain, limit, &part, &blocks)) { … chain.key … }
 */
struct prefix_chain {
    const struct request *request; /* borrowed */
    uint32_t block_size;
    uint32_t block; /* the next part's first */
    uint64_t key;   /* path key of the part given last */
};

static inline void prefix_chain_begin(struct prefix_chain *chain, const struct request *request,
                                      uint32_t block_size)
{
    *chain = (struct prefix_chain){.request = request, .block_size = block_size};
}
/* The next part that begins before block `limit`; *blocks: how many of its blocks lie before it. */
bool prefix_chain_next(struct prefix_chain *chain, uint32_t limit, struct prefix_part *part,
                       uint32_t *blocks);

#endif
