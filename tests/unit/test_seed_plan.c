/* A million daily users, closed form: every number of the worked answer, to its printed digits and
 * beyond, from the functions that `fleetsim plan` prints. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/plan.h"
#include "sim/base/detmath.h"
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

/* f(h) = 1 + (P − 1)(cⁿ − mₙ)/(1 − mₙ), c = (1 + cos 2π(h − 20)/24)/2, mₙ = C(2n, n)/4ⁿ, n ≥ 4 the
 * smallest with mₙ ≤ 1/P. */
static bool evening_peak(void *self, double peak, double hourly[PLAN_HOURS])
{
    (void)self;
    double mean = 1;
    int n = 0;
    while (n < 4 || mean > 1 / peak) {
        n++;
        mean *= (2.0 * n - 1) / (2.0 * n);
    }
    for (int h = 0; h < PLAN_HOURS; h++) {
        double c = (1 + detmath_cos_turns((h - 20) / 24.0)) / 2, power = 1;
        for (int i = 0; i < n; i++)
            power *= c;
        hourly[h] = 1 + (peak - 1) * (power - mean) / (1 - mean);
    }
    return true;
}

static struct plan_input capstone(void)
{
    struct plan_input in = plan_input_default();
    in.users = 1e6;
    in.sessions = 3;
    in.requests = 5;
    in.prompt_tokens = 1500;
    in.output_tokens = 400;
    in.peak_factor = 3;
    in.decode_tokens_per_s = 1500;
    in.prefill_tokens_per_s = 15000;
    in.utilization = 0.7;
    in.usd_low = 2;
    in.usd_high = 4;
    const struct llm_spec *llama = catalog_llm("llama-3.1-70b", &arena, &errors, NULL);
    in.kv_bytes_per_token = llm_kv(llama, STORAGE_FP8).per_token;
    in.curve = (struct plan_curve){evening_peak, NULL};
    return in;
}

static struct plan_result estimate(const struct plan_input *in)
{
    struct plan_result r;
    ck_assert(plan_estimate(in, &r));
    return r;
}

START_TEST(test_chain)
{
    struct plan_input in = capstone();
    struct plan_result r = estimate(&in);
    ck_assert_double_eq(r.requests_per_day, 15e6);
    ck_assert_double_eq_tol(r.average_qps, 173.611, 0.0005);
    ck_assert_double_eq_tol(r.peak_qps, 520.833, 0.0005);
    ck_assert_double_eq_tol(r.peak_prefill_tokens_per_s, 781250, 1e-6);
    ck_assert_double_eq_tol(r.peak_decode_tokens_per_s, 208333.3, 0.05);
    ck_assert_double_eq_tol(r.decode_gpus, 138.889, 0.0005);
    ck_assert_double_eq_tol(r.prefill_gpus, 52.083, 0.0005);
    ck_assert_double_eq_tol(r.decode_gpus + r.prefill_gpus, 190.972, 0.0005);
    ck_assert_double_eq_tol(r.gpus_exact, 272.817, 0.0005);
    ck_assert_double_eq(r.gpus_peak, 273);
    ck_assert_double_eq(r.peak_gpu_hours, 6552);
    ck_assert_double_eq(r.ideal_gpu_hours, 2196);
    ck_assert_double_eq_tol(r.peak_gpu_hours / r.ideal_gpu_hours, 2.98, 0.005);
    static const double hours[PLAN_HOURS] = {102, 62,  39,  28,  24,  23,  23,  23,
                                             23,  23,  23,  23,  24,  28,  39,  62,
                                             102, 156, 213, 257, 273, 257, 213, 156};
    for (int h = 0; h < PLAN_HOURS; h++)
        ck_assert_double_eq(r.hourly_gpus[h], hours[h]);
}
END_TEST

