/* The roofline's parts against hand calculations, and the table model's interpolation. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/roofline.h"
#include "models/serving.h"
#include "models/step_table.h"
#include "sim/base/time.h"
#include "sim/run/deployment.h"

static struct arena arena;
static struct errors errors;
static struct roofline r;

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

static const struct llm_spec *llm_of(const char *name)
{
    return catalog_llm(name, &arena, &errors, NULL);
}

static const struct gpu_spec *gpu_of(const char *name)
{
    return catalog_gpu(name, &arena, &errors, NULL);
}

/* No overhead, every peak reached. */
static const struct roofline_factors perfect = {1, 1, 1, 0, 0, 0, 0, 0};

static struct roofline_config config_of(const char *model, const char *gpu, struct parallel p)
{
    struct deployment d = {.llm = llm_of(model), .gpu = gpu_of(gpu), .parallel = p};
    struct precision none = {-1, -1, -1};
    d.precision = llm_precision(d.llm, &none);
    struct roofline_config *config = deployment_roofline(&d, &arena);
    config->factors = perfect;
    return *config;
}

START_TEST(test_dense_decode)
{
    struct roofline_config c =
        config_of("llama-3.1-70b", "h200-sxm", (struct parallel){1, 1, 1, 1});
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct step_batch b = {.decodes = 1, .decode_kv = 1000};
    struct roofline_parts p = roofline_parts(&r, &b);
    struct llm_params params = llm_params(c.llm);
    double body = params.attention + params.dense_ffn;
    ck_assert_double_eq_tol(p.weights_s, (body * 1 + params.head * 2) / 4.8e12, 1e-9);
    ck_assert_double_eq_tol(p.attention_s, 1000 * 163840 / 4.8e12, 1e-9);
    ck_assert_double_eq(p.reduce_s + p.exchange_s + p.hop_s + p.overhead_s + p.experts_s, 0);
    /* A large batch is bound by computing. */
    b.decodes = 2000;
    p = roofline_parts(&r, &b);
    ck_assert_double_eq_tol(p.weights_s, 2000 * 2 * (body / 1979e12 + params.head / 989e12), 1e-9);
}
END_TEST

START_TEST(test_experts_touched)
{
    struct roofline_config c = config_of("deepseek-v3", "h200-sxm", (struct parallel){8, 1, 1, 1});
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct llm_params params = llm_params(c.llm);
    struct step_batch b = {.decodes = 1, .decode_kv = 1};
    struct roofline_parts p = roofline_parts(&r, &b);
    ck_assert_double_eq_tol(p.experts_s, 8 * 58 * params.expert / 8 / 4.8e12, 1e-9);
    b.decodes = 32; /* 163 distinct, not 256 */
    p = roofline_parts(&r, &b);
    ck_assert_double_eq_tol(
        p.experts_s, llm_distinct_experts(c.llm, 32) * 58 * params.expert / 8 / 4.8e12, 1e-9);
    ck_assert_double_gt(p.reduce_s, 0);
    ck_assert_double_eq(p.exchange_s, 0);
}
END_TEST

START_TEST(test_pipeline)
{
    struct roofline_config c =
        config_of("llama-3.1-70b", "h100-sxm", (struct parallel){2, 1, 1, 1});
    struct step_batch b = {.decodes = 64, .decode_kv = 64 * 2000};
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct roofline_parts whole = roofline_parts(&r, &b);
    c.parallel.pipeline = 2;
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct roofline_parts staged = roofline_parts(&r, &b);
    /* Two microbatches of half the batch each stream every stage's weights again; the cache is
     * read once in all, half of it on each stage at a time. */
    ck_assert_double_gt(staged.weights_s, whole.weights_s);
    ck_assert_double_eq_tol(staged.attention_s, whole.attention_s / 2, 1e-6);
    ck_assert_double_gt(staged.hop_s, 0);
}
END_TEST

START_TEST(test_attention_copies)
{
    struct roofline_config c = config_of("deepseek-v3", "h200-sxm", (struct parallel){1, 1, 8, 8});
    struct step_batch b = {.decodes = 64, .decode_kv = 64 * 2000};
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    double even = roofline_parts(&r, &b).attention_s;
    ck_assert_double_gt(roofline_parts(&r, &b).exchange_s, 0);
    c.length_cv = 1;
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    double uneven = roofline_parts(&r, &b).attention_s;
    ck_assert_double_eq_tol(uneven / even, 1 + 1.4342 / sqrt(8), 1e-3);
    /* Nine sequences on eight copies: one copy has two. */
    b = (struct step_batch){.decodes = 9, .decode_kv = 9 * 2000};
    c.length_cv = 0;
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    double nine = roofline_parts(&r, &b).attention_s;
    b = (struct step_batch){.decodes = 16, .decode_kv = 16 * 2000};
    ck_assert_double_eq_tol(nine, roofline_parts(&r, &b).attention_s, 1e-9);
}
END_TEST

START_TEST(test_overlap)
{
    struct roofline_config c =
        config_of("deepseek-v3", "h100-sxm", (struct parallel){1, 1, 16, 16});
    struct step_batch b = {.decodes = 1024, .decode_kv = 1024 * 2000};
    double totals[3];
    struct roofline_parts p = {0};
    for (int i = 0; i < 3; i++) {
        c.overlap = i * 0.5;
        ck_assert(roofline_init(&r, &c, &errors, NULL));
        p = roofline_parts(&r, &b);
        totals[i] = p.total_s;
    }
    double computing = totals[0] - p.exchange_s, shorter = fmin(computing, p.exchange_s);
    ck_assert_double_eq_tol(totals[1], totals[0] - 0.5 * shorter, 1e-12);
    ck_assert_double_eq_tol(totals[2], fmax(computing, p.exchange_s), 1e-12);
}
END_TEST

