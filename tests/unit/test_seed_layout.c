/* Kimi K3 on H200s and the cost levers: every number of the worked answers. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/layout.h"
#include "models/levers.h"
#include "models/price.h"
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

static const struct llm_spec *k3(void)
{
    const struct llm_spec *llm = catalog_llm("kimi-k3", &arena, &errors, NULL);
    ck_assert_ptr_nonnull(llm);
    return llm;
}

static const struct gpu_spec *h200(void)
{
    const struct gpu_spec *gpu = catalog_gpu("h200-sxm", &arena, &errors, NULL);
    ck_assert_ptr_nonnull(gpu);
    return gpu;
}

static struct memory_weights k3_weights(void)
{
    struct precision none = {-1, -1, -1};
    struct precision p = llm_precision(k3(), &none);
    return memory_weights(k3(), &p);
}

START_TEST(test_weights)
{
    struct llm_params p = llm_params(k3());
    ck_assert_double_eq(llm_storage_bits(STORAGE_MXFP4), 4.25);
    ck_assert_double_eq(p.expert, 33030144);
    ck_assert_double_eq(p.routed, 2722740830208.0);
    struct memory_weights w = k3_weights();
    ck_assert_double_eq_tol(w.experts / 1e12, 1.446456, 5e-7);
    ck_assert_double_eq_tol(w.experts / 1099511627776.0, 1.3155, 5e-5);
    /* Everything else: the worked answer takes 2.78 T − 2.7227 T = 0.05726 T, 0.11452 TB. */
    ck_assert_double_eq_tol((2.78e12 - p.routed) * 2 / 1e12, 0.11452, 5e-6);
    ck_assert_double_eq_tol(w.rest / 1e12, 0.11452, 0.0012);
    ck_assert_double_eq_tol((w.experts + (2.78e12 - p.routed) * 2) / 1e12, 1.56097, 5e-6);
    /* The published checkpoint, vision tower included: 0.06 % more. */
    ck_assert_double_eq_tol(w.total / k3()->published.checkpoint_bytes, 1, 0.001);
}
END_TEST

START_TEST(test_fits)
{
    double total = k3_weights().total, node = 8 * h200()->hbm_sheet_bytes;
    const struct gpu_spec *b200 = catalog_gpu("b200", &arena, &errors, NULL);
    ck_assert_double_eq(node, 1128e9);
    ck_assert_double_eq(8 * b200->hbm_sheet_bytes, 1440e9);
    ck_assert_double_gt(total, node);
    ck_assert_double_gt(total, 8 * b200->hbm_sheet_bytes);
    ck_assert_double_eq(2 * node, 2256e9);
    ck_assert_double_lt(total, 2 * node);
    ck_assert_double_eq_tol((2 * node - total) / 1e12, 0.695, 0.0015);
    /* By the driver's count of bytes too: 1,206 and 1,538 GB. */
    ck_assert_double_eq_tol(8 * hardware_hbm(h200(), true) / 1e9, 1206, 0.5);
    ck_assert_double_eq_tol(8 * hardware_hbm(b200, true) / 1e9, 1538, 0.5);
    ck_assert_double_gt(total, 8 * hardware_hbm(b200, true));
    /* The planner says so, and by how much. */
    struct parallel one = {1, 1, 8, 8};
    struct memory_query q = memory_query(k3(), h200(), &one);
    struct memory_plan plan = memory_plan(&q);
    ck_assert(!memory_check(&q, &plan, &errors, NULL));
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, "does not fit on 8 x H200 SXM"));
    struct parallel two = {8, 2, 8, 1};
    q = memory_query(k3(), h200(), &two);
    plan = memory_plan(&q);
    ck_assert(plan.fits);
    /* All experts of half the layers and half of the rest: 0.7805 TB a node, 0.3475 left. */
    double stage = (plan.weight_rest + plan.weight_expert) * 8;
    ck_assert_double_eq_tol(stage / 1e12, 0.7805, 0.003);
    ck_assert_double_eq_tol((node - total / 2) / 1e12, 0.3475, 0.001);
}
END_TEST

static struct layout_query prefill(struct parallel parallel)
{
    return (struct layout_query){.llm = k3(),
                                 .gpu = h200(),
                                 .parallel = parallel,
                                 .tokens = 16384,
                                 .flops_per_s = 1979e12 * 0.5,
                                 .dedup = DEDUP_NONE,
                                 .dispatch_element = 1,
                                 .combine_element = 2,
                                 .hidden_element = 2,
                                 .collective_low_s = 50e-6,
                                 .collective_high_s = 100e-6};
}

START_TEST(test_across_nodes)
{
    struct layout_query q = prefill((struct parallel){1, 1, 16, 16});
    struct layout_step s = layout_step(&q);
    ck_assert_double_eq(s.bytes_per_token, 172032);
    ck_assert_double_eq_tol(s.bytes_per_token * 92 / 1e6, 15.827, 0.0005);
    ck_assert_double_eq_tol(s.layer_flops / 1e13, 3.6714, 0.002);
    ck_assert_double_eq_tol(s.compute_s * 1e3, 2.318, 0.0015);
    ck_assert_double_eq(s.tokens_per_gpu, 1024);
    ck_assert_double_eq_tol(s.tokens_per_gpu * s.bytes_per_token / 1e6, 176.2, 0.05);
    ck_assert_double_eq_tol(s.network_bytes / 1e6, 88.1, 0.05);
    ck_assert_double_eq_tol(s.network_s * 1e3, 1.762, 0.0005);
    ck_assert_double_eq_tol(s.link_bytes / 1e6, 77.1, 0.05);
    ck_assert_double_eq_tol(s.link_s * 1e3, 0.17, 0.005);
    ck_assert_double_eq_tol(s.ratio * 100, 76.0, 0.05);
    ck_assert_double_eq(s.collectives, 184);
    ck_assert_double_eq_tol(s.collectives_low_s * 1e3, 9.2, 1e-9);
    ck_assert_double_eq_tol(s.collectives_high_s * 1e3, 18.4, 1e-9);
    /* One copy per remote node: 11 MB, 0.22 ms, 9.5 % of computing. */
    q.dedup = DEDUP_NODE;
    s = layout_step(&q);
    ck_assert_double_eq_tol(s.network_bytes / 1e6, 11, 0.05);
    ck_assert_double_eq_tol(s.network_s * 1e3, 0.22, 0.001);
    ck_assert_double_eq_tol(s.network_s / s.compute_s * 100, 9.5, 0.05);
}
END_TEST