START_TEST(test_dollars)
{
    struct plan_input in = capstone();
    struct plan_result r = estimate(&in);
    ck_assert_double_eq(r.usd_day_low, 4392);
    ck_assert_double_eq(r.usd_day_high, 26208);
    ck_assert_double_eq_tol(r.usd_day_high / r.usd_day_low, 5.967, 0.0005);
    ck_assert_double_eq(r.usd_month_low, 131760);
    ck_assert_double_eq(r.usd_month_high, 786240);
    ck_assert_double_eq_tol(r.usd_user_low, 0.1318, 0.00005);
    ck_assert_double_eq_tol(r.usd_user_high, 0.7862, 0.00005);
    ck_assert_double_eq(r.tokens_per_day, 28.5e9);
    ck_assert_double_eq_tol(r.usd_mtok_low, 0.1541, 0.00005);
    ck_assert_double_eq_tol(r.usd_mtok_high, 0.9196, 0.00005);
    /* Input and output pay for their GPU time and add up. */
    double back = r.requests_per_day / 1e6 * (1500 * r.usd_input_low + 400 * r.usd_output_low);
    ck_assert_double_eq_tol(back, r.usd_day_low, 1e-6);
    ck_assert_double_eq_tol(r.usd_output_low / r.usd_input_low, 10, 1e-9);
}
END_TEST

START_TEST(test_little)
{
    struct plan_input in = capstone();
    struct plan_result r = estimate(&in);
    ck_assert_double_eq_tol(r.seconds_in_system, 12.5, 1e-12);
    ck_assert_double_eq_tol(r.streams, 6510.4, 0.05);
    ck_assert_double_eq(in.kv_bytes_per_token, 163840);
    ck_assert_double_eq(r.kv_per_stream / 1048576, 296.875);
    /* The printed "about 1.9 TB" took MiB for MB: it is 2.03 TB, 1.84 TiB. */
    ck_assert_double_eq_tol(r.kv_total / 1e12, 2.027, 0.0005);
    ck_assert_double_eq_tol(r.kv_total / 1099511627776.0, 1.843, 0.0005);
    ck_assert_double_eq_tol(r.kv_per_gpu / 1e9, 7.42, 0.005);
    ck_assert_double_eq_tol(r.kv_per_gpu / 1073741824.0, 6.91, 0.005);
    ck_assert_double_eq_tol(r.streams_per_gpu, 23.85, 0.005);
    ck_assert_double_eq_tol(r.streams_implied, 45.0, 1e-9);
}
END_TEST

START_TEST(test_other_totals)
{
    struct plan_input in = capstone();
    in.users = 2e6;
    ck_assert_double_eq(estimate(&in).ideal_gpu_hours, 4375);
    in = capstone();
    in.output_tokens = 800;
    ck_assert_double_eq(estimate(&in).ideal_gpu_hours, 3781);
    in = capstone();
    in.utilization = 0.85;
    ck_assert_double_eq(estimate(&in).ideal_gpu_hours, 1806);
    in = capstone();
    in.prefill_tokens_per_s = 7000;
    ck_assert_double_eq(estimate(&in).ideal_gpu_hours, 2876);
    ck_assert_double_eq_tol(estimate(&in).gpus_exact, 357.9, 0.05);
    ck_assert_double_eq(estimate(&in).gpus_peak, 358);
    in = capstone();
    in.peak_factor = 2;
    ck_assert_double_eq(estimate(&in).ideal_gpu_hours, 2195);
    in = capstone();
    in.output_tokens = 4000;
    ck_assert_double_eq_tol(estimate(&in).decode_gpus, 1388.9, 0.05);
    ck_assert_double_eq_tol(estimate(&in).gpus_exact, 2058.6, 0.1);
}
END_TEST

START_TEST(test_self_checks)
{
    struct plan_input in = capstone();
    in.users = 2e6;
    in.sessions = 2;
    in.requests = 4;
    in.peak_factor = 4;
    struct plan_result r = estimate(&in);
    ck_assert_double_eq(r.requests_per_day, 16e6);
    ck_assert_double_eq_tol(r.average_qps, 185.185, 0.0005);
    ck_assert_double_eq_tol(r.peak_qps, 740.74, 0.005);
    /* 1,000 robots that each ask twice a second. */
    in = capstone();
    in.users = 1000;
    in.sessions = 1;
    in.requests = 2 * 86400;
    in.peak_factor = 1;
    ck_assert_double_eq_tol(estimate(&in).peak_qps, 2000, 1e-9);
}
END_TEST

