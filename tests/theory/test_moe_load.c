/* The load of the busiest GPU against brute force (tokens routed one by one), against what was
 * measured on DeepSeek-R1, and against the table of means over a thousand drawn popularities.
 *
 *     MOE_DRAWS=2000 build/release/tests/theory_test_moe_load      more of them */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/moe_law.h"
#include "models/moe_placement.h"
#include "models/moe_popularity.h"
#include "models/moe_routing.h"
#include "models/moe_sample.h"
#include "sim/base/rng.h"

enum { EXPERTS_MAX = 1024, TOP_K_MAX = 32 };

static size_t draws(size_t usual)
{
    const char *given = getenv("MOE_DRAWS");
    return given != NULL ? (size_t)strtoul(given, NULL, 10) : usual;
}

static struct moe_popularity_config popularity_of(enum moe_popularity_kind kind, double parameter,
                                                  size_t experts, size_t groups)
{
    return (struct moe_popularity_config){.kind = kind,
                                          .parameter = parameter,
                                          .experts = experts,
                                          .groups = groups,
                                          .classes = 1,
                                          .class_correlation = 1,
                                          .step_correlation = 1,
                                          .seed = 7};
}

/* ---- brute force ---------------------------------------------------------------------------- */

struct brute {
    double pairs, visits, distinct; /* max / mean of a step */
    double pairs_error;             /* standard error */
};

static void place(struct moe_placement *p, const struct moe_placement_shape *shape,
                  const double *load)
{
    moe_placement_init(p, shape);
    moe_placement_fill(p, shape->redundant > 0 ? MOE_PLACEMENT_EPLB : MOE_PLACEMENT_CONTIGUOUS,
                       shape, load);
}

/* Slots of each expert: [experts][copies]. */
static size_t slot_of(const struct moe_placement *p, int32_t expert, uint64_t which)
{
    size_t at = which % (uint64_t)p->copies[expert];
    for (size_t s = 0; s < p->slots; s++) {
        if (p->expert[s] == expert && at-- == 0) {
            return s;
        }
    }
    ck_abort();
    return 0;
}

/* Steps of `tokens` tokens, each routed by itself. */
static struct brute brute_force(const struct moe_routing *routing, const double *popularity,
                                const struct moe_placement *placement, size_t tokens, size_t steps)
{
    struct moe_routing_draw router;
    moe_routing_begin(&router, routing, popularity, rng_key(11, 0, RNG_TEST, 0));
    size_t ranks = placement->ranks, each = placement->slots / ranks;
    double *pairs = calloc(2 * ranks + placement->slots, sizeof *pairs);
    double *visits = pairs + ranks, *touched = visits + ranks;
    double most[3] = {0}, total[3] = {0}, squares = 0;
    for (size_t step = 0; step < steps; step++) {
        double sum[3] = {0};
        for (size_t i = 0; i < 2 * ranks + placement->slots; i++) {
            pairs[i] = 0;
        }
        for (size_t t = 0; t < tokens; t++) {
            uint64_t token = step * tokens + t;
            int32_t experts[TOP_K_MAX];
            size_t on[TOP_K_MAX];
            moe_routing_token(&router, token, experts);
            for (int64_t i = 0; i < routing->top_k; i++) {
                uint64_t which = rng_draw(router.key, token, UINT64_MAX - (uint64_t)i).a >> 33;
                size_t slot = slot_of(placement, experts[i], which), rank = slot / each;
                bool seen = false;
                for (int64_t j = 0; j < i; j++) {
                    seen |= on[j] == rank;
                }
                on[i] = rank;
                pairs[rank]++;
                visits[rank] += !seen;
                touched[slot] = 1;
            }
        }
        double distinct[EXPERTS_MAX] = {0};
        for (size_t s = 0; s < placement->slots; s++) {
            distinct[s / each] += touched[s];
        }
        double most_pairs = 0, most_visits = 0, most_distinct = 0;
        for (size_t g = 0; g < ranks; g++) {
            most_pairs = fmax(most_pairs, pairs[g]);
            most_visits = fmax(most_visits, visits[g]);
            most_distinct = fmax(most_distinct, distinct[g]);
            sum[0] += pairs[g];
            sum[1] += visits[g];
            sum[2] += distinct[g];
        }
        most[0] += most_pairs;
        most[1] += most_visits;
        most[2] += most_distinct;
        squares += most_pairs * most_pairs;
        for (int i = 0; i < 3; i++) {
            total[i] += sum[i];
        }
    }
    free(pairs);
    moe_routing_end(&router);
    double n = (double)steps, r = (double)ranks, mean = most[0] / n;
    struct brute b = {most[0] * r / total[0], most[1] * r / total[1], most[2] * r / n,
                      sqrt(fmax(squares / n - mean * mean, 0) / n) * r * n / total[0]};
    return b;
}

