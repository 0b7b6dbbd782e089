#include "sim/base/rng.h"

#include <limits.h>

/* Random123's headers are macros over every width and rotate; two of our warnings fire inside. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

#include "sim/base/check.h"

_Static_assert(ULONG_MAX == UINT64_MAX, "gsl_rng hands out unsigned long");

enum { PHILOX_ROUNDS = 10 };

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014; constants of Stafford's variant 13): a
 * bijection on 64 bits in which every input bit reaches every output bit. */
static uint64_t splitmix_finalize(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t rng_key(uint64_t seed, uint32_t replication, enum rng_stream stream, uint32_t lane)
{
    /* The golden-ratio increments keep 0 from being a fixed point and the rounds apart. Each round
     * is a bijection of what it absorbs: one seed's replications, and one replication's (stream,
     * lane) pairs, can never share a key. */
    const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t key = splitmix_finalize(seed + step);
    key = splitmix_finalize((key ^ replication) + 2 * step);
    return splitmix_finalize((key ^ ((uint64_t)stream << 32 | lane)) + 3 * step);
}

struct rng_pair rng_draw(uint64_t key, uint64_t entity, uint64_t draw)
{
    philox2x64_ctr_t counter = {{entity, draw}};
    philox2x64_key_t philox_key = {{key}};
    philox2x64_ctr_t bits = philox2x64_R(PHILOX_ROUNDS, counter, philox_key);
    return (struct rng_pair){bits.v[0], bits.v[1]};
}

/* The gsl_rng's state. Word w of an entity is half w % 2 of draw w / 2. */
struct rng_gsl {
    uint64_t key, entity, draw;
    uint64_t spare; /* the second half of the last draw */
    uint64_t has_spare;
};

static void rng_gsl_set(void *state, unsigned long seed)
{
    struct rng_gsl *r = state;
    *r = (struct rng_gsl){.key = rng_key(seed, 0, RNG_TEST, 0)};
}

static unsigned long rng_gsl_get(void *state)
{
    struct rng_gsl *r = state;
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    struct rng_pair pair = rng_draw(r->key, r->entity, r->draw++);
    r->spare = pair.b;
    r->has_spare = 1;
    return pair.a;
}

static double rng_gsl_get_double(void *state)
{
    return rng_unit(rng_gsl_get(state));
}

static const gsl_rng_type rng_gsl_philox_type = {
    .name = "philox2x64-10",
    .max = ULONG_MAX,
    .min = 0,
    .size = sizeof(struct rng_gsl),
    .set = rng_gsl_set,
    .get = rng_gsl_get,
    .get_double = rng_gsl_get_double,
};

const gsl_rng_type *const rng_gsl_philox = &rng_gsl_philox_type;

void rng_gsl_seek(gsl_rng *r, uint64_t key, uint64_t entity)
{
    check(r->type == rng_gsl_philox);
    *(struct rng_gsl *)r->state = (struct rng_gsl){.key = key, .entity = entity};
}
