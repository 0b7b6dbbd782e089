/* law(batch advanced by k) at 0 = law(batch) at k, exactly, for random models, layouts, formats,
 * batches and k; and the law is the sum of the parts. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/memory.h"
#include "models/piece.h"
#include "models/roofline.h"
#include "models/step_table.h"
#include "sim/run/catalog.h"

enum { ROUNDS = 30000, TABLE_ROUNDS = 20000 };

static struct arena arena;
static struct errors errors;

static void setup(void)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    arena_init(&arena);
    errors_init(&errors);
}

static void teardown(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* A batch that an engine could have formed: chunks of prompts on stored prefixes. */
static struct step_batch random_batch(void)
{
    struct step_batch b = {0};
    b.decodes = draw(4) ? (uint32_t)draw(draw(3) ? 300 : 20000) : 0;
    for (uint32_t i = 0; i < b.decodes; i += 1 + b.decodes / 64)
        b.decode_kv += (int64_t)(1 + draw(draw(2) ? 500 : 200000)) *
                       (1 + (i + b.decodes / 64 < b.decodes ? b.decodes / 64 : 0));
    uint32_t prefills = b.decodes && draw(2) ? 0 : 1 + (uint32_t)draw(4);
    for (uint32_t i = 0; i < prefills; i++) {
        int64_t chunk = 1 + (int64_t)draw(draw(2) ? 64 : 8192);
        int64_t stored = draw(2) ? 0 : (int64_t)draw(300000);
        b.prefills++;
        b.prefill_tokens += (uint32_t)chunk;
        b.prefill_kv += stored;
        b.prefill_pairs += chunk * stored + chunk * (chunk + 1) / 2;
        b.prefill_squares += chunk * chunk;
    }
    return b;
}

static void check_identity(const void *model,
                           void (*law)(const void *, const struct step_batch *, struct step_law *),
                           const struct step_batch *b, uint64_t *crossings)
{
    struct step_law here, there;
    law(model, b, &here);
    ck_assert_int_gt(here.base_ps, 0);
    ck_assert_uint_ge(here.valid_n, 1);
    *crossings += here.valid_n != UINT32_MAX;
    uint32_t limit = here.valid_n < 65536 ? here.valid_n : 65536;
    uint32_t ks[4] = {0, limit - 1, (uint32_t)draw(limit), (uint32_t)draw(limit < 8 ? limit : 8)};
    for (int i = 0; i < 4; i++) {
        struct step_batch later = step_batch_advance(*b, ks[i]);
        law(model, &later, &there);
        int64_t expected = here.base_ps + here.slope_ps * (int64_t)ks[i];
        ck_assert_msg(there.base_ps == expected, "k=%u: %lld, not %lld", ks[i],
                      (long long)there.base_ps, (long long)expected);
        ck_assert_int_eq(there.slope_ps, here.slope_ps);
        if (here.valid_n != UINT32_MAX)
            ck_assert_uint_eq(there.valid_n, here.valid_n - ks[i]);
    }
    /* The next piece is a model step too: continuous up to rounding and positive. */
    if (here.valid_n < 65536) {
        struct step_batch later = step_batch_advance(*b, here.valid_n);
        law(model, &later, &there);
        ck_assert_int_gt(there.base_ps, 0);
    }
}

static void roofline_law_of(const void *model, const struct step_batch *b, struct step_law *law)
{
    roofline_law(model, b, law);
}

static const struct roofline_factors fitted = {
    NAN, NAN, NAN, NAN, FIELD_INT_UNSET, FIELD_INT_UNSET, FIELD_INT_UNSET, FIELD_INT_UNSET};

