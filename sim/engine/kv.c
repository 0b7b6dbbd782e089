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

int64_t kv_need(const struct kv *kv, uint32_t n)
{
    uint32_t rest = kv_offset(kv, n);
    int64_t rounds = kv->block_shift >= 0 ? n >> kv->block_shift : n / kv->block_size;
    int64_t blocks = rounds * kv->decodes;
    for (uint32_t i = 0, clock = kv->clock; i < rest; i++) {
        blocks += kv->due[clock];
        clock = clock + 1 == kv->block_size ? 0 : clock + 1;
    }
    return blocks;
}

void kv_start(struct kv *kv, uint32_t n)
{
    kv_take(kv, kv_need(kv, n));
    uint32_t clock = kv->clock + kv_offset(kv, n);
    kv->clock = clock >= kv->block_size ? clock - kv->block_size : clock;
}
