/* Keyed random numbers: known answers, independence of streams, seeds and replications. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#include "sim/base/moments.h"
#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

/* philox2x64 with 10 rounds, from Random123's table of known answers (kat_vectors). */
START_TEST(known_answers)
{
    static const struct {
        uint64_t entity, draw, key, a, b;
    } cases[] = {
        {0, 0, 0, 0xca00a0459843d731, 0x66c24222c9a845b5},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0x65b021d60cd8310f, 0x4d02f3222f86df20},
        {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x0a5e742c2997341c,
         0xb0f883d38000de5d},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rng_pair bits = rng_draw(cases[i].key, cases[i].entity, cases[i].draw);
        ck_assert_uint_eq(bits.a, cases[i].a);
        ck_assert_uint_eq(bits.b, cases[i].b);
    }
}
END_TEST

/* The key mix is part of the contract: a change would give every scenario other traffic. The value
 * is what the documented formula gives when worked out apart from this code. */
START_TEST(keys_stay)
{
    ck_assert_uint_eq(rng_key(1, 0, RNG_ARRIVAL, 0), UINT64_C(0x322fa2be09002c28));
    ck_assert_uint_eq(rng_key(0, 0, RNG_LENGTH, 3), UINT64_C(0xa47c0147fe85322b));
    ck_assert_uint_eq(rng_key(UINT64_MAX, UINT32_MAX, RNG_TEST, UINT32_MAX),
                      UINT64_C(0x3b88a083e2d7c318));
}
END_TEST

static int key_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(keys_are_unique)
{
    static const enum rng_stream streams[] = {RNG_ARRIVAL, RNG_LENGTH,     RNG_SESSION,
                                              RNG_ROUTER,  RNG_COLD_START, RNG_EXPERT,
                                              RNG_FAILURE, RNG_TEST,       RNG_EXPERT_LOAD};
    enum {
        STREAMS = sizeof(streams) / sizeof(streams[0]),
        SEEDS = 20,
        REPLICATIONS = 20,
        LANES = 20
    };
    for (size_t i = 0; i < STREAMS; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(streams[i], streams[j]);
        }
    }
    size_t count = 0, size = (size_t)STREAMS * SEEDS * REPLICATIONS * LANES;
    uint64_t *keys = malloc(size * sizeof(*keys));
    ck_assert_ptr_nonnull(keys);
    for (size_t s = 0; s < STREAMS; s++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (uint32_t r = 0; r < REPLICATIONS; r++) {
                for (uint32_t lane = 0; lane < LANES; lane++) {
                    keys[count++] = rng_key(seed, r, streams[s], lane);
                }
            }
        }
    }
    ck_assert_uint_eq(count, size);
    qsort(keys, count, sizeof(*keys), key_order);
    for (size_t i = 1; i < count; i++) {
        ck_assert_uint_ne(keys[i], keys[i - 1]);
    }
    free(keys);
}
END_TEST

