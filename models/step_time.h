/* How long one engine iteration takes. A model turns the composition of a batch into an integer law
 * that is affine in the iteration's index i while the composition stays the same:
 *
 *     step_ps(i) = base_ps + slope_ps · i,   0 ≤ i < valid_n
 *
 * A decode's context grows by one token per iteration, a running prefill's by its chunk; everything
 * else is constant. Coefficients are rounded to whole picoseconds once, when the model is built, so
 * law(batch) at iteration k equals law(batch advanced by k iterations) at 0: that identity makes
 * spans exact, and a property test holds every model to it. */
#ifndef FLEETSIM_MODELS_STEP_TIME_H
#define FLEETSIM_MODELS_STEP_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"
#include "sim/base/time.h"

/* What one iteration computes. */
struct step_batch {
    uint32_t decodes;        /* sequences that compute one token each */
    uint32_t prefills;       /* sequences with a prompt chunk in it */
    uint32_t prefill_tokens; /* tokens of those chunks, summed: constant within a span */
    int64_t decode_kv;  /* tokens stored before the iteration by the decoding sequences, summed;
                           grows by `decodes` per iteration */
    int64_t prefill_kv; /* tokens stored before the iteration by the prefilling sequences, summed;
                           grows by prefill_tokens */
    int64_t prefill_pairs; /* query-key pairs of the chunks: Σ chunk·stored + chunk·(chunk+1)/2;
                              grows by prefill_squares */
    int64_t prefill_squares; /* Σ chunk² */

    /* The same within the model's window w (step_model_type.window), for layers whose attention
     * reaches back w tokens only; all zero for a model without. A span ends where one of them would
     * stop being affine. */
    uint32_t decode_growing;   /* decodes with fewer than w tokens stored */
    int64_t decode_window_kv;  /* Σ min(stored, w) over the decodes; grows by decode_growing */
    int64_t prefill_window_kv; /* Σ min(stored, w); grows by prefill_window_growth */
    int64_t prefill_window_growth;
    int64_t prefill_window_pairs; /* Σ over the chunks' tokens of min(keys, w); grows by the next */
    int64_t prefill_window_squares;
};

/* The same batch k iterations later. */
static inline struct step_batch step_batch_advance(struct step_batch b, int64_t k)
{
    b.decode_kv += k * b.decodes;
    b.prefill_kv += k * b.prefill_tokens;
    b.prefill_pairs += k * b.prefill_squares;
    b.decode_window_kv += k * b.decode_growing;
    b.prefill_window_kv += k * b.prefill_window_growth;
    b.prefill_window_pairs += k * b.prefill_window_squares;
    return b;
}

struct step_law {
    int64_t base_ps;  /* > 0 */
    int64_t slope_ps; /* of the index; may be negative only if every step up to valid_n stays > 0 */
    uint32_t valid_n; /* iterations the law holds for, ≥ 1; UINT32_MAX: no limit */
};

/* A kind of model: const callbacks, registered as a variant (ops) under step_time.model. */
struct step_model_type {
    /* Builds the rounded model from its filled config (variant's struct) into memory of the arena.
     * Reports what a user got wrong and returns NULL. `where` is the place of `step_time:` for
     * errors; may be NULL. */
    void *(*build)(const void *config, struct arena *arena, struct errors *errors,
                   const struct source_pos *where);
    /* The law for a batch with at least one token. */
    void (*law)(const void *model, const struct step_batch *batch, struct step_law *law);
    /* The work of one iteration at full utilisation, in ps; NULL: the step itself is the work.
     * Affine in nothing: constant within a span. */
    int64_t (*work)(const void *model, const struct step_batch *batch);
    /* Tokens that a window layer's attention reaches back; NULL or 0: the model has no such layer.
     */
    uint32_t (*window)(const void *model);
    /* Requests/s one replica can sustain for the stated mean lengths; NULL: not known in closed
     * form. */
    double (*capacity)(const void *model, double mean_prompt, double mean_output);
};

/* A built model, ready for the engine. */
struct step_model {
    const struct step_model_type *type;
    const void *model; /* owned by the arena given to build */
};

/* One file each; roofline and table have headers of their own. */
extern const struct variant step_rate_variant;
extern const struct variant step_affine_variant;
extern const struct variant step_constant_variant;

/* The registry behind step_time.model. NULL-terminated. */
extern const struct variant *const step_time_variants[];
/* Σ_{i<n} step(i), exact. n ≤ 65,536. */
static inline int128 step_law_sum(const struct step_law *law, uint32_t n)
{
    int64_t pairs = (int64_t)((uint64_t)n * (n - UINT64_C(1)) >> 1);
    return (int128)law->base_ps * n + (int128)law->slope_ps * pairs;
}
/* The smallest k in [1, n] with Σ_{i<k} step(i) ≥ elapsed_ps; n when there is none. sum_ps: that
 * sum, which must be within the clock for k = n. A floating seed, decided by integer predicates. */
uint32_t step_law_reach(const struct step_law *law, uint32_t n, int64_t elapsed_ps,
                        int64_t *sum_ps);
/* The largest k in [0, n] with Σ_{i<k} step(i) ≤ elapsed_ps (iterations complete at that time). */
uint32_t step_law_complete(const struct step_law *law, uint32_t n, int64_t elapsed_ps);

#endif
