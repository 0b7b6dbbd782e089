#include "sim/engine/kv.h"

#include <stdbool.h>
#include <stdlib.h>

#include "sim/base/arena.h"

void kv_init(struct kv *kv, int64_t total, uint32_t block_size)
{
    bool power_of_two = (block_size & (block_size - 1)) == 0;
    *kv = (struct kv){.total = total,
                      .block_size = block_size,
                      .block_shift = power_of_two ? __builtin_ctz(block_size) : -1};
    kv->due = memory_zero(block_size, sizeof *kv->due);
}

void kv_free(struct kv *kv)
{
    free(kv->due);
    *kv = (struct kv){0};
}

/* Decodes that need a block at one of `count` ≤ block_size starts from the given clock on. */
static uint32_t due_sum(const struct kv *kv, uint32_t clock, uint32_t count)
{
    uint32_t sum = 0, end = clock + count, size = kv->block_size;
    for (uint32_t i = clock; i < (end < size ? end : size); i++) {
        sum += kv->due[i];
    }
    for (uint32_t i = size; i < end; i++) { /* round the clock */
        sum += kv->due[i - size];
    }
    return sum;
}

/* Blocks over `rounds` times all clocks and `rest` < block_size starts more. */
static int64_t need(const struct kv *kv, int64_t rounds, uint32_t rest)
{
    /* The counts of the starts still to come, or those of the others, whichever are fewer. */
    if (rest <= kv->block_size / 2) {
        return rounds * kv->decodes + due_sum(kv, kv->clock, rest);
    }
    uint32_t end = kv->clock + rest;
    end = end >= kv->block_size ? end - kv->block_size : end;
    return (rounds + 1) * kv->decodes - due_sum(kv, end, kv->block_size - rest);
}

static uint32_t rounds_of(const struct kv *kv, uint32_t n)
{
    return kv->block_shift >= 0 ? n >> kv->block_shift : n / kv->block_size;
}

int64_t kv_need(const struct kv *kv, uint32_t n)
{
    return need(kv, rounds_of(kv, n), kv_offset(kv, n));
}

void kv_start(struct kv *kv, uint32_t n)
{
    if (n == 0) {
        return;
    }
    uint32_t rest = kv_offset(kv, n);
    kv_take(kv, need(kv, rounds_of(kv, n), rest));
    uint32_t clock = kv->clock + rest;
    kv->clock = clock >= kv->block_size ? clock - kv->block_size : clock;
}