/* Pearson's chi-square over equally likely cells; fails beyond 1 in 10⁶ on either side. */
static void ck_uniform(const uint32_t *counts, size_t cells, double total, const char *what)
{
    double expected = total / (double)cells, chi2 = 0;
    for (size_t i = 0; i < cells; i++) {
        chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    double p = gsl_cdf_chisq_Q(chi2, (double)cells - 1);
    ck_assert_msg(p > 1e-6 && p < 1 - 1e-6, "%s: chi-square %g over %zu cells, p %g", what, chi2,
                  cells, p);
}

/* Seeds 1 and 2, replications 0 to 4: ten streams that differ, are uniform, and know nothing of
 * each other: no correlation at the same index or one off, no dependence of the top bits. */
START_TEST(seeds_and_replications_share_nothing)
{
    enum { LISTS = 10, N = 100000, SIDE = 16 };
    double *lists[LISTS];
    for (uint32_t i = 0; i < LISTS; i++) {
        uint64_t key = rng_key(1 + i / 5, i % 5, RNG_ARRIVAL, 0);
        uint32_t counts[256] = {0};
        lists[i] = malloc(N * sizeof(double));
        ck_assert_ptr_nonnull(lists[i]);
        for (uint64_t n = 0; n < N; n++) {
            lists[i][n] = rng_unit(rng_draw(key, n, 0).a);
            counts[(int)(lists[i][n] * 256)]++;
        }
        ck_uniform(counts, 256, N, "one list");
    }
    for (int i = 0; i < LISTS; i++) {
        for (int j = 0; j < LISTS; j++) {
            if (i == j) {
                continue;
            }
            uint32_t joint[SIDE * SIDE] = {0}, same = 0;
            double product = 0, shifted = 0;
            for (size_t n = 0; n + 1 < N; n++) {
                double x = lists[i][n], y = lists[j][n];
                same += x == y;
                joint[(int)(x * SIDE) * SIDE + (int)(y * SIDE)]++;
                product += (x - 0.5) * (y - 0.5);
                shifted += (x - 0.5) * (lists[j][n + 1] - 0.5);
            }
            ck_assert_uint_eq(same, 0);
            ck_uniform(joint, SIDE * SIDE, N - 1, "two lists");
            /* 12 Σ xy / √N is standard normal; 5 σ over 180 tries. */
            ck_assert_double_lt(fabs(12 * product / sqrt(N)), 5);
            ck_assert_double_lt(fabs(12 * shifted / sqrt(N)), 5);
        }
    }
    for (int i = 0; i < LISTS; i++) {
        free(lists[i]);
    }
}
END_TEST

/* Neighbours in entity and draw, and the two halves of one draw. */
START_TEST(neighbours_share_nothing)
{
    enum { N = 200000, SIDE = 16 };
    uint64_t key = rng_key(1, 0, RNG_LENGTH, 0);
    uint32_t halves[SIDE * SIDE] = {0}, entities[SIDE * SIDE] = {0}, draws[SIDE * SIDE] = {0};
    for (uint64_t n = 0; n < N; n++) {
        struct rng_pair here = rng_draw(key, n, 0);
        halves[(here.a >> 60) * SIDE + (here.b >> 60)]++;
        entities[(here.a >> 60) * SIDE + (rng_draw(key, n + 1, 0).a >> 60)]++;
        draws[(here.a >> 60) * SIDE + (rng_draw(key, n, 1).a >> 60)]++;
    }
    ck_uniform(halves, SIDE * SIDE, N, "halves");
    ck_uniform(entities, SIDE * SIDE, N, "entities");
    ck_uniform(draws, SIDE * SIDE, N, "draws");
}
END_TEST

START_TEST(unit_doubles_stay_in_range)
{
    ck_assert(rng_unit(0) == 0);
    ck_assert(rng_unit(UINT64_MAX) == 1 - 0x1p-53);
    ck_assert(rng_unit_open(0) == 0x1p-53);
    ck_assert(rng_unit_open(UINT64_MAX) < 1);
    ck_assert(rng_unit_open(UINT64_MAX) == 1 - 0x1p-53);
}
END_TEST

START_TEST(gsl_type_gives_the_same_numbers)
{
    gsl_rng *r = gsl_rng_alloc(rng_gsl_philox);
    ck_assert_ptr_nonnull(r);
    rng_gsl_seek(r, 77, 5);
    for (uint64_t draw = 0; draw < 10; draw++) {
        struct rng_pair bits = rng_draw(77, 5, draw);
        ck_assert_uint_eq(gsl_rng_get(r), bits.a);
        ck_assert(gsl_rng_uniform(r) == rng_unit(bits.b));
    }
    gsl_rng_get(r); /* a half left over is forgotten by a seek */
    rng_gsl_seek(r, 77, 6);
    ck_assert_uint_eq(gsl_rng_get(r), rng_draw(77, 6, 0).a);
    gsl_rng_set(r, 1);
    unsigned long first = gsl_rng_get(r);
    gsl_rng_set(r, 2);
    ck_assert_uint_ne(gsl_rng_get(r), first);
    gsl_rng_free(r);
}
END_TEST

/* GSL's samplers on it: mean and variance within 5 standard errors. */
START_TEST(gsl_samplers_have_their_moments)
{
    enum { N = 400000 };
    gsl_rng *r = gsl_rng_alloc(rng_gsl_philox);
    ck_assert_ptr_nonnull(r);
    rng_gsl_seek(r, rng_key(1, 0, RNG_TEST, 0), 0);
    struct moments uniform, normal, gamma;
    moments_init(&uniform);
    moments_init(&normal);
    moments_init(&gamma);
    uint32_t dice[6] = {0};
    for (int i = 0; i < N; i++) {
        moments_add(&uniform, gsl_rng_uniform(r));
        moments_add(&normal, gsl_ran_gaussian(r, 2));
        moments_add(&gamma, gsl_ran_gamma(r, 4, 0.5));
        dice[gsl_rng_uniform_int(r, 6)]++;
    }
    ck_uniform(dice, 6, N, "dice");
    double root = sqrt(N);
    ck_assert_double_lt(fabs(uniform.mean - 0.5), 5 * sqrt(1.0 / 12) / root);
    ck_assert_double_lt(fabs(moments_variance(&uniform) - 1.0 / 12), 5 * 0.0746 / root);
    ck_assert_double_lt(fabs(normal.mean), 5 * 2 / root);
    ck_assert_double_lt(fabs(moments_variance(&normal) - 4), 5 * 4 * sqrt(2) / root);
    ck_assert_double_lt(fabs(gamma.mean - 2), 5 * 1 / root);
    ck_assert_double_lt(fabs(moments_variance(&gamma) - 1), 5 * sqrt(3.5) / root);
    gsl_rng_free(r);
}
END_TEST

/* Two consumers side by side; one of them draws more than before. The other one's numbers stay, and
 * so do the first one's for every other entity. */
START_TEST(an_extra_draw_changes_no_other_stream)
{
    enum { ENTITIES = 200 };
    double lengths[2][ENTITIES], routes[2][ENTITIES];
    gsl_rng *length = gsl_rng_alloc(rng_gsl_philox), *route = gsl_rng_alloc(rng_gsl_philox);
    ck_assert(length != NULL && route != NULL);
    for (int extra = 0; extra < 2; extra++) {
        for (uint64_t e = 0; e < ENTITIES; e++) {
            rng_gsl_seek(length, rng_key(1, 0, RNG_LENGTH, 0), e);
            rng_gsl_seek(route, rng_key(1, 0, RNG_ROUTER, 0), e);
            lengths[extra][e] = gsl_ran_gamma(length, 2, 1);
            for (int i = 0; i < 3 * extra; i++) {
                gsl_rng_get(length);
            }
            routes[extra][e] = gsl_rng_uniform(route);
        }
    }
    ck_assert_mem_eq(lengths[0], lengths[1], sizeof(lengths[0]));
    ck_assert_mem_eq(routes[0], routes[1], sizeof(routes[0]));
    gsl_rng_free(length);
    gsl_rng_free(route);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {known_answers,
                                  keys_stay,
                                  keys_are_unique,
                                  seeds_and_replications_share_nothing,
                                  neighbours_share_nothing,
                                  unit_doubles_stay_in_range,
                                  gsl_type_gives_the_same_numbers,
                                  gsl_samplers_have_their_moments,
                                  an_extra_draw_changes_no_other_stream,
                                  NULL};
    return suite_run("rng", tests, 120);
}
