/* Parameters, KV bytes and constant state of every catalogued model against the published or
 * recomputed figures. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const struct llm_spec *load(const char *name)
{
    const struct llm_spec *llm = catalog_llm(name, &arena, &errors, NULL);
    if (!llm)
        errors_print(&errors, stderr);
    ck_assert_ptr_nonnull(llm);
    return llm;
}

/* Billions, to the digits given: half a unit of the last one is allowed. */
struct param_row {
    const char *model;
    double total, total_half, active, active_half;
};
static const struct param_row param_rows[] = {
    {"llama-3.1-8b", 8.03, .005, 7.50, .006},
    {"llama-3.1-70b", 70.55, .005, 69.5, .05},
    {"llama-3.3-70b", 70.55, .005, 69.5, .05},
    {"llama-3.1-405b", 405.85, .005, 403.7, .06},
    {"mixtral-8x7b", 46.70, .005, 12.75, .005},
    {"mixtral-8x22b", 140.62, .005, 38.96, .006},
    {"qwen3-8b", 8.19, .005, 7.57, .005},
    {"qwen3-32b", 32.76, .005, 31.98, .005},
    {"qwen3-30b-a3b", 30.53, .005, 3.04, .005},
    {"qwen3-235b-a22b", 235.09, .005, 21.57, .005},
    {"qwen3-coder-480b-a35b", 480.15, .005, 34.54, .005},
    {"deepseek-v3", 671.03, .005, 36.63, .006},
    {"deepseek-r1", 671.03, .005, 36.63, .006},
    {"deepseek-v3.2", 671.88, .005, 37.48, .006},
    {"kimi-k2", 1026.4, .05, 31.69, .006},
    {"kimi-k2.5", 1026.4, .05, 31.69, .006},
    {"kimi-k3", 2779.5, .05, 104.18, .006},
    {"glm-4.5", 352.8, .06, 32.85, .4},
    {"glm-4.5-air", 106.85, .4, 12.80, .4},
    {"glm-5", 743.9, .6, 40.8, .6},
    {"gpt-oss-20b", 20.91, .006, 3.61, .005},
    {"gpt-oss-120b", 116.79, .05, 5.13, .01},
    {"minimax-m2", 228.7, .05, 10.42, .05},
    {"minimax-m3", 425.9, .06, 24.5, .06},
    {"qwen3.5-397b-a17b", 396.3, .06, 16.3, .06},
    {"qwen3.5-122b-a10b", 122.1, .06, 9.0, .06},
    {"qwen3.5-35b-a3b", 34.7, .06, 2.9, .06},
    {"hy3", 295.0, .06, 20.2, .06},
    {"inkling", 961, .6, 39.4, .06},
    /* Without the MTP layer, whose 384 experts are the rest of the published 1.6 T. */
    {"deepseek-v4-pro", 1573, 1, 49.0, .1},
    {"deepseek-v4-flash", 284.3, .6, 13.2, .2},
    {"mimo-v2-flash", 309, 1, 15, .7},
    /* "17B" counts the input embedding, 1.03 B, too. */
    {"llama-4-maverick", 400, 2, 16.15, .01},
    /* Published totals; the shared expert at full width (docs/models.md). */
    {"nemotron-3-super-120b-a12b", 120, 1, 12, .5},
    {"nemotron-3-ultra-550b-a55b", 550, 1, 55, .5},
    {"gemma-4-31b", 31.3, .06, 30.7, .06},
};

START_TEST(test_parameters)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof param_rows / sizeof *param_rows; i++) {
        const struct param_row *row = &param_rows[i];
        struct llm_params p = llm_params(load(row->model));
        if (fabs(p.total / 1e9 - row->total) > row->total_half ||
            fabs(p.active / 1e9 - row->active) > row->active_half) {
            fprintf(stderr, "%s: total %.3f (%.3f) active %.3f (%.3f)\n", row->model, p.total / 1e9,
                    row->total, p.active / 1e9, row->active);
            ok = false;
        }
    }
    ck_assert(ok);
}
END_TEST

START_TEST(test_kimi_k3_parts)
{
    struct llm_params p = llm_params(load("kimi-k3"));
    ck_assert_double_eq(p.expert, 33030144);
    ck_assert_double_eq(p.routed, 2722740830208.0);
    ck_assert_double_eq_tol(p.total / 1e9, 2779.5, 0.05);
    ck_assert_double_eq_tol(p.active / 1e9, 104.18, 0.006);
    ck_assert_double_eq_tol(p.active - 92 * 16 * p.expert, 55.6e9, 0.06e9);
}
END_TEST