static void law_of(const struct moe_routing *routing, const double *popularity,
                   const struct moe_placement *placement, struct moe_law *law)
{
    double share[EXPERTS_MAX], slots[2 * EXPERTS_MAX];
    moe_routing_shares(routing, popularity, share);
    moe_placement_shares(placement, share, slots);
    struct moe_load load = {slots, placement->slots, placement->ranks, placement->experts};
    moe_law_init(law, &load, 1 << 20);
}

struct law_case {
    enum moe_popularity_kind kind;
    double parameter;
    int64_t experts, top_k, groups, top_groups;
    size_t ranks, redundant;
};
static const struct law_case law_cases[] = {
    {MOE_UNIFORM, 0, 256, 8, 1, 1, 8, 0},        {MOE_UNIFORM, 0, 256, 8, 1, 1, 32, 0},
    {MOE_UNIFORM, 0, 256, 8, 1, 1, 128, 0},      {MOE_LOGNORMAL, 1.15, 256, 8, 1, 1, 32, 0},
    {MOE_LOGNORMAL, 1.15, 256, 8, 1, 1, 32, 32}, {MOE_LOGNORMAL, 0.5, 896, 16, 1, 1, 16, 0},
    {MOE_ZIPF, 1, 256, 8, 1, 1, 64, 0},          {MOE_DIRICHLET, 1, 256, 8, 1, 1, 8, 0},
    {MOE_LOGNORMAL, 0.7, 128, 1, 1, 1, 8, 0},    {MOE_ZIPF, 0.5, 8, 2, 1, 1, 4, 0},
    {MOE_LOGNORMAL, 0.7, 256, 8, 8, 4, 32, 0},   {MOE_DIRICHLET, 5, 256, 8, 1, 1, 72, 32},
};

START_TEST(test_law_against_brute_force)
{
    const struct law_case *c = &law_cases[_i];
    struct moe_popularity popularity;
    struct moe_popularity_config config =
        popularity_of(c->kind, c->parameter, (size_t)c->experts, 1);
    moe_popularity_init(&popularity, &config);
    const double *weight = moe_popularity_of(&popularity, 0, 0);
    struct moe_routing routing = {c->experts, c->top_k, c->groups, c->top_groups};
    double share[EXPERTS_MAX];
    moe_routing_shares(&routing, weight, share);
    struct moe_placement_shape shape = {(size_t)c->experts, c->redundant, c->ranks, 1, 1};
    struct moe_placement placement;
    place(&placement, &shape, share);
    static struct moe_law law;
    law_of(&routing, weight, &placement, &law);
    for (int64_t tokens = 1; tokens <= 4096; tokens *= 8) {
        size_t steps = (size_t)(tokens < 64 ? 4000 : 60000 / tokens + 20);
        struct brute b = brute_force(&routing, weight, &placement, (size_t)tokens, steps);
        struct moe_busiest m = moe_law_at(&law, tokens);
        double pairs = m.pairs / (double)tokens, visits = m.visits / (double)tokens;
        printf("case %d, %4lld tokens: pairs %.3f (%.3f brute), visits %.3f (%.3f), distinct %.1f "
               "(%.1f)\n",
               _i, (long long)tokens, pairs, b.pairs, visits, b.visits, m.distinct, b.distinct);
        /* Beside the noise of the brute force: what independent counts leave out. Tokens of
         * node-limited routing keep together, which small steps feel. */
        bool together = c->top_groups < c->groups;
        double noise = 4 * b.pairs_error / b.pairs;
        double model = tokens >= 64 ? 0.01 : tokens >= 8 ? 0.02 : 0.06;
        model = together && tokens < 64 ? 0.2 : model;
        ck_assert_double_eq_tol(pairs / b.pairs, 1, model + noise);
        ck_assert_double_eq_tol(visits / b.visits, 1, 0.02 + model + noise);
        ck_assert_double_eq_tol(m.distinct / b.distinct, 1, 0.04 + model + noise);
    }
    moe_placement_free(&placement);
    moe_popularity_free(&popularity);
}
END_TEST

/* ---- means over drawn popularities ---------------------------------------------------------- */

struct drawn {
    double rank, expert; /* max / mean of a batch of tokens: of GPUs, of copies */
};

