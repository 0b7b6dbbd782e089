/* Exact draws of counts from keyed streams, in basic operations only: the same on every machine. */
#ifndef FLEETSIM_MODELS_MOE_SAMPLE_H
#define FLEETSIM_MODELS_MOE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Where the next draw comes from: (key, entity, draw++). */
struct moe_stream {
    uint64_t key, entity, draw;
};

/* Binomial(n, p): inversion for small means, Hörmann's transformed rejection (BTRS, 1993) beyond.
 */
int64_t moe_sample_binomial(struct moe_stream *stream, int64_t n, double p);
/* n trials over weights [count] (any scale, ≥ 0, not all 0): by conditional binomials. */
void moe_sample_multinomial(struct moe_stream *stream, int64_t n, const double *weight,
                            size_t count, int64_t *drawn);

#endif