struct kv_row {
    const char *model;
    enum storage kv;
    double per_token, indexer, constant, constant_tol;
};
static const struct kv_row kv_rows[] = {
    {"llama-3.1-8b", STORAGE_BF16, 131072, 0, 0, 0},
    {"llama-3.1-8b", STORAGE_FP8, 65536, 0, 0, 0},
    {"llama-3.1-70b", STORAGE_BF16, 327680, 0, 0, 0},
    {"llama-3.1-70b", STORAGE_FP8, 163840, 0, 0, 0},
    {"llama-3.1-405b", STORAGE_BF16, 516096, 0, 0, 0},
    {"llama-3.1-405b", STORAGE_FP8, 258048, 0, 0, 0},
    {"mixtral-8x7b", STORAGE_BF16, 131072, 0, 0, 0},
    {"qwen3-8b", STORAGE_BF16, 147456, 0, 0, 0},
    {"qwen3-32b", STORAGE_BF16, 262144, 0, 0, 0},
    {"qwen3-30b-a3b", STORAGE_BF16, 98304, 0, 0, 0},
    {"qwen3-235b-a22b", STORAGE_BF16, 192512, 0, 0, 0},
    {"qwen3-coder-480b-a35b", STORAGE_BF16, 253952, 0, 0, 0},
    {"deepseek-v3", STORAGE_BF16, 70272, 0, 0, 0},
    {"deepseek-v3", STORAGE_FP8, 35136, 0, 0, 0},
    {"kimi-k2", STORAGE_FP8, 35136, 0, 0, 0},
    {"deepseek-v3.2", STORAGE_BF16, 70272, 8052, 0, 0},
    {"deepseek-v3.2", STORAGE_FP8, 61 * 656, 8052, 0, 0},
    {"kimi-k3", STORAGE_BF16, 27648, 0, 69 * 3440640.0, 0},
    {"kimi-k3", STORAGE_FP8, 13824, 0, 69 * 3440640.0, 0},
    {"glm-4.6", STORAGE_BF16, 376832, 0, 0, 0},
    {"glm-4.5-air", STORAGE_BF16, 188416, 0, 0, 0},
    {"glm-5.2", STORAGE_BF16, 89856, 21 * 132, 0, 0},
    {"glm-5.2", STORAGE_FP8, 44928, 21 * 132, 0, 0},
    {"gpt-oss-20b", STORAGE_BF16, 24576, 0, 3.15e6, 5e3},
    {"gpt-oss-120b", STORAGE_BF16, 36864, 0, 4.72e6, 5e3},
    {"minimax-m2", STORAGE_BF16, 253952, 0, 0, 0},
    {"minimax-m3", STORAGE_BF16, 122880, 0, 0, 0},
    {"qwen3.5-397b-a17b", STORAGE_BF16, 30720, 0, 98.8e6, 5e4},
    {"qwen3.5-122b-a10b", STORAGE_BF16, 24576, 0, 79.0e6, 5e4},
    {"qwen3.5-35b-a3b", STORAGE_BF16, 20480, 0, 33.4e6, 5e4},
    {"mimo-v2-flash", STORAGE_BF16, 23040, 0, 25.6e6, 5e4},
    {"mimo-v2-flash", STORAGE_FP8, 11520, 0, 12.8e6, 5e4},
    {"step-3.7-flash", STORAGE_FP8, 24576, 0, 34.6e6, 5e4}, /* BF16: twice that */
    {"nemotron-3-super-120b-a12b", STORAGE_BF16, 8192, 0, 174e6, 5e5},
    {"nemotron-3-ultra-550b-a55b", STORAGE_BF16, 12288, 0, 417e6, 5e5},
    /* 30·576/4 + 31·576/128 of cache and 30·128/4 of indexer = 5,420 B */
    {"deepseek-v4-pro", STORAGE_FP8, 30 * 576 / 4.0 + 31 * 576 / 128.0, 960, 4.5e6, 5e4},
};

START_TEST(test_kv_bytes)
{
    for (size_t i = 0; i < sizeof kv_rows / sizeof *kv_rows; i++) {
        const struct kv_row *row = &kv_rows[i];
        struct llm_kv kv = llm_kv(load(row->model), row->kv);
        ck_assert_msg(fabs(kv.per_token - row->per_token) < 1e-6, "%s: %f B/token, not %f",
                      row->model, kv.per_token, row->per_token);
        ck_assert_msg(kv.indexer_per_token == row->indexer, "%s: indexer %f B/token", row->model,
                      kv.indexer_per_token);
        ck_assert_msg(fabs(kv.window + kv.state - row->constant) <= row->constant_tol,
                      "%s: constant %f B, not %f", row->model, kv.window + kv.state, row->constant);
    }
}
END_TEST