/* One popularity (seed), placed by its weights, scored on one batch. */
static struct drawn score(const struct moe_popularity *popularity, const double *share,
                          const struct moe_placement_shape *shape, int64_t top_k, int64_t tokens,
                          uint64_t batch)
{
    struct moe_placement placement;
    place(&placement, shape, moe_popularity_of(popularity, 0, 0));
    double slots[2 * EXPERTS_MAX];
    int64_t count[2 * EXPERTS_MAX];
    moe_placement_shares(&placement, share, slots);
    struct moe_stream stream = {.key = rng_key(popularity->config.seed, 1, RNG_TEST, 0),
                                .entity = batch};
    moe_sample_multinomial(&stream, tokens * top_k, slots, placement.slots, count);
    size_t each = placement.slots / placement.ranks;
    int64_t most_rank = 0, most_slot = 0;
    for (size_t g = 0; g < placement.ranks; g++) {
        int64_t load = 0;
        for (size_t s = g * each; s < (g + 1) * each; s++) {
            load += count[s];
            most_slot = count[s] > most_slot ? count[s] : most_slot;
        }
        most_rank = load > most_rank ? load : most_rank;
    }
    double picks = (double)(tokens * top_k);
    struct drawn d = {(double)most_rank * (double)placement.ranks / picks,
                      (double)most_slot * (double)placement.slots / picks};
    moe_placement_free(&placement);
    return d;
}

static struct drawn mean_of_draws(enum moe_popularity_kind kind, double parameter, size_t ranks,
                                  size_t redundant, int64_t tokens, size_t count)
{
    struct moe_routing routing = {256, 8, 1, 1};
    struct moe_placement_shape shape = {256, redundant, ranks, 1, 1};
    struct drawn sum = {0, 0};
    for (size_t i = 0; i < count; i++) {
        struct moe_popularity_config config = popularity_of(kind, parameter, 256, 1);
        struct moe_popularity popularity;
        double share[256];
        config.seed = 1000 + i;
        moe_popularity_init(&popularity, &config);
        moe_routing_shares(&routing, moe_popularity_of(&popularity, 0, 0), share);
        struct drawn d = score(&popularity, share, &shape, 8, tokens, ranks);
        sum.rank += d.rank;
        sum.expert += d.expert;
        moe_popularity_free(&popularity);
    }
    return (struct drawn){sum.rank / (double)count, sum.expert / (double)count};
}

/* DeepSeek-R1 on 32 GPUs, 128 tokens each, mean over 58 layers: max/mean − 1 was 1.564 for GPUs and
 * 10.948 for experts; 0.109 with 32 redundant copies. */
START_TEST(test_measured_on_r1)
{
    size_t count = draws(400);
    struct drawn plain = mean_of_draws(MOE_LOGNORMAL, 1.15, 32, 0, 4096, count);
    struct drawn copies = mean_of_draws(MOE_LOGNORMAL, 1.15, 32, 32, 4096, count);
    printf("R1, %zu draws: GPUs %.3f, experts %.3f; with 32 copies %.3f\n", count, plain.rank - 1,
           plain.expert - 1, copies.rank - 1);
    ck_assert_double_ge(plain.rank - 1, 1.40);
    ck_assert_double_le(plain.rank - 1, 1.65);
    ck_assert_double_ge(plain.expert - 1, 10);
    ck_assert_double_le(plain.expert - 1, 12);
    ck_assert_double_ge(copies.rank - 1, 0.05);
    ck_assert_double_le(copies.rank - 1, 0.2);
}
END_TEST

/* E = 256, k = 8, 16,384 tokens: means over 1,000 draws by an independent simulation. */
static const struct {
    enum moe_popularity_kind kind;
    double parameter;
    size_t redundant, ranks[4];
    double mean[4]; /* 0: not tabulated */
} table_rows[] = {
    {MOE_ZIPF, 0.25, 0, {8, 32, 64, 128}, {1.08, 1.28, 1.51, 1.98}},
    {MOE_ZIPF, 0.5, 0, {8, 32, 64, 128}, {1.22, 1.85, 2.65, 4.31}},
    {MOE_ZIPF, 1, 0, {8, 32, 64, 128}, {1.73, 3.97, 7.01, 13.1}},
    {MOE_DIRICHLET, 5, 0, {8, 32, 64, 128}, {1.11, 1.35, 1.59, 1.98}},
    {MOE_DIRICHLET, 1, 0, {8, 32, 64, 128}, {1.26, 1.84, 2.49, 3.65}},
    {MOE_ZIPF, 0.25, 32, {8, 32, 72, 144}, {1.01, 1.03, 1.06, 1.12}},
    {MOE_ZIPF, 0.5, 32, {8, 32, 72, 144}, {1.01, 1.04, 1.06, 1.28}},
    {MOE_ZIPF, 1, 32, {8, 32, 72, 144}, {1.06, 1.14, 1.26, 2.24}},
    {MOE_DIRICHLET, 1, 32, {8, 32, 72, 144}, {1.01, 1.03, 1.06, 1.25}},
};

