/* What the busiest GPU of an expert-parallel group has to do, as a function of the tokens in the
 * step: expected maxima, tabulated once per popularity and read in integers, so that the same step
 * costs the same picoseconds on every machine. */
#ifndef FLEETSIM_MODELS_MOE_LAW_H
#define FLEETSIM_MODELS_MOE_LAW_H

#include <stddef.h>
#include <stdint.h>

/* The grid: 1, 2, 3, 4, 6, 8, 12, … tokens. */
enum { MOE_LAW_POINTS = 42 };

/* Each value is what a GPU would have to do under perfect balance of so many tokens, or experts, to
 * be as busy as the busiest one is: value / tokens is max/mean. In 2^-16. */
struct moe_law {
    int64_t pairs[MOE_LAW_POINTS];    /* token-expert pairs computed, in tokens */
    int64_t visits[MOE_LAW_POINTS];   /* tokens received, each once per GPU, in tokens */
    int64_t distinct[MOE_LAW_POINTS]; /* weights streamed: copies touched, × GPUs */
    size_t points;                    /* in use; beyond the last the ratios stay */
};

/* Which copies (slots) a GPU holds and how often a token chooses each. */
struct moe_load {
    const double *share; /* [slots] in order of GPUs: P(a token goes to this copy); Σ = top_k */
    size_t slots, ranks; /* slots / ranks on each */
    size_t experts;
};

/* Fills the law for up to max_tokens. */
void moe_law_init(struct moe_law *law, const struct moe_load *load, int64_t max_tokens);
/* sum += weight · law and the larger of two, point by point: layers differ, and a step pays each.
 */
void moe_law_add(struct moe_law *sum, const struct moe_law *law, double weight);
void moe_law_max(struct moe_law *law, const struct moe_law *other);

/* A law at a number of tokens ≥ 0, linear between grid points. */
struct moe_busiest {
    double pairs, visits, distinct;
};
struct moe_busiest moe_law_at(const struct moe_law *law, int64_t tokens);
/* max/mean of token-expert pairs. */
double moe_law_factor(const struct moe_law *law, int64_t tokens);

/* E[max] of independent counts with these means and variances ≤ means (binomial-like): exact sums
 * over whole numbers while the largest mean is small, a normal-power approximation beyond. Counts
 * that must add up to a constant have the same maximum when the variances are those without that
 * constraint (for equal ones: 1/(1 − 1/n) times the marginal variance). */
double moe_law_expected_max(const double *mean, const double *variance, size_t count);

#endif
