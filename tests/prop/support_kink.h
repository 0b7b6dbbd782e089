/* A step-time model with corners, for tests only: it makes laws whose pieces end (valid_n finite),
 * fall as well as rise, and saturate.
 *
 *     step = max(a + b·kv, c + d·kv) + per_decode·decodes + per_prefill·prefill tokens
 *            + per_pair·query-key pairs of the chunks
 *            + per_window_kv·KV tokens read and per_window_pair·query-key pairs within the window,
 *     kv = min(KV tokens read, cap_kv)
 *
 * with all coefficients whole picoseconds. One of the two lines must be positive wherever it is
 * evaluated. b = d = 0 makes it constant. */
#ifndef FLEETSIM_TESTS_PROP_SUPPORT_KINK_H
#define FLEETSIM_TESTS_PROP_SUPPORT_KINK_H

#include <stdint.h>

#include "models/step_time.h"

struct kink_config {
    int64_t a_ps, b_ps, c_ps, d_ps;
    int64_t per_decode_ps, per_prefill_ps, per_pair_ps;
    int64_t cap_kv;  /* 0: none */
    uint32_t window; /* tokens; 0: none, and then the two below are 0 too */
    int64_t per_window_kv_ps, per_window_pair_ps;
};

/* Its config is a struct kink_config; the built model is a copy of it. */
extern const struct step_model_type kink_type;

#endif