START_TEST(test_stages_on_nodes)
{
    struct layout_query q = prefill((struct parallel){1, 2, 8, 8});
    q.collective_low_s = 15e-6;
    q.collective_high_s = 30e-6;
    struct layout_step s = layout_step(&q);
    ck_assert_double_eq_tol(s.compute_s * 1e3, 4.636, 0.003);
    ck_assert_double_eq(s.tokens_per_gpu, 2048);
    ck_assert_double_eq_tol(s.link_bytes / 1e6, 308.3, 0.05);
    ck_assert_double_eq(s.network_bytes, 0);
    ck_assert_double_eq_tol(s.link_s * 1e3, 0.685, 0.0005);
    ck_assert_double_eq_tol(s.ratio * 100, 14.8, 0.05);
    ck_assert_double_eq_tol(s.boundary_bytes / 1e6, 234.88, 0.005);
    ck_assert_double_eq_tol(s.boundary_s * 1e3, 0.587, 0.0005);
    ck_assert_double_eq(s.collectives, 184);
    ck_assert_double_eq_tol(s.collectives_low_s * 1e3, 2.76, 1e-9);
    ck_assert_double_eq_tol(s.collectives_high_s * 1e3, 5.52, 1e-9);
    /* Decode: 256 tokens over 8 GPUs. */
    q.tokens = 256;
    s = layout_step(&q);
    ck_assert_double_eq(s.tokens_per_gpu, 32);
    ck_assert_double_eq_tol(s.link_bytes / 1e6, 4.817, 0.0005);
    ck_assert_double_eq_tol(s.link_s * 1e6, 10.7, 0.05);
    ck_assert_double_eq_tol(1 / 1.5, 0.667, 0.0005);
}
END_TEST

START_TEST(test_reasons)
{
    struct parallel one = {1, 1, 1, 1};
    struct memory_query q = memory_query(k3(), h200(), &one);
    ck_assert_int_eq(layout_reason(&q, 0, 1), LAYOUT_WEIGHTS);
    q = memory_query(catalog_llm("llama-3.1-70b", &arena, &errors, NULL), h200(), &one);
    ck_assert_int_eq(layout_reason(&q, 200e9, 1), LAYOUT_KV);
    ck_assert_int_eq(layout_reason(&q, 10e9, 0.01), LAYOUT_LATENCY);
    ck_assert_int_eq(layout_reason(&q, 10e9, 0.05), LAYOUT_NONE);
}
END_TEST

START_TEST(test_levers)
{
    double baseline = price_per_mtok(3, 1500);
    ck_assert_double_eq_tol(baseline, 0.5556, 0.00005);
    ck_assert_double_eq_tol(baseline * 0.3, 0.16667, 0.000005);
    ck_assert_double_eq_tol(levers_required(0.7), 3.3333, 0.00005);
    ck_assert_double_eq_tol(levers_product(levers_known, 1), 1.6, 1e-12);
    ck_assert_double_eq_tol(levers_product(levers_known, 2), 2.0, 1e-12);
    double three = levers_product(levers_known, 3);
    ck_assert_double_eq_tol(three, 2.6, 1e-12);
    ck_assert_double_eq_tol(1 / three, 0.3846, 0.00005);
    ck_assert_double_eq_tol((1 / three - 1) * 100, -61.5, 0.05);
    ck_assert_double_eq_tol(levers_routing(0.5, 5), 1.6667, 0.00005);
    ck_assert_double_eq_tol(levers_known[3].gain, levers_routing(0.5, 5), 1e-12);
    double routed = levers_product(levers_known, 4);
    ck_assert_double_eq_tol(routed, 4.3333, 0.00005);
    ck_assert_double_eq_tol(1 / routed, 0.2308, 0.00005);
    ck_assert_double_eq_tol((1 / routed - 1) * 100, -76.9, 0.05);
    ck_assert_double_eq_tol(levers_price(3, 2.2), 1.3636, 0.00005);
    ck_assert_double_eq_tol(levers_known[4].gain, levers_price(3, 2.2), 1e-12);
    double priced = three * levers_known[4].gain;
    ck_assert_double_eq_tol(priced, 3.5455, 0.00005);
    ck_assert_double_eq_tol(1 / priced, 0.2821, 0.00005);
    ck_assert_double_eq_tol((1 / priced - 1) * 100, -71.8, 0.05);
    /* Self-check: $0.60 and a 70 % cut. */
    ck_assert_double_eq_tol(0.60 / levers_required(0.7), 0.18, 1e-12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seed_layout");
    TCase *tcase = tcase_create("kimi k3 and levers");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_weights);
    tcase_add_test(tcase, test_fits);
    tcase_add_test(tcase, test_across_nodes);
    tcase_add_test(tcase, test_stages_on_nodes);
    tcase_add_test(tcase, test_reasons);
    tcase_add_test(tcase, test_levers);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
