/* Keyed random numbers: Philox2x64-10 (Random123). A draw is a pure function of (seed, stream,
 * entity, draw): no state, so one consumer cannot shift another's numbers. key = rng_key(seed,
 * replication, stream), counter = (entity, draw). */
#ifndef FLEETSIM_SIM_BASE_RNG_H
#define FLEETSIM_SIM_BASE_RNG_H

#include <stdint.h>

#include <gsl/gsl_rng.h>

/* Every purpose of chance has its own stream. Append only; a test checks that the values are
 * unique. */
enum rng_stream {
    RNG_ARRIVAL = 1, /* entity: number of the arrival in its class; class index is mixed into the
                        key by .class_index */
    RNG_LENGTH = 2,  /* entity: number of the arrival in its class */
    RNG_SESSION = 3,
    RNG_ROUTER = 4,     /* entity: request id */
    RNG_COLD_START = 5, /* entity: replica launch number */
    RNG_EXPERT = 6,
    RNG_FAILURE = 7,
    RNG_TEST = 8,
    RNG_EXPERT_LOAD = 9, /* entity: layer group and number of the draw; lane: pool */
};

struct rng_pair {
    uint64_t a, b;
};

/* The documented mix: three rounds of the SplitMix64 finalizer absorb seed, then replication, then
 * (stream, lane). Never a sum: seed 1 replication 2 and seed 2 replication 1 share nothing. lane:
 * the traffic class or pool, 0 if none. */
uint64_t rng_key(uint64_t seed, uint32_t replication, enum rng_stream stream, uint32_t lane);

/* 128 random bits for (entity, draw). */
struct rng_pair rng_draw(uint64_t key, uint64_t entity, uint64_t draw);

/* The top 53 bits as a double in [0, 1). */
static inline double rng_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}
/* In (0, 1): never 0, so that its logarithm is finite. */
static inline double rng_unit_open(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* The same numbers as a gsl_rng, for GSL's samplers where no event's order hangs on the last bit.
 */
extern const gsl_rng_type *const rng_gsl_philox;
/* Points r (allocated with rng_gsl_philox) at the start of (key, entity). */
void rng_gsl_seek(gsl_rng *r, uint64_t key, uint64_t entity);

#endif
