#include "sim/engine/kv.h"

#include <stdlib.h>

#include "sim/base/arena.h"

void kv_init(struct kv *kv, int64_t total, uint32_t block_size)
{
    *kv = (struct kv){.total = total, .block_size = block_size};
    kv->due = memory_zero(block_size, sizeof *kv->due);
}

void kv_free(struct kv *kv)
{
    free(kv->due);
    *kv = (struct kv){0};
}

int64_t kv_need(const struct kv *kv, int64_t n)
{
    int64_t rounds = n / kv->block_size;
    uint32_t rest = (uint32_t)(n % kv->block_size);
    int64_t blocks = rounds * kv->decodes;
    for (uint32_t i = 0, clock = kv->clock; i < rest; i++) {
        blocks += kv->due[clock];
        clock = clock + 1 == kv->block_size ? 0 : clock + 1;
    }
    return blocks;
}

void kv_start(struct kv *kv, int64_t n)
{
    kv_take(kv, n == 1 ? kv_need_now(kv) : kv_need(kv, n));
    kv->clock = (uint32_t)((kv->clock + n) % kv->block_size);
}
