#include "sim/engine/prefix_chain.h"

#include <stddef.h>

#include "sim/base/check.h"

/* Turns a word's bits so that every bit of it matters to every bit of the result (the finalizer of
 * SplitMix64: a bijection). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* A stream's name behind a shared prompt: where the shared tokens end matters too, for they may end
 * inside the stream's first block. */
static uint64_t stream_id(const struct request *request)
{
    if (request->shared_tokens == 0) {
        return request->stream;
    }
    uint64_t shared = (uint64_t)request->shared_prompt << 32 | request->shared_tokens;
    return mix(request->stream + mix(shared));
}

struct prefix_part prefix_chain_part(const struct request *request, uint32_t block_size,
                                     uint32_t block)
{
    uint32_t shared = request->shared_tokens == 0 ? 0 : request->shared_tokens / block_size;
    if (block < shared) {
        return (struct prefix_part){
            .id = request->shared_prompt, .end = shared, .kind = PREFIX_CHAIN_SHARED};
    }
    const struct token_hashes *hashes = request->hashes;
    if (hashes != NULL) {
        uint32_t each = hashes->block_tokens / block_size;
        check(request->shared_tokens == 0 && each * block_size == hashes->block_tokens);
        uint32_t which = block / each;
        if (which < hashes->count) {
            return (struct prefix_part){.id = hashes->ids[which],
                                        .first = which * each,
                                        .end = (which + 1) * each,
                                        .kind = PREFIX_CHAIN_HASH};
        }
        return (struct prefix_part){.id = request->id,
                                    .first = hashes->count * each,
                                    .end = PREFIX_CHAIN_UNBOUNDED,
                                    .kind = PREFIX_CHAIN_OWN};
    }
    bool streams = request->stream != 0;
    return (struct prefix_part){.id = streams ? stream_id(request) : request->id,
                                .first = shared,
                                .end = PREFIX_CHAIN_UNBOUNDED,
                                .kind = streams ? PREFIX_CHAIN_STREAM : PREFIX_CHAIN_OWN};
}

uint64_t prefix_chain_key(uint64_t before, const struct prefix_part *part)
{
    uint64_t place = (uint64_t)part->kind << 32 | part->first;
    return mix(mix(before + UINT64_C(0x9E3779B97F4A7C15) * (place + 1)) + part->id);
}

uint32_t prefix_chain_common(const struct request *request, uint32_t block_size)
{
    if (request->hashes != NULL) {
        return request->hashes->count * (request->hashes->block_tokens / block_size);
    }
    return request->stream != 0 ? (uint32_t)PREFIX_CHAIN_UNBOUNDED
                                : request->shared_tokens / block_size;
}

bool prefix_chain_next(struct prefix_chain *chain, uint32_t limit, struct prefix_part *part,
                       uint32_t *blocks)
{
    if (chain->block >= limit) {
        return false;
    }
    *part = prefix_chain_part(chain->request, chain->block_size, chain->block);
    chain->key = prefix_chain_key(chain->key, part);
    *blocks = (part->end < limit ? part->end : limit) - part->first;
    chain->block = part->end;
    return true;
}
