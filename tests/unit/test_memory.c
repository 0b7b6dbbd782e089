/* Memory by the sharding rules, and layouts that divide or do not. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/memory.h"
#include "models/moe_load.h"
#include "sim/run/catalog.h"

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

static struct memory_query query(const char *model, const char *gpu, struct parallel p)
{
    const struct llm_spec *llm = catalog_llm(model, &arena, &errors, NULL);
    const struct gpu_spec *spec = catalog_gpu(gpu, &arena, &errors, NULL);
    ck_assert(llm && spec);
    return memory_query(llm, spec, &p);
}

START_TEST(test_gqa_cache)
{
    struct memory_query q = query("llama-3.1-70b", "h200-sxm", (struct parallel){1, 1, 1, 1});
    ck_assert_double_eq(memory_plan(&q).kv_per_token, 163840);
    q.parallel.tensor = 8;
    ck_assert_double_eq(memory_plan(&q).kv_per_token, 163840 / 8.0);
    q.parallel.tensor = 16; /* 8 KV heads: repeated, not cut below one head */
    ck_assert_double_eq(memory_plan(&q).kv_per_token, 163840 / 8.0);
    q.parallel = (struct parallel){1, 2, 1, 1};
    ck_assert_double_eq(memory_plan(&q).kv_per_token, 163840 / 2.0);
}
END_TEST

START_TEST(test_mla_cache)
{
    struct memory_query q = query("deepseek-v3", "h200-sxm", (struct parallel){8, 1, 1, 1});
    ck_assert_double_eq(memory_plan(&q).kv_per_token, 70272); /* repeated on all eight */
    struct memory_plan tensor = memory_plan(&q);
    q.parallel = (struct parallel){1, 1, 8, 8};
    struct memory_plan copies = memory_plan(&q);
    ck_assert_double_eq(copies.kv_per_token, 70272);
    /* Attention copies hold different sequences, and a copy of all that is not an expert. */
    ck_assert_double_eq_tol(copies.weight_rest / tensor.weight_rest, 8, 1e-9);
    ck_assert_double_eq_tol(copies.weight_expert, tensor.weight_expert, 1);
    ck_assert_double_eq_tol(copies.weight_expert * 8 / 1e9, 653.9, 0.1);
    ck_assert_double_gt(copies.kv_tokens, tensor.kv_tokens);
}
END_TEST

START_TEST(test_linear_state)
{
    struct memory_query q = query("kimi-k3", "b300", (struct parallel){8, 1, 1, 1});
    struct memory_plan plan = memory_plan(&q);
    ck_assert(plan.fits);
    ck_assert_double_eq(plan.constant, 69 * 3440640.0 / 8);
    ck_assert_double_eq(plan.kv_per_token, 13824);
    double room = plan.kv_pool / (plan.constant + 13824 * 10000.0);
    ck_assert_double_eq(memory_sequences(&plan, &q.parallel, 10000), floor(room));
}
END_TEST

START_TEST(test_redundant_experts)
{
    struct memory_query q = query("deepseek-v3", "h800-sxm", (struct parallel){1, 1, 32, 32});
    double plain = memory_plan(&q).weight_expert;
    q.redundant_experts = 32; /* 9 slots instead of 8 */
    ck_assert_double_eq_tol(memory_plan(&q).weight_expert / plain, 9.0 / 8, 1e-12);
}
END_TEST

START_TEST(test_does_not_fit)
{
    struct memory_query q = query("llama-3.1-405b", "h100-sxm", (struct parallel){4, 1, 1, 1});
    struct memory_plan plan = memory_plan(&q);
    ck_assert(!plan.fits);
    ck_assert_double_eq(plan.kv_tokens, 0);
    ck_assert(!memory_check(&q, &plan, &errors, NULL));
    const char *message = errors.items[0].message;
    ck_assert_ptr_nonnull(strstr(message, "does not fit on 4 x H100 SXM as TP4"));
    ck_assert_ptr_nonnull(strstr(message, "by "));
    ck_assert_ptr_nonnull(strstr(message, "8 GPUs would hold it"));
    q.parallel.tensor = 8;
    ck_assert(memory_plan(&q).fits);
}
END_TEST

START_TEST(test_fp4_on_hopper)
{
    struct memory_query q = query("gpt-oss-120b", "h100-sxm", (struct parallel){1, 1, 1, 1});
    memory_warn_math(q.llm, q.gpu, &q.precision, &errors, NULL);
    ck_assert_uint_eq(errors.warning_count, 1);
    ck_assert_str_eq(errors.items[0].message,
                     "H100 SXM has no fp4 math: mxfp4 weights of 'gpt-oss 120B' save memory and "
                     "bandwidth but are computed at the bf16 rate of 989 TFLOPS");
    ck_assert_int_eq(memory_math(q.gpu, STORAGE_MXFP4), MATH_BF16);
    ck_assert_int_eq(memory_math(q.gpu, STORAGE_FP8), MATH_FP8);
    const struct gpu_spec *b200 = catalog_gpu("b200", &arena, &errors, NULL);
    memory_warn_math(q.llm, b200, &q.precision, &errors, NULL);
    ck_assert_uint_eq(errors.warning_count, 1);
    ck_assert_int_eq(memory_math(b200, STORAGE_MXFP4), MATH_FP4);
    /* The saving is real: 4.25 bits of every expert weight. */
    ck_assert_double_eq_tol(memory_weights(q.llm, &q.precision).total, 65.25e9, 0.1e9);
}
END_TEST

