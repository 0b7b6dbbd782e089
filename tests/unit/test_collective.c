/* Collectives against measured tables. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/collective.h"
#include "sim/base/time.h"
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

static const struct gpu_spec *gpu_load(const char *name)
{
    const struct gpu_spec *gpu = catalog_gpu(name, &arena, &errors, NULL);
    ck_assert_ptr_nonnull(gpu);
    return gpu;
}

static const struct llm_spec *llm_load(const char *name)
{
    const struct llm_spec *llm = catalog_llm(name, &arena, &errors, NULL);
    ck_assert_ptr_nonnull(llm);
    return llm;
}

static double median(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return values[count / 2];
}

/* BF16 all-reduce in a CUDA graph, µs (ai-dynamo/aiconfigurator, TensorRT-LLM 1.3.0rc20). */
START_TEST(test_all_reduce_table)
{
    static const double bytes[] = {256,     16384,   131072,   524288,
                                   1048576, 4194304, 67108864, 268435456};
    static const struct {
        const char *gpu;
        int64_t ranks;
        double us[8];
    } columns[] = {
        {"h100-sxm", 2, {2.7, 2.8, 3.3, 4.5, 6.1, 17.1, 254, 888}},
        {"h100-sxm", 4, {2.8, 3.3, 4.3, 7.9, 12.9, 25.6, 329, 1192}},
        {"h100-sxm", 8, {3.2, 3.6, 6.2, 10.6, 13.5, 33.3, 323, 1090}},
        {"b200", 2, {4.6, 5.2, 5.1, 5.4, 6.4, 11.9, 155, 534}},
        {"b200", 4, {4.8, 5.5, 5.4, 7.2, 9.7, 26.8, 189, 715}},
        {"b200", 8, {5.0, 5.9, 6.3, 10.9, 15.0, 24.4, 279, 719}},
    };
    double misses[48];
    size_t count = 0;
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        const struct gpu_spec *gpu = gpu_load(columns[c].gpu);
        for (size_t i = 0; i < 8; i++) {
            double s = collective_all_reduce_s(gpu, columns[c].ranks, bytes[i], NULL);
            double miss = fabs(s * 1e6 / columns[c].us[i] - 1);
            ck_assert_msg(miss < 0.20, "%s n=%lld %.0f B: %.1f us, measured %.1f", columns[c].gpu,
                          (long long)columns[c].ranks, bytes[i], s * 1e6, columns[c].us[i]);
            misses[count++] = miss;
        }
    }
    double typical = median(misses, count);
    ck_assert_msg(typical < 0.06, "median miss %.3f", typical);
}
END_TEST

START_TEST(test_all_reduce_algorithms)
{
    const struct gpu_spec *gpu = gpu_load("h100-sxm");
    enum all_reduce algorithm;
    ck_assert_double_eq(collective_all_reduce_s(gpu, 1, 1e9, &algorithm), 0);
    ck_assert_int_eq(algorithm, ALL_REDUCE_NONE);
    collective_all_reduce_s(gpu, 8, 16384, &algorithm);
    ck_assert_int_eq(algorithm, ALL_REDUCE_ONE_SHOT);
    collective_all_reduce_s(gpu, 8, 2e6, &algorithm);
    ck_assert_int_eq(algorithm, ALL_REDUCE_TWO_SHOT);
    double inside = collective_all_reduce_s(gpu, 8, 64e6, NULL);
    double across = collective_all_reduce_s(gpu, 16, 64e6, &algorithm);
    ck_assert_int_eq(algorithm, ALL_REDUCE_HIERARCHICAL);
    /* 8 MB per GPU over a 50 GB/s port, one exchange of halves, two hops of 20 µs */
    ck_assert_double_eq_tol(across - inside, 2 * 20e-6 + 8e6 / 50e9, 1e-12);
    for (double bytes = 1; bytes < 1e9; bytes *= 3)
        ck_assert_double_le(collective_all_reduce_s(gpu, 8, bytes, NULL),
                            collective_all_reduce_s(gpu, 8, 3 * bytes, NULL));
}
END_TEST

