/* How unevenly tokens fall on the GPUs that hold a layer's experts: the step waits for the busiest.
 * All figures are max/mean, so 1 is perfect balance. */
#ifndef FLEETSIM_MODELS_MOE_LOAD_H
#define FLEETSIM_MODELS_MOE_LOAD_H

/* Expected maximum of n standard normal draws (Blom): Φ⁻¹((n − 3/8)/(n + 1/4)); 0 for n ≤ 1. */
double moe_load_extreme(double n);

/* Uniform routing of `assignments` token-expert pairs over `ranks` GPUs:
 * 1 + z(G)·sqrt(G/A · (1 − 1/G)); within 0.1 of simulation for 64 tokens
 * and more on up to 64 GPUs, within 10 % on 128. */
double moe_load_uniform(double ranks, double assignments);

/* Experts whose popularity has coefficient of variation cv ≤ 0.5, placed at random:
 * 1 + z·sqrt(G/A + cv²·G/E). */
double moe_load_skewed(double ranks, double assignments, double cv, double experts);

/* The slowest of `ranks` attention copies with `sequences` each, whose lengths have coefficient of
 * variation cv. Random assignment: 1 + z·sqrt((1 + cv²)/R); equal counts: 1 + z·cv/sqrt(R). */
double moe_load_attention(double ranks, double sequences, double cv, int random_assignment);

#endif