static bool divides(const char *model, struct parallel p, int64_t redundant)
{
    return parallel_check(&p, catalog_llm(model, &arena, &errors, NULL), redundant, &errors, NULL);
}

START_TEST(test_layouts_divide)
{
    ck_assert(divides("llama-3.1-70b", (struct parallel){8, 1, 1, 1}, 0));
    ck_assert(!divides("llama-3.1-70b", (struct parallel){3, 1, 1, 1}, 0));
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, "tensor 3 does not divide 64"));
    ck_assert(!divides("llama-3.1-70b", (struct parallel){8, 1, 8, 1}, 0));
    ck_assert(!divides("llama-3.1-8b", (struct parallel){1, 33, 1, 1}, 0));
    ck_assert(!divides("llama-3.1-8b", (struct parallel){1, 1, 1, 1}, 8)); /* no experts to copy */
    ck_assert(divides("deepseek-v3", (struct parallel){1, 1, 32, 32}, 32));
    ck_assert(!divides("deepseek-v3", (struct parallel){1, 1, 32, 32}, 16)); /* 8.5 slots each */
    ck_assert(!divides("deepseek-v3", (struct parallel){1, 1, 72, 72}, 0));
    ck_assert(divides("deepseek-v3", (struct parallel){1, 1, 72, 72}, 32));
    ck_assert(!divides("deepseek-v3", (struct parallel){4, 1, 3, 2}, 0));
}
END_TEST

START_TEST(test_enumerate)
{
    const struct llm_spec *k3 = catalog_llm("kimi-k3", &arena, &errors, NULL);
    struct parallel_list list = parallel_enumerate(k3, 16, &arena);
    bool wide = false, staged = false;
    for (size_t i = 0; i < list.count; i++) {
        const struct parallel *p = &list.items[i];
        ck_assert_int_eq(parallel_gpus(p), 16);
        ck_assert(parallel_check(p, k3, 0, NULL, NULL));
        wide |= p->expert == 16 && p->pipeline == 1;
        staged |= p->expert == 8 && p->pipeline == 2;
    }
    ck_assert(wide && staged);
    char text[PARALLEL_TEXT_MAX];
    struct parallel p = {1, 2, 8, 8};
    ck_assert_str_eq(parallel_text(&p, text), "TP1 DP8 EP8 PP2");
    ck_assert_int_eq(parallel_stage_layers(&p, 93), 47);
    ck_assert_int_eq(parallel_stage_layers(&p, 92), 46);
}
END_TEST

/* Uniform routing, top-8 of 256: means of simulated draws. */
START_TEST(test_expert_load)
{
    static const struct {
        double ranks, tokens, simulated;
    } rows[] = {{8, 1024, 1.05}, {32, 1024, 1.12}, {64, 1024, 1.21}, {128, 1024, 1.34},
                {8, 64, 1.18},   {32, 64, 1.53},   {64, 64, 1.88},   {128, 64, 2.52}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_double_eq_tol(moe_load_uniform(rows[i].ranks, rows[i].tokens * 8),
                                rows[i].simulated, 0.1 * rows[i].simulated);
    ck_assert_double_eq_tol(moe_load_extreme(8), 1.43, 0.005);
    ck_assert_double_eq_tol(moe_load_extreme(256), 2.82, 0.006);
    ck_assert_double_eq(moe_load_uniform(1, 100), 1);
    ck_assert_double_eq_tol(moe_load_skewed(32, 16384 * 8, 0.45, 256), 1.35, 0.06);
    ck_assert_double_gt(moe_load_attention(8, 32, 1, 1), moe_load_attention(8, 32, 1, 0));
    ck_assert_double_eq(moe_load_attention(8, 32, 0, 0), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("sharding");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_gqa_cache);
    tcase_add_test(tcase, test_mla_cache);
    tcase_add_test(tcase, test_linear_state);
    tcase_add_test(tcase, test_redundant_experts);
    tcase_add_test(tcase, test_does_not_fit);
    tcase_add_test(tcase, test_fp4_on_hopper);
    tcase_add_test(tcase, test_layouts_divide);
    tcase_add_test(tcase, test_enumerate);
    tcase_add_test(tcase, test_expert_load);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