/* Each size of 64 tokens and more predicted from the other rows only. */
START_TEST(test_exchange_held_out)
{
    static const char *const gpus[] = {"h100-sxm", "h200-sxm", "b200", "gb200"};
    const struct llm_spec *v3 = llm_load("deepseek-v3");
    double worst = 0;
    size_t tried = 0;
    for (size_t g = 0; g < 4; g++) {
        const struct gpu_spec *gpu = gpu_load(gpus[g]);
        for (size_t i = 0; i < gpu->exchange.count; i++) {
            const struct exchange_point *p = (const struct exchange_point *)gpu->exchange.items + i;
            if (p->tokens < 64)
                continue;
            struct exchange_shape shape = collective_exchange_shape(p->ranks);
            struct exchange x = collective_exchange(gpu, v3, &shape);
            x.table_skip = p->tokens;
            struct exchange_time t = collective_exchange_s(&x, p->tokens);
            double out = t.dispatch_s / time_seconds(p->dispatch_ps) - 1;
            double back = t.combine_s / time_seconds(p->combine_ps) - 1;
            ck_assert_msg(fabs(out) <= 0.10 && fabs(back) <= 0.10,
                          "%s EP%lld %.0f tokens: dispatch %+.1f %%, combine %+.1f %%", gpus[g],
                          (long long)p->ranks, p->tokens, out * 100, back * 100);
            worst = fmax(worst, fmax(fabs(out), fabs(back)));
            tried++;
        }
    }
    ck_assert_uint_eq(tried, 4 + 3 * 3 + 4 + 4 + 4);
    printf("all-to-all, size held out: %zu points, worst %.1f %%\n", tried, worst * 100);
}
END_TEST

START_TEST(test_exchange_v1_lookup)
{
    static const struct {
        int64_t ranks;
        double out, back;
    } rows[] = {{8, 77, 114},   {16, 118, 195},  {32, 155, 273},
                {64, 173, 314}, {128, 192, 369}, {256, 194, 360}};
    const struct gpu_spec *gpu = gpu_load("h800-sxm");
    const struct llm_spec *v3 = llm_load("deepseek-v3");
    for (size_t i = 0; i < 6; i++) {
        struct exchange_shape shape = collective_exchange_shape(rows[i].ranks);
        struct exchange x = collective_exchange(gpu, v3, &shape);
        struct exchange_time t = collective_exchange_s(&x, 128);
        ck_assert_double_eq_tol(t.dispatch_s * 1e6, rows[i].out, 1e-6);
        ck_assert_double_eq_tol(t.combine_s * 1e6, rows[i].back, 1e-6);
    }
}
END_TEST

/* No size is faster than a smaller one, on any GPU, table or not. */
START_TEST(test_exchange_grows)
{
    static const int64_t ranks[] = {2, 8, 16, 32, 64, 72, 128, 256};
    const char *const *gpus = catalog_names(CATALOG_GPU, &arena);
    static const char *const models[] = {"deepseek-v3", "kimi-k2", "gpt-oss-120b", "kimi-k3"};
    for (size_t g = 0; gpus[g]; g++)
        for (size_t i = 0; i < 8 * 4; i++) {
            struct exchange_shape shape = collective_exchange_shape(ranks[i % 8]);
            struct exchange x =
                collective_exchange(gpu_load(gpus[g]), llm_load(models[i / 8]), &shape);
            struct exchange_time before = {0, 0};
            for (double tokens = 1; tokens < 2e5; tokens *= 1.05) {
                struct exchange_time now = collective_exchange_s(&x, tokens);
                ck_assert_msg(now.dispatch_s >= before.dispatch_s - 1e-12 &&
                                  now.combine_s >= before.combine_s - 1e-12,
                              "%s, %s, %lld ranks, %.0f tokens: %g + %g s after %g + %g s", gpus[g],
                              models[i / 8], (long long)ranks[i % 8], tokens, now.dispatch_s,
                              now.combine_s, before.dispatch_s, before.combine_s);
                before = now;
            }
        }
}
END_TEST