START_TEST(test_windows_fill_up)
{
    const struct llm_spec *llm = load("gpt-oss-20b");
    double half = 24576;
    ck_assert_double_eq(llm_kv_bytes(llm, STORAGE_BF16, 100), 100 * 2 * half);
    ck_assert_double_eq(llm_kv_bytes(llm, STORAGE_BF16, 128), 128 * 2 * half);
    ck_assert_double_eq(llm_kv_bytes(llm, STORAGE_BF16, 1128), 1128 * half + 128 * half);
}
END_TEST

START_TEST(test_storage_bits)
{
    ck_assert_double_eq(llm_storage_bits(STORAGE_MXFP4), 4.25);
    ck_assert_double_eq(llm_storage_bits(STORAGE_NVFP4), 4.5);
    ck_assert_double_eq(llm_storage_bits(STORAGE_INT4), 4.5);
    ck_assert_double_eq(llm_storage_bits(STORAGE_INT4_G128), 4.125);
    ck_assert_double_eq(llm_storage_bits(STORAGE_BF16), 16);
}
END_TEST

START_TEST(test_flops)
{
    const struct llm_spec *v3 = load("deepseek-v3");
    /* 4,096-token prompts: 2 · 36.6e9 + 10.2e9 = 83.4 GFLOP/token */
    double attention = llm_attention_prefill_flops(v3, 4096, 0) / 4096;
    ck_assert_double_eq_tol(attention / 1e9, 10.2, 0.05);
    ck_assert_double_eq_tol((2 * llm_params(v3).active + attention) / 1e9, 83.4, 0.1);
    const struct llm_spec *llama = load("llama-3.1-70b");
    ck_assert_double_eq(llm_attention_decode_flops(llama, 1000), 4.0 * 80 * 64 * 128 * 1000);
    ck_assert_double_eq(llm_attention_prefill_flops(llama, 1000, 500),
                        4.0 * 80 * 64 * 128 * (1000 * 500 + 1000 * 1000 / 2.0));
}
END_TEST

START_TEST(test_distinct_experts)
{
    static const struct {
        const char *model;
        double tokens, distinct;
    } rows[] = {{"kimi-k3", 1, 16},       {"kimi-k3", 8, 120},      {"kimi-k3", 32, 393},
                {"kimi-k3", 64, 613},     {"kimi-k3", 128, 807},    {"kimi-k3", 256, 887},
                {"deepseek-v3", 8, 57},   {"deepseek-v3", 32, 163}, {"deepseek-v3", 64, 222},
                {"deepseek-v3", 128, 252}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_double_eq_tol(llm_distinct_experts(load(rows[i].model), rows[i].tokens),
                                rows[i].distinct, 0.5);
    ck_assert_double_eq(llm_distinct_experts(load("kimi-k3"), 1e12), 896);
    ck_assert_double_eq(llm_distinct_experts(load("llama-3.1-8b"), 100), 0);
}
END_TEST

START_TEST(test_usual_precision)
{
    const struct llm_spec *k3 = load("kimi-k3");
    struct precision none = {-1, -1, -1}, fp8 = {STORAGE_FP8, -1, -1};
    struct precision usual = llm_precision(k3, &none), chosen = llm_precision(k3, &fp8);
    ck_assert_int_eq(usual.experts, STORAGE_MXFP4);
    ck_assert_int_eq(usual.weights, STORAGE_BF16);
    ck_assert_int_eq(chosen.experts, STORAGE_FP8);
    ck_assert_int_eq(chosen.weights, STORAGE_FP8);
    ck_assert_int_eq(chosen.kv, STORAGE_FP8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("llm");
    TCase *tcase = tcase_create("shapes");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_parameters);
    tcase_add_test(tcase, test_kimi_k3_parts);
    tcase_add_test(tcase, test_kv_bytes);
    tcase_add_test(tcase, test_windows_fill_up);
    tcase_add_test(tcase, test_storage_bits);
    tcase_add_test(tcase, test_flops);
    tcase_add_test(tcase, test_distinct_experts);
    tcase_add_test(tcase, test_usual_precision);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
