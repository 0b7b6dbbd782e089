/* The KV blocks of one replica, as counters: how many are used, and at which iteration each
 * decoding sequence will need its next one. Which block is whose does not matter here, so this is
 * exact and costs nothing per block; what blocks hold is the prefix cache's (prefix_cache.h).
 *
 * A decode that has s tokens stored when an iteration starts stores one more and needs a new block
 * iff s is a multiple of the block size. Every decode stores one token per iteration, so it needs a
 * block every block_size iterations, always at the same residue of the iteration count: sixteen
 * counts (for blocks of 16) say how many decodes need a block at each coming start. */
#ifndef FLEETSIM_SIM_ENGINE_KV_H
#define FLEETSIM_SIM_ENGINE_KV_H

#include <stdint.h>

struct kv {
    int64_t total;       /* blocks; INT64_MAX: unlimited */
    int64_t used;        /* of running sequences, iteration in flight included */
    int64_t peak;        /* most ever used */
    uint32_t block_size; /* tokens */
    int32_t block_shift; /* log2 of it, -1 when it is no power of two: divisions are slow */
    uint32_t clock;      /* iterations started so far, modulo block_size */
    uint32_t decodes;    /* sequences in due */
    uint32_t *due; /* owned; [block_size]: decodes that need a block at the start with that clock */
};

void kv_init(struct kv *kv, int64_t total, uint32_t block_size);
void kv_free(struct kv *kv);

static inline int64_t kv_blocks(const struct kv *kv, int64_t tokens)
{
    int64_t up = tokens + kv->block_size - 1;
    return kv->block_shift >= 0 ? up >> kv->block_shift : up / kv->block_size;
}
/* n modulo the block size. */
static inline uint32_t kv_offset(const struct kv *kv, uint32_t n)
{
    return kv->block_shift >= 0 ? n & (kv->block_size - 1) : n % kv->block_size;
}
static inline int64_t kv_available(const struct kv *kv)
{
    return kv->total - kv->used;
}
static inline void kv_take(struct kv *kv, int64_t blocks)
{
    kv->used += blocks;
}
/* Notes the use at an instant: called when a batch is formed or settled, not in the middle of it.
 */
static inline void kv_mark(struct kv *kv)
{
    if (kv->used > kv->peak) {
        kv->peak = kv->used;
    }
}
static inline void kv_give(struct kv *kv, int64_t blocks)
{
    kv->used -= blocks;
}

/* The clock of the start at which a decode with `stored` tokens (as of the next start) needs a
 * block. */
static inline uint32_t kv_due_clock(const struct kv *kv, uint32_t stored)
{
    uint32_t ahead =
        kv_offset(kv, stored); /* it needs one when this reaches block_size, or now at 0 */
    uint32_t clock = kv->clock + (ahead == 0 ? 0 : kv->block_size - ahead);
    return clock >= kv->block_size ? clock - kv->block_size : clock;
}
/* Adds or removes a decode that has `stored` tokens at the next iteration start. */
static inline void kv_join(struct kv *kv, uint32_t stored)
{
    kv->due[kv_due_clock(kv, stored)]++;
    kv->decodes++;
}
static inline void kv_leave(struct kv *kv, uint32_t stored)
{
    kv->due[kv_due_clock(kv, stored)]--;
    kv->decodes--;
}
/* Blocks the decodes need at the next start. */
static inline int64_t kv_need_now(const struct kv *kv)
{
    return kv->due[kv->clock];
}
/* Blocks the decodes need over the next n starts. O(block_size). */
int64_t kv_need(const struct kv *kv, uint32_t n);
/* Moves the clock over one start whose blocks the caller has taken. */
static inline void kv_tick(struct kv *kv)
{
    kv->clock = kv->clock + 1 == kv->block_size ? 0 : kv->clock + 1;
}
/* Starts n iterations: takes the decodes' blocks and moves the clock. */
void kv_start(struct kv *kv, uint32_t n);

#endif
