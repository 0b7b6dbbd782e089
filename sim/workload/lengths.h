/* Length distributions of prompts and outputs: variants under the tag `dist`. A length is a whole
 * number of tokens made from 64 random bits; everything a draw hangs on is computed with detmath,
 * so it is the same on every machine. */
#ifndef FLEETSIM_SIM_WORKLOAD_LENGTHS_H
#define FLEETSIM_SIM_WORKLOAD_LENGTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/workload/site.h"

/* The longest prompt or output, from a distribution (clipped) or a trace (refused). */
#define LENGTHS_TOKENS_MAX UINT32_C(1073741824)

struct lengths;
struct lengths_table;

struct lengths_type {
    /* Fills the parameters and the mean; false after reporting at key ("prompt_tokens"). */
    bool (*init)(struct lengths *lengths, const void *config, const struct site *site,
                 const char *key);
    /* Rises with bits, or, where .falling, falls. */
    uint32_t (*draw)(const struct lengths *lengths, uint64_t bits);
    bool falling;
};

struct lengths {
    const struct lengths_type *type;
    double mean;                 /* of what draw returns: exact up to double rounding */
    double a, b;                 /* parameters, meaning by type */
    uint32_t min, max;           /* of what draw returns */
    struct lengths_table *table; /* owned; NULL for the types that need none */
};

extern const struct variant *const lengths_variants[];

/* value: a variant of lengths_variants. least: 1 for prompts, 0 for outputs. */
bool lengths_init(struct lengths *lengths, const struct variant_value *value, uint32_t least,
                  const struct site *site, const char *key);
void lengths_free(struct lengths *lengths);
/* Φ(x) from detmath only: absolute error below 1e-15, relative below 1e-12. */
double lengths_normal_cdf(double x);
/* Bits for an output whose length is tied to that of a prompt drawn from `prompt`: their normal
 * scores have this correlation (a Gaussian copula). own: independent bits. Both marginal
 * distributions stay as they are. */
uint64_t lengths_correlate(const struct lengths *prompt, uint64_t prompt_bits,
                           const struct lengths *output, uint64_t own, double correlation);
/* Mean of ceil(exp(mu + sigma·Z)) clipped to [min, max], Z standard normal, min ≥ 1. */
double lengths_lognormal_mean(double mu, double sigma, uint32_t min, uint32_t max);

static inline uint32_t lengths_draw(const struct lengths *lengths, uint64_t bits)
{
    return lengths->type->draw(lengths, bits);
}
/* The same from two distributions at once, which log-normal ones do side by side. */
void lengths_draw_two(const struct lengths *first, const struct lengths *second,
                      const uint64_t bits[2], uint32_t tokens[2]);

#endif