/* An 8,192-token prompt of Llama 70B in FP8 on one H200 took 1,156 ms (TensorRT-LLM). */
START_TEST(test_prefill)
{
    struct roofline_config c =
        config_of("llama-3.1-70b", "h200-sxm", (struct parallel){1, 1, 1, 1});
    c.factors = roofline_default_factors(c.llm);
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct step_batch b = {.prefills = 1,
                           .prefill_tokens = 8192,
                           .prefill_pairs = 8192 * 8193 / 2,
                           .prefill_squares = 8192 * 8192};
    double seconds = roofline_parts(&r, &b).total_s + time_seconds(c.factors.first_token_ps);
    ck_assert_double_eq_tol(seconds, 1.156, 0.15);
}
END_TEST

START_TEST(test_serving_keeps_its_limit)
{
    struct roofline_config c =
        config_of("llama-3.1-70b", "h200-sxm", (struct parallel){2, 1, 1, 1});
    c.factors = roofline_default_factors(c.llm);
    ck_assert(roofline_init(&r, &c, &errors, NULL));
    struct memory_query q = memory_query(c.llm, c.gpu, &c.parallel);
    struct memory_plan plan = memory_plan(&q);
    struct serving_load load = {1, 1500, 400, 8192};
    struct serving_estimate e, tight;
    ck_assert(serving_at_tpot(&r, &plan, &load, 0.05, &e));
    ck_assert(serving_at_tpot(&r, &plan, &load, 0.02, &tight));
    ck_assert_double_le(e.tpot_s, 0.05);
    ck_assert_double_gt(e.tpot_s, 0.045);
    ck_assert_double_lt(tight.output_tokens_per_s, e.output_tokens_per_s);
    ck_assert(!serving_at_tpot(&r, &plan, &load, 0.001, &e));
    load.concurrency = 64;
    e = serving_estimate(&r, &plan, &load);
    ck_assert_double_le(e.running, 64);
    ck_assert_double_eq_tol(e.output_tokens_per_s, e.running / e.tpot_s, 1e-6);
}
END_TEST

/* ---- table ---------------------------------------------------------------------------------- */

struct decode_row {
    int64_t batch, context, step_ps;
};
struct prefill_row {
    int64_t tokens, step_ps;
};
struct table_layout {
    struct field_list decode, prefill;
    bool extrapolate;
};

static void *table_of(struct decode_row *d, size_t decodes, struct prefill_row *p, size_t prefills,
                      bool extrapolate)
{
    const struct step_model_type *type = step_table_variant.ops;
    struct table_layout *t = arena_alloc(&arena, sizeof *t);
    *t = (struct table_layout){{d, decodes}, {p, prefills}, extrapolate};
    return type->build(t, &arena, &errors, NULL);
}

static int64_t table_step(void *model, struct step_batch b)
{
    const struct step_model_type *type = step_table_variant.ops;
    struct step_law law;
    type->law(model, &b, &law);
    return law.base_ps;
}

START_TEST(test_table_between_points)
{
    struct decode_row d[] = {{1, 0, 1000}, {1, 1000, 3000}, {3, 0, 5000}, {3, 1000, 11000}};
    struct prefill_row p[] = {{256, 1000}, {512, 2000}, {1024, 8000}};
    void *model = table_of(d, 4, p, 3, false);
    ck_assert_ptr_nonnull(model);
    ck_assert_int_eq(table_step(model, (struct step_batch){.decodes = 1, .decode_kv = 500}), 2000);
    ck_assert_int_eq(table_step(model, (struct step_batch){.decodes = 3, .decode_kv = 1500}), 8000);
    /* Batch 2 halfway between 1 and 3, at a mean context of 500. */
    ck_assert_int_eq(table_step(model, (struct step_batch){.decodes = 2, .decode_kv = 1000}), 5000);
    struct step_batch prompt = {.prefills = 1, .prefill_tokens = 768};
    ck_assert_int_eq(table_step(model, prompt), 5000);
}
END_TEST

START_TEST(test_table_out_of_order)
{
    struct decode_row d[] = {{3, 0, 1000}, {1, 0, 3000}};
    struct prefill_row p[] = {{512, 1000}, {256, 2000}};
    ck_assert_ptr_null(table_of(d, 2, p, 2, false));
    ck_assert_uint_eq(errors.error_count, 2);
}
END_TEST

START_TEST(test_table_extrapolates_when_told)
{
    struct decode_row d[] = {
        {1, 0, 1000000}, {1, 1000, 3000000}, {8, 0, 2000000}, {8, 1000, 4000000}};
    struct prefill_row p[] = {{1, 1000}, {1001, 2000}};
    void *model = table_of(d, 4, p, 2, true);
    ck_assert_int_eq(table_step(model, (struct step_batch){.decodes = 1, .decode_kv = 2000}),
                     5000000);
    struct step_batch prompt = {.prefills = 1, .prefill_tokens = 2001};
    ck_assert_int_eq(table_step(model, prompt), 3000);
    /* Without the word it stops with a message. */
    model = table_of(d, 4, p, 2, false);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        table_step(model, prompt);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1); /* the input's limit, no fault */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roofline");
    TCase *tcase = tcase_create("step time");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_dense_decode);
    tcase_add_test(tcase, test_experts_touched);
    tcase_add_test(tcase, test_pipeline);
    tcase_add_test(tcase, test_attention_copies);
    tcase_add_test(tcase, test_overlap);
    tcase_add_test(tcase, test_prefill);
    tcase_add_test(tcase, test_serving_keeps_its_limit);
    tcase_add_test(tcase, test_table_between_points);
    tcase_add_test(tcase, test_table_out_of_order);
    tcase_add_test(tcase, test_table_extrapolates_when_told);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