START_TEST(test_physics)
{
    struct plan_input in = capstone();
    const struct llm_spec *llama = catalog_llm("llama-3.1-70b", &arena, &errors, NULL);
    const struct gpu_spec *h200 = catalog_gpu("h200-sxm", &arena, &errors, NULL);
    struct precision fp8 = {STORAGE_FP8, STORAGE_FP8, STORAGE_FP8};
    ck_assert_double_eq_tol(plan_prefill_limit(llama, h200, &fp8, 1500), 14039, 3);
    ck_assert_uint_eq(plan_warn_physics(&in, llama, h200, &fp8, 0, &errors, NULL), 1);
    const char *message = errors.items[0].message;
    ck_assert_ptr_nonnull(strstr(message, "15000 prefill tokens/s per GPU"));
    ck_assert_ptr_nonnull(strstr(message, "2.09 PFLOP/s"));
    ck_assert_ptr_nonnull(strstr(message, "1.98 PFLOP/s"));
    /* A 53 % prefix-hit share makes it possible; so does 7,000. */
    ck_assert_uint_eq(plan_warn_physics(&in, llama, h200, &fp8, 0.53, &errors, NULL), 0);
    in.prefill_tokens_per_s = 7000;
    ck_assert_uint_eq(plan_warn_physics(&in, llama, h200, &fp8, 0, &errors, NULL), 0);
    in.decode_tokens_per_s = 15000;
    ck_assert_uint_eq(plan_warn_physics(&in, llama, h200, &fp8, 0, &errors, NULL), 1);
}
END_TEST

START_TEST(test_sensitivity)
{
    struct plan_input in = capstone();
    struct plan_sensitivity s[PLAN_ASSUMPTIONS];
    ck_assert_uint_eq(plan_sensitivity(&in, s), PLAN_ASSUMPTIONS);
    for (size_t i = 1; i < PLAN_ASSUMPTIONS; i++)
        ck_assert_double_ge(s[i - 1].swing, s[i].swing);
    for (size_t i = 0; i < PLAN_ASSUMPTIONS; i++) {
        /* Users in proportion: half or one and a half times the money, up to whole GPUs. */
        if (strcmp(s[i].assumption, "daily active users") == 0)
            ck_assert_double_eq_tol(s[i].swing, 1, 0.02);
        if (strcmp(s[i].assumption, "decode tokens/s per GPU") == 0)
            ck_assert_double_gt(s[i].usd_less, s[i].usd_more);
    }
}
END_TEST

START_TEST(test_break_even)
{
    struct plan_input in = capstone();
    struct price_api api = {.usd_per_mtok_input = 0.2, .usd_per_mtok_output = 0.8};
    struct plan_break_even b;
    ck_assert(plan_against_api(&in, &api, &b));
    /* 15 M requests × (1,500 × 0.2 + 400 × 0.8) / 1e6 */
    ck_assert_double_eq_tol(b.api_usd_day, 9300, 1e-9);
    ck_assert_double_eq(b.self_usd_day_low, 4392);
    /* Work of a day: 190.972 / 3 GPUs × 24 h at $2. */
    ck_assert_double_eq_tol(b.utilization_low, 190.972222 / 3 * 24 * 2 / 9300, 1e-6);
    ck_assert_double_eq_tol(b.utilization_high, 2 * b.utilization_low, 1e-12);
    /* Cheap and following the curve it pays from a small volume; provisioned for the peak at $4 it
     * never does: $26,208 against $9,300 in proportion. */
    ck_assert_double_lt(b.requests_low, 1e6);
    ck_assert_double_gt(b.requests_low, 1e4);
    ck_assert(isnan(b.requests_high));
    /* At the break-even volume both cost the same, one GPU always on. */
    api.usd_per_mtok_input = api.usd_per_mtok_output = 1000;
    ck_assert(plan_against_api(&in, &api, &b));
    ck_assert_double_eq_tol(b.requests_low * 1900 / 1e6 * 1000, 24 * 2, 1e-3);
    ck_assert_double_eq_tol(b.requests_high * 1900 / 1e6 * 1000, 24 * 4, 1e-3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seed_plan");
    TCase *tcase = tcase_create("million users");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_chain);
    tcase_add_test(tcase, test_dollars);
    tcase_add_test(tcase, test_little);
    tcase_add_test(tcase, test_other_totals);
    tcase_add_test(tcase, test_self_checks);
    tcase_add_test(tcase, test_physics);
    tcase_add_test(tcase, test_sensitivity);
    tcase_add_test(tcase, test_break_even);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
