#include "tests/prop/support_kink.h"

#include <stdbool.h>

#include "sim/base/check.h"

static void *build(const void *config, struct arena *arena, struct errors *errors,
                   const struct source_pos *where)
{
    (void)errors;
    (void)where;
    struct kink_config *model = arena_alloc(arena, sizeof(*model));
    *model = *(const struct kink_config *)config;
    return model;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void law(const void *model, const struct step_batch *batch, struct step_law *out)
{
    const struct kink_config *k = model;
    int64_t kv = batch->decode_kv + batch->prefill_kv;
    int64_t growth = (int64_t)batch->decodes + batch->prefill_tokens;
    int64_t valid = UINT32_MAX;
    if (k->cap_kv > 0 && kv >= k->cap_kv) {
        kv = k->cap_kv;
        growth = 0;
    } else if (k->cap_kv > 0) {
        valid = least(valid, (k->cap_kv - kv) / growth + 1);
    }
    int64_t first = k->a_ps + k->b_ps * kv;
    int64_t second = k->c_ps + k->d_ps * kv;
    /* At a crossing the steeper line is the one that holds next. */
    bool first_holds = first > second || (first == second && k->b_ps >= k->d_ps);
    int64_t lead = first_holds ? first - second : second - first;
    int64_t slope = first_holds ? k->b_ps : k->d_ps;
    int64_t closing = (first_holds ? k->d_ps - k->b_ps : k->b_ps - k->d_ps) * growth;
    if (closing > 0) {
        valid = least(valid, lead / closing + 1);
    }
    out->base_ps = (first_holds ? first : second) + k->per_decode_ps * batch->decodes +
                   k->per_prefill_ps * batch->prefill_tokens +
                   k->per_pair_ps * batch->prefill_pairs +
                   k->per_window_kv_ps * (batch->decode_window_kv + batch->prefill_window_kv) +
                   k->per_window_pair_ps * batch->prefill_window_pairs;
    out->slope_ps = slope * growth + k->per_pair_ps * batch->prefill_squares +
                    k->per_window_kv_ps * (batch->decode_growing + batch->prefill_window_growth) +
                    k->per_window_pair_ps * batch->prefill_window_squares;
    out->valid_n = (uint32_t)valid;
    check(out->base_ps > 0);
}

static uint32_t window(const void *model)
{
    return ((const struct kink_config *)model)->window;
}

const struct step_model_type kink_type = {.build = build, .law = law, .window = window};