START_TEST(test_table_of_means)
{
    size_t count = draws(150);
    printf("%s %g, %zu copies:", table_rows[_i].kind == MOE_ZIPF ? "zipf" : "dirichlet",
           table_rows[_i].parameter, table_rows[_i].redundant);
    for (int i = 0; i < 4; i++) {
        double mean = mean_of_draws(table_rows[_i].kind, table_rows[_i].parameter,
                                    table_rows[_i].ranks[i], table_rows[_i].redundant, 16384, count)
                          .rank;
        printf(" EP%zu %.3f (%.4g, %+.1f %%)", table_rows[_i].ranks[i], mean,
               table_rows[_i].mean[i], 100 * (mean / table_rows[_i].mean[i] - 1));
        /* Few draws scatter: a single one by a third. */
        ck_assert_double_eq_tol(mean / table_rows[_i].mean[i], 1, 0.03);
    }
    printf("\n");
}
END_TEST

/* E[max] of equal independent counts: n = 2 normals 1/√π σ above the mean; coins; one certain. */
START_TEST(test_expected_max)
{
    double mean[2] = {10000, 10000}, variance[2] = {100, 100};
    ck_assert_double_eq_tol(moe_law_expected_max(mean, variance, 2), 10000 + 10 / 1.7724538509,
                            0.02);
    double coin[2] = {0.5, 0.5}, coin_variance[2] = {0.25, 0.25};
    ck_assert_double_eq_tol(moe_law_expected_max(coin, coin_variance, 2), 0.75, 1e-4);
    double sure[2] = {7, 3}, none[2] = {0, 0};
    ck_assert_double_eq(moe_law_expected_max(sure, none, 2), 7);
}
END_TEST

/* More tokens in a step never cost less, at any number between the grid's points; the busiest never
 * has less than the mean; ratios fall to that of the shares. */
START_TEST(test_law_is_monotone)
{
    for (size_t i = 0; i < sizeof law_cases / sizeof *law_cases; i++) {
        const struct law_case *c = &law_cases[i];
        struct moe_popularity popularity;
        struct moe_popularity_config config =
            popularity_of(c->kind, c->parameter, (size_t)c->experts, 1);
        moe_popularity_init(&popularity, &config);
        struct moe_routing routing = {c->experts, c->top_k, c->groups, c->top_groups};
        struct moe_placement_shape shape = {(size_t)c->experts, c->redundant, c->ranks, 1, 1};
        struct moe_placement placement;
        place(&placement, &shape, moe_popularity_of(&popularity, 0, 0));
        static struct moe_law law;
        law_of(&routing, moe_popularity_of(&popularity, 0, 0), &placement, &law);
        struct moe_busiest last = {0, 0, 0};
        int bad = 0;
        for (int64_t t = 1; t < 70000; t += t < 2000 ? 1 : 37) {
            struct moe_busiest now = moe_law_at(&law, t);
            bad += now.pairs < last.pairs || now.visits < last.visits ||
                   now.distinct < last.distinct || now.pairs < (double)t ||
                   now.visits < (double)t * 0.999 || now.distinct > (double)placement.slots;
            last = now;
        }
        ck_assert_int_eq(bad, 0);
        ck_assert_double_ge(moe_law_factor(&law, 1), moe_law_factor(&law, 64));
        ck_assert_double_ge(moe_law_factor(&law, 64), moe_law_factor(&law, 1 << 20));
        moe_placement_free(&placement);
        moe_popularity_free(&popularity);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moe_load");
    TCase *brute = tcase_create("brute");
    tcase_set_timeout(brute, 120);
    tcase_add_loop_test(brute, test_law_against_brute_force, 0,
                        (int)(sizeof law_cases / sizeof *law_cases));
    suite_add_tcase(suite, brute);
    TCase *drawn = tcase_create("drawn");
    tcase_set_timeout(drawn, 600);
    tcase_add_test(drawn, test_expected_max);
    tcase_add_test(drawn, test_law_is_monotone);
    tcase_add_test(drawn, test_measured_on_r1);
    tcase_add_loop_test(drawn, test_table_of_means, 0,
                        (int)(sizeof table_rows / sizeof *table_rows));
    suite_add_tcase(suite, drawn);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