START_TEST(test_roofline_identity)
{
    static const char *const models[] = {"llama-3.1-70b",     "gpt-oss-120b",
                                         "deepseek-v3",       "deepseek-v3.2",
                                         "kimi-k3",           "qwen3.5-397b-a17b",
                                         "deepseek-v4-flash", "gemma-4-31b",
                                         "mimo-v2-flash",     "nemotron-3-super-120b-a12b"};
    static const char *const gpus[] = {"h100-sxm", "b200", "gb200", "h800-sxm", "mi300x"};
    static struct roofline r;
    uint64_t crossings = 0, tried = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 50 == 0) {
            const struct llm_spec *llm = catalog_llm(models[draw(10)], &arena, &errors, NULL);
            struct parallel_list list = parallel_enumerate(llm, INT64_C(1) << draw(6), &arena);
            if (list.count == 0) {
                round += 49;
                continue;
            }
            struct roofline_config c = {
                .llm = llm,
                .gpu = catalog_gpu(gpus[draw(5)], &arena, &errors, NULL),
                .parallel = list.items[draw(list.count)],
                .precision = {(int)draw(STORAGE_COUNT), (int)draw(STORAGE_COUNT), (int)draw(2)},
                .factors = fitted,
                .overlap = draw(2) ? 0 : (double)draw(101) / 100,
                .dedup = (int)draw(DEDUP_COUNT),
                .measured = draw(2),
                .expert_imbalance = 1 + (double)draw(100) / 100,
                .length_cv = (double)draw(3) / 2,
                .random_assignment = draw(2)};
            ck_assert(roofline_init(&r, &c, &errors, NULL));
        }
        struct step_batch b = random_batch();
        check_identity(&r, roofline_law_of, &b, &crossings);
        struct roofline_parts p = roofline_parts(&r, &b);
        struct step_law law;
        roofline_law(&r, &b, &law);
        ck_assert_double_le(fabs(p.total_s * 1e12 - (double)law.base_ps),
                            2 + 2e-4 * (double)law.base_ps);
        tried++;
    }
    printf("roofline: %llu batches, %llu with a piece that ends\n", (unsigned long long)tried,
           (unsigned long long)crossings);
    ck_assert_uint_gt(crossings, tried / 100);
}
END_TEST

/* A sequence more, no shorter than the others, or more prompt tokens. */
static struct step_batch batch_grown(const struct step_batch *b)
{
    struct step_batch more = *b;
    if (draw(2) || b->prefills == 0) {
        int64_t mean = b->decodes ? (b->decode_kv + b->decodes - 1) / b->decodes : 100;
        more.decodes++;
        more.decode_kv += mean;
    } else {
        more.prefill_tokens += 1 + (uint32_t)draw(1000);
    }
    return more;
}

/* Whatever the layout: copies of attention over stages, small and large messages. */
START_TEST(test_more_work_takes_longer)
{
    static const char *const models[] = {"deepseek-v3", "glm-4.5-air", "kimi-k2", "llama-3.1-8b",
                                         "gpt-oss-120b"};
    static const char *const gpus[] = {"h100-sxm", "b200", "gb200", "h800-sxm", "h200-sxm"};
    static struct roofline r;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 50 == 0) {
            const struct llm_spec *llm = catalog_llm(models[draw(5)], &arena, &errors, NULL);
            struct parallel_list list = parallel_enumerate(llm, INT64_C(1) << draw(7), &arena);
            if (list.count == 0) {
                round += 49;
                continue;
            }
            struct roofline_config c = {.llm = llm,
                                        .gpu = catalog_gpu(gpus[draw(5)], &arena, &errors, NULL),
                                        .parallel = list.items[draw(list.count)],
                                        .precision = {STORAGE_FP8, STORAGE_FP8, STORAGE_BF16},
                                        .factors = fitted,
                                        .overlap = draw(2) ? 0 : (double)draw(101) / 100,
                                        .dedup = (int)draw(DEDUP_COUNT),
                                        .measured = true,
                                        .expert_imbalance = 1,
                                        .length_cv = (double)draw(3) / 2,
                                        .random_assignment = draw(2)};
            ck_assert(roofline_init(&r, &c, &errors, NULL));
        }
        struct step_batch b = random_batch(), more = batch_grown(&b);
        struct step_law a, z;
        roofline_law(&r, &b, &a);
        roofline_law(&r, &more, &z);
        /* Coefficients are rounded per batch: a millionth. */
        ck_assert_msg((double)z.base_ps >= (double)a.base_ps * (1 - 1e-6),
                      "%s on %s, TP%lld PP%lld EP%lld DP%lld: %u decodes, %u prompt tokens take "
                      "%lld ps, %u and %u take %lld",
                      r.config.llm->name, r.config.gpu->name, (long long)r.config.parallel.tensor,
                      (long long)r.config.parallel.pipeline, (long long)r.config.parallel.expert,
                      (long long)r.config.parallel.attention_data, b.decodes, b.prefill_tokens,
                      (long long)a.base_ps, more.decodes, more.prefill_tokens,
                      (long long)z.base_ps);
    }
}
END_TEST