START_TEST(test_distinct_groups)
{
    static const struct {
        double experts, k, groups, distinct;
    } rows[] = {{256, 8, 8, 5.30},  {256, 8, 16, 6.52},   {256, 8, 32, 7.27}, {256, 8, 64, 7.68},
                {896, 16, 8, 7.07}, {896, 16, 16, 10.35}, {896, 16, 2, 2.0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_double_eq_tol(
            collective_distinct_groups(rows[i].experts, rows[i].k, rows[i].groups),
            rows[i].distinct, 0.006);
}
END_TEST

/* DeepEP's prefill kernels, 8,192 tokens per GPU, H100 (aiconfigurator): dispatch inside a node is
 * 280 MB at 0.64 of the link; across four nodes the ports carry one copy per remote node. */
START_TEST(test_exchange_prefill)
{
    const struct gpu_spec *gpu = gpu_load("h100-sxm");
    const struct llm_spec *v3 = llm_load("deepseek-v3");
    struct exchange_shape shape = collective_exchange_shape(8);
    struct exchange x = collective_exchange(gpu, v3, &shape);
    ck_assert_double_eq_tol(8192 * 7168 * x.link_copies / 1e6, 280 / 1.03, 2);
    struct exchange_time t = collective_exchange_s(&x, 8192);
    ck_assert_double_eq_tol(t.dispatch_s * 1e6, 972, 97);
    ck_assert_double_eq_tol(t.combine_s * 1e6, 1839, 184);
    shape = collective_exchange_shape(32);
    x = collective_exchange(gpu, v3, &shape);
    t = collective_exchange_s(&x, 8192);
    ck_assert_double_eq_tol(t.dispatch_s * 1e6, 3582, 358);
    ck_assert_double_eq_tol(t.combine_s * 1e6, 7030, 703);
}
END_TEST

START_TEST(test_exchange_bytes)
{
    const struct llm_spec *k3 = llm_load("kimi-k3");
    const struct gpu_spec *gpu = gpu_load("h200-sxm");
    ck_assert_double_eq(collective_moe_bytes(k3, 1, 2), 172032);
    struct exchange_shape shape = collective_exchange_shape(16);
    shape.dedup = DEDUP_NONE;
    shape.dispatch_element = 1;
    struct exchange x = collective_exchange(gpu, k3, &shape);
    struct exchange_bytes b = collective_exchange_bytes(&x, 1024);
    ck_assert_double_eq_tol(b.network / 1e6, 88.08, 0.005);
    ck_assert_double_eq_tol(b.link / 1e6, 77.07, 0.005);
    shape.dedup = DEDUP_NODE; /* two nodes, nearly every token goes to the other one: 11 MB */
    x = collective_exchange(gpu, k3, &shape);
    ck_assert_double_eq_tol(collective_exchange_bytes(&x, 1024).network / 1e6, 11, 0.05);
    /* V3 limits a token to 4 of 8 groups; 8 nodes would otherwise reach 5.3 */
    const struct llm_spec *v3 = llm_load("deepseek-v3");
    shape = collective_exchange_shape(64);
    x = collective_exchange(gpu, v3, &shape);
    ck_assert_double_eq_tol(x.network_copies, 4 * 7 / 8.0, 1e-12);
}
END_TEST

START_TEST(test_crossover)
{
    const struct llm_spec *v3 = llm_load("deepseek-v3");
    struct exchange_shape shape = collective_exchange_shape(8);
    struct exchange x = collective_exchange(gpu_load("h100-sxm"), v3, &shape);
    double bytes = collective_exchange_crossover(&x);
    ck_assert_double_gt(bytes, 64e3);
    ck_assert_double_lt(bytes, 256e6);
    shape.measured = false;
    x = collective_exchange(gpu_load("h100-sxm"), v3, &shape);
    double tokens = bytes / (x.dispatch_bytes * x.link_copies);
    double latency = time_seconds(x.gpu->collectives.dispatch.latency_ps);
    ck_assert_double_eq_tol(collective_exchange_s(&x, tokens).dispatch_s, 2 * latency, 1e-12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collective");
    TCase *tcase = tcase_create("messages");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_all_reduce_table);
    tcase_add_test(tcase, test_all_reduce_algorithms);
    tcase_add_test(tcase, test_exchange_held_out);
    tcase_add_test(tcase, test_exchange_v1_lookup);
    tcase_add_test(tcase, test_exchange_grows);
    tcase_add_test(tcase, test_distinct_groups);
    tcase_add_test(tcase, test_exchange_prefill);
    tcase_add_test(tcase, test_exchange_bytes);
    tcase_add_test(tcase, test_crossover);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