/* min and max of random lines against brute force. */
START_TEST(test_pieces)
{
    for (int round = 0; round < 20000; round++) {
        struct piece a = piece_line((int64_t)draw(2000) - 1000, (int64_t)draw(41) - 20);
        struct piece b = piece_line((int64_t)draw(2000) - 1000, (int64_t)draw(41) - 20);
        struct piece low = piece_min(a, b), high = piece_max(a, b);
        for (int64_t i = 0; i < 300; i++) {
            int64_t va = a.base + a.slope * i, vb = b.base + b.slope * i;
            if (i < low.valid)
                ck_assert_int_eq(low.base + low.slope * i, va < vb ? va : vb);
            if (i < high.valid)
                ck_assert_int_eq(high.base + high.slope * i, va > vb ? va : vb);
        }
    }
}
END_TEST

/* ---- table ---------------------------------------------------------------------------------- */

struct decode_row {
    int64_t batch, context, step_ps;
};
struct prefill_row {
    int64_t tokens, step_ps;
};
/* As models/step_table.c describes its config through its field table. */
struct table_layout {
    struct field_list decode, prefill;
    bool extrapolate;
};

static const struct step_model_type *table_type(void)
{
    return step_table_variant.ops;
}

static void table_fill(struct table_layout *t, struct decode_row *d, struct prefill_row *p)
{
    size_t n = 0;
    for (int64_t batch = 1; batch <= 512; batch *= 8)
        for (int64_t context = 0; context <= 64000; context += 16000)
            d[n++] = (struct decode_row){batch, context,
                                         10000000000 + batch * 30000000 + batch * context * 30000 +
                                             (int64_t)draw(1000000000)};
    *t = (struct table_layout){{d, n}, {p, 3}, false};
    p[0] = (struct prefill_row){1, 1000000000};
    p[1] = (struct prefill_row){1024, 40000000000};
    p[2] = (struct prefill_row){8192, 300000000000};
}

START_TEST(test_table_identity)
{
    struct decode_row d[64];
    struct prefill_row p[3];
    struct table_layout t;
    table_fill(&t, d, p);
    ck_assert_uint_eq(step_table_variant.size, sizeof t);
    void *model = table_type()->build(&t, &arena, &errors, NULL);
    ck_assert_ptr_nonnull(model);
    uint64_t crossings = 0;
    for (int round = 0; round < TABLE_ROUNDS; round++) {
        struct step_batch b = {.decodes = 1 + (uint32_t)draw(512)};
        b.decode_kv = (int64_t)draw((uint64_t)b.decodes * 63000);
        if (draw(2)) {
            b.prefills = 1;
            b.prefill_tokens = 1 + (uint32_t)draw(8192);
            b.prefill_squares = (int64_t)b.prefill_tokens * b.prefill_tokens;
        }
        struct step_law here, there;
        table_type()->law(model, &b, &here);
        crossings += here.valid_n != UINT32_MAX;
        uint32_t k = (uint32_t)draw(here.valid_n);
        struct step_batch later = step_batch_advance(b, k);
        table_type()->law(model, &later, &there);
        ck_assert_int_eq(there.base_ps, here.base_ps + here.slope_ps * (int64_t)k);
        ck_assert_int_eq(there.slope_ps, here.slope_ps);
    }
    ck_assert_uint_eq(crossings, TABLE_ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roofline_law");
    TCase *tcase = tcase_create("identity");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_roofline_identity);
    tcase_add_test(tcase, test_more_work_takes_longer);
    tcase_add_test(tcase, test_pieces);
    tcase_add_test(tcase, test_table_identity);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
