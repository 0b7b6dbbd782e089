/* What expert load costs a step: only in MoE layers, only what is work; the integer law; memory of
 * redundant copies; a run with drifting experts in both modes. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "models/memory.h"
#include "models/moe_experts.h"
#include "models/moe_load.h"
#include "models/roofline.h"
#include "sim/run/catalog.h"
#include "sim/run/expert_run.h"
#include "sim/run/run_internal.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

static struct arena arena;
static struct errors errors;

static void begin(void)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    arena_init(&arena);
    errors_init(&errors);
}

static void end(void)
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

/* A roofline config with the table's defaults. */
static struct roofline_config config_of(const char *model, const char *gpu,
                                        struct parallel parallel)
{
    struct precision usual = {-1, -1, -1};
    struct roofline_config c;
    field_defaults(roofline_fields, &c, &arena);
    c.llm = catalog_llm(model, &arena, &errors, NULL);
    c.gpu = catalog_gpu(gpu, &arena, &errors, NULL);
    ck_assert(c.llm != NULL && c.gpu != NULL);
    c.parallel = parallel;
    c.precision = llm_precision(c.llm, &usual);
    c.law = NULL;
    return c;
}

struct one_parameter {
    double value;
};

static void set_popularity(struct moe_config *user, enum moe_popularity_kind kind, double value)
{
    field_variant_init(moe_popularity_variants[kind], &user->popularity, &arena);
    if (kind >= MOE_LOGNORMAL && kind <= MOE_DIRICHLET) {
        ((struct one_parameter *)user->popularity.config)->value = value;
    }
}

static struct moe_experts *experts_of(struct roofline_config *c)
{
    double share = 1;
    struct moe_experts_config config = {.user = &c->experts,
                                        .llm = c->llm,
                                        .gpu = c->gpu,
                                        .parallel = c->parallel,
                                        .redundant = c->redundant_experts,
                                        .expert_bytes = llm_params(c->llm).expert,
                                        .max_tokens = 1 << 17,
                                        .classes = 1,
                                        .seed = 1};
    struct moe_experts *x = moe_experts_create(&config, &share, &errors, NULL);
    c->law = x != NULL ? &x->law : NULL;
    return x;
}

static struct step_batch random_batch(void)
{
    struct step_batch b = {0};
    b.decodes = draw(4) ? (uint32_t)draw(draw(3) ? 300 : 20000) : 0;
    b.decode_kv = (int64_t)b.decodes * (int64_t)(1 + draw(100000));
    b.prefills = b.decodes && draw(2) ? 0 : 1 + (uint32_t)draw(4);
    for (uint32_t i = 0; i < b.prefills; i++) {
        int64_t chunk = 1 + (int64_t)draw(draw(2) ? 64 : 8192);
        int64_t stored = draw(2) ? 0 : (int64_t)draw(300000);
        b.prefill_tokens += (uint32_t)chunk;
        b.prefill_kv += stored;
        b.prefill_pairs += chunk * stored + chunk * (chunk + 1) / 2;
        b.prefill_squares += chunk * chunk;
    }
    return b;
}

/* law(batch advanced by k) at 0 = law(batch) at k with a popularity on. */
START_TEST(test_law_identity)
{
    static const char *const models[] = {"deepseek-v3", "kimi-k3", "gpt-oss-120b",
                                         "qwen3-235b-a22b"};
    static struct roofline r;
    begin();
    struct moe_experts *x = NULL;
    uint64_t tried = 0, slower = 0;
    for (int round = 0; round < 4000; round++) {
        if (round % 200 == 0) {
            struct roofline_config c =
                config_of(models[draw(4)], "h200-sxm", (struct parallel){1, 1, 1, 1});
            struct parallel_list list = parallel_enumerate(c.llm, INT64_C(8) << draw(3), &arena);
            moe_experts_free(x);
            c.parallel = list.items[draw(list.count)];
            c.overlap = draw(2) ? 0 : 0.2;
            c.dedup = (int)draw(DEDUP_COUNT);
            c.experts.layer_groups = 1 + (int64_t)draw(4);
            set_popularity(&c.experts, (enum moe_popularity_kind)(1 + draw(4)), 0.5 + draw(2));
            x = experts_of(&c);
            ck_assert(x != NULL && roofline_init(&r, &c, &errors, NULL));
        }
        struct step_batch b = random_batch();
        struct step_law here, there;
        roofline_law(&r, &b, &here);
        uint32_t limit = here.valid_n < 65536 ? here.valid_n : 65536;
        uint32_t k = (uint32_t)draw(limit);
        struct step_batch later = step_batch_advance(b, k);
        roofline_law(&r, &later, &there);
        ck_assert_int_eq(there.base_ps, here.base_ps + here.slope_ps * (int64_t)k);
        ck_assert_int_eq(there.slope_ps, here.slope_ps);
        const struct moe_law *law = r.config.law;
        r.config.law = NULL;
        struct step_law balanced;
        roofline_law(&r, &b, &balanced);
        r.config.law = law;
        slower += here.base_ps > balanced.base_ps;
        tried++;
    }
    ck_assert_uint_gt(slower, tried / 3);
    moe_experts_free(x);
    end();
}
END_TEST

/* Llama-4-Maverick: 24 dense and 24 MoE layers. Skew changes the experts' part alone, by the work
 * of 24 layers times the excess of the busiest. */
START_TEST(test_moe_layers_alone_pay)
{
    static struct roofline r;
    begin();
    struct roofline_config c =
        config_of("llama-4-maverick", "h200-sxm", (struct parallel){8, 1, 8, 1});
    set_popularity(&c.experts, MOE_LOGNORMAL, 0.5);
    struct moe_experts *x = experts_of(&c);
    ck_assert(x != NULL && roofline_init(&r, &c, &errors, NULL));
    /* 16 chunks of 8,192 tokens: compute-bound. */
    struct step_batch b = {.prefills = 16,
                           .prefill_tokens = 131072,
                           .prefill_pairs = INT64_C(131072) * 4096,
                           .prefill_squares = INT64_C(131072) * 8192};
    struct roofline_parts skewed = roofline_parts(&r, &b);
    r.config.law = NULL;
    struct roofline_parts balanced = roofline_parts(&r, &b);
    ck_assert_double_eq(skewed.weights_s, balanced.weights_s);
    ck_assert_double_eq(skewed.attention_s, balanced.attention_s);
    ck_assert_double_eq(skewed.overhead_s, balanced.overhead_s);
    ck_assert_double_eq(skewed.reduce_s, balanced.reduce_s);
    struct llm_params p = llm_params(c.llm);
    double peak = c.gpu->peak_flops[memory_math(c.gpu, (enum storage)c.precision.experts)];
    double layer_s = 2 * p.expert * 131072 / 8 / (r.config.factors.compute * peak); /* top-1 */
    double factor = moe_law_factor(&x->law, 131072);
    ck_assert_double_gt(factor, 1.1);
    ck_assert_double_eq_tol((skewed.experts_s - balanced.experts_s) / (24 * layer_s * (factor - 1)),
                            1, 1e-6);
    moe_experts_free(x);
    end();
}
END_TEST

/* Two GPUs with loads 100 and 200 in every layer: mean/max is 0.75. */
START_TEST(test_balance_of_100_and_200)
{
    begin();
    struct roofline_config c =
        config_of("llama-4-maverick", "h200-sxm", (struct parallel){8, 1, 2, 1});
    field_variant_init(moe_popularity_variants[MOE_TABLE], &c.experts.popularity, &arena);
    double values[128];
    for (int e = 0; e < 128; e++) {
        values[e] = e < 64 ? 100 : 200;
    }
    struct field_list *list = c.experts.popularity.config;
    *list = (struct field_list){values, 128};
    struct moe_experts *x = experts_of(&c);
    ck_assert(x != NULL);
    for (size_t g = 0; g < x->group_count; g++) {
        ck_assert_double_eq_tol(1 / moe_experts_skew(x, g), 0.75, 1e-3);
    }
    moe_experts_free(x);
    /* 127 values for 128 experts. */
    list->count = 127;
    ck_assert_ptr_null(experts_of(&c));
    ck_assert_uint_eq(errors.error_count, 1);
    end();
}
END_TEST

/* Few tokens: weights are streamed, so what counts is how many experts the busiest GPU touches, not
 * how many tokens it gets; and a skewed popularity touches fewer in all. */
START_TEST(test_streaming_counts_distinct_experts)
{
    static struct roofline r;
    begin();
    struct roofline_config c = config_of("deepseek-v3", "h200-sxm", (struct parallel){8, 1, 8, 1});
    c.factors.expert_rows = 0;
    c.experts.layer_groups = 58;
    set_popularity(&c.experts, MOE_LOGNORMAL, 1.15);
    struct moe_experts *x = experts_of(&c);
    ck_assert(x != NULL && roofline_init(&r, &c, &errors, NULL));
    struct step_batch b = {.decodes = 16, .decode_kv = 16 * 1000};
    struct roofline_parts skewed = roofline_parts(&r, &b);
    r.config.law = NULL;
    struct roofline_parts balanced = roofline_parts(&r, &b);
    double tokens = moe_law_factor(&x->law, 16), cost = skewed.experts_s / balanced.experts_s;
    printf("16 tokens on 8 GPUs: busiest has %.2f times the tokens and costs %.2f times as much\n",
           tokens, cost);
    ck_assert_double_gt(tokens, 1.5);
    ck_assert_double_lt(cost, 1.35);
    moe_experts_free(x);
    end();
}
END_TEST

/* Every redundant copy takes its weights from the KV pool: 32 copies on 32 GPUs are one slot each.
 * 256 + 16 slots on 32 GPUs are refused. */
START_TEST(test_copies_take_memory)
{
    begin();
    struct roofline_config c =
        config_of("deepseek-v3", "h200-sxm", (struct parallel){1, 1, 32, 32});
    struct memory_query q = memory_query(c.llm, c.gpu, &c.parallel);
    struct memory_plan plain = memory_plan(&q);
    q.redundant_experts = 32;
    struct memory_plan copies = memory_plan(&q);
    double slot = llm_params(c.llm).expert * 58; /* bytes in FP8, all MoE layers */
    ck_assert_double_eq_tol((plain.kv_pool - copies.kv_pool) / slot, 1, 1e-9);
    ck_assert(parallel_check(&c.parallel, c.llm, 32, &errors, NULL));
    ck_assert(!parallel_check(&c.parallel, c.llm, 16, &errors, NULL));
    c.redundant_experts = 16;
    set_popularity(&c.experts, MOE_UNIFORM, 0);
    ck_assert_ptr_null(experts_of(&c));
    ck_assert_ptr_nonnull(strstr(errors.items[errors.count - 1].message, "8.5 each"));
    end();
}
END_TEST

/* The state of R1 on 32 GPUs, all 58 layers apart: built in much less than a second, and an epoch
 * with drift and rebalancing too. Reading it costs nothing beside a law. */
START_TEST(test_build_time)
{
    begin();
    struct roofline_config c =
        config_of("deepseek-r1", "h200-sxm", (struct parallel){1, 1, 32, 32});
    c.experts.layer_groups = 58;
    c.experts.placement = MOE_PLACEMENT_EPLB;
    c.experts.drift_ps = PS_PER_HOUR;
    c.redundant_experts = 32;
    set_popularity(&c.experts, MOE_LOGNORMAL, 1.15);
    double share = 1;
    clock_t before = clock();
    struct moe_experts *x = experts_of(&c);
    clock_t made = clock();
    double first_s = moe_experts_advance(x, &share, true); /* measured as placed: nothing moves */
    clock_t advanced = clock();
    double stall_s = moe_experts_advance(x, &share, true);
    ck_assert_double_eq(first_s, 0);
    printf("58 layers: made in %.3f s, an epoch in %.3f s (stall %.2f s)\n",
           (double)(made - before) / CLOCKS_PER_SEC, (double)(advanced - made) / CLOCKS_PER_SEC,
           stall_s);
    ck_assert_double_lt((double)(made - before) / CLOCKS_PER_SEC, 10); /* sanitizers are slow */
    ck_assert_double_gt(stall_s, 0);
    double sum = 0;
    before = clock();
    for (int64_t i = 0; i < 10000000; i++) {
        sum += moe_law_at(&x->law, 1 + i % 20000).pairs;
    }
    printf("one reading: %.1f ns (%g)\n", (double)(clock() - before) / CLOCKS_PER_SEC * 100,
           sum > 0 ? 1.0 : 0.0);
    moe_experts_free(x);
    end();
}
END_TEST

/* ---- runs ----------------------------------------------------------------------------------- */

/* Drift every 20 s, rebalancing every 40 s with its stall, two classes apart, stages, mixed
 * batches, a replica that starts and one that drains. */
static const char drifting[] =
    "name: drifting\n"
    "seed: 4\n"
    "horizon: 300 s\n"
    "output: {trace_interval: 50 s, gauge_interval: 7 s}\n"
    "workload:\n"
    "  - name: chat\n"
    "    arrivals: {process: poisson, rate: 12 /s}\n"
    "    prompt_tokens: {dist: lognormal, mean: 400, sigma: 0.8, max: 3000}\n"
    "    output_tokens: {dist: geometric, mean: 60}\n"
    "  - name: code\n"
    "    arrivals: {process: poisson, rate: 4 /s}\n"
    "    prompt_tokens: {dist: exponential, mean: 900}\n"
    "    output_tokens: {dist: constant, value: 20}\n"
    "fleet:\n"
    "  pools:\n"
    "    - name: main\n"
    "      model: gpt-oss-120b\n"
    "      gpu: h200-sxm\n"
    "      parallel: {tensor: 1, attention_data: 8, expert: 8, pipeline: 2}\n"
    "      engine: {max_num_seqs: 64, max_num_batched_tokens: 1024}\n"
    "      initial_replicas: 2\n"
    "      step_time:\n"
    "        model: roofline\n"
    "        redundant_experts: 16\n"
    "        experts: {popularity: {dist: lognormal, sigma: 1}, drift_time: 60 s, epoch: 20 s,\n"
    "                  rebalance: 40 s, placement: eplb, class_correlation: 50 %, layer_groups: "
    "3}\n"
    "      autoscaler: {policy: target, metric: concurrency, target: 40, max_replicas: 4,\n"
    "                   scale_down_window: 40 s, interval: 15 s}\n"
    "      cold_start: {provision: 5 s, image_pull: 5 s, weights: 5 s, engine_init: 5 s}\n";

/* Equal to the bit; and sound: ranks add up, the two ratios are each other's inverse. */
static void rows_compare(struct expert_rows a, struct expert_rows b)
{
    size_t layers = a.intervals * a.layer_series, gpus = a.intervals * a.gpu_series;
    int64_t moved = 0;
    ck_assert_uint_eq(a.intervals, 7); /* six and the drain */
    ck_assert_uint_eq(a.layer_series, 3);
    ck_assert_uint_eq(a.gpu_series, 3 * 8);
    ck_assert_uint_eq(b.intervals, a.intervals);
    ck_assert_uint_eq(b.hot_count, a.hot_count);
    ck_assert_int_eq(memcmp(a.layers, b.layers, layers * sizeof *a.layers), 0);
    ck_assert_int_eq(memcmp(a.gpus, b.gpus, gpus * sizeof *a.gpus), 0);
    ck_assert_int_eq(memcmp(a.hot, b.hot, a.hot_count * sizeof *a.hot), 0);
    for (size_t i = 0; i < layers; i++) {
        const struct expert_layer_row *row = &a.layers[i];
        int64_t sum = 0;
        for (size_t r = 0; r < 8; r++) {
            sum += a.gpus[i * 8 + r].tokens;
        }
        ck_assert_int_eq(sum, row->pairs);
        ck_assert_int_eq(row->pairs, 4 * row->tokens); /* top-4 */
        ck_assert_double_eq_tol(row->max_over_mean * row->mean_over_max, 1, 1e-12);
        ck_assert_double_gt(row->step_max_over_mean, 1);
        moved += row->moved_copies;
    }
    ck_assert_int_gt(moved, 0);
}

START_TEST(test_modes_agree)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    static const char *const plain[] = {
        "fleet.pools[0].step_time.experts.popularity={dist: balanced}"};
    for (int seed = 1; seed < 5; seed++) {
        char text[32];
        snprintf(text, sizeof text, "seed=%d", seed);
        const char *const sets[] = {text};
        struct run_text spans = run_text_set(drifting, NULL, sets, 1, false);
        struct run_text steps = run_text_set(drifting, NULL, sets, 1, true);
        ck_assert_str_eq(spans.totals.digest, steps.totals.digest);
        ck_assert_uint_eq(spans.totals.iterations, steps.totals.iterations);
        ck_assert_uint_gt(steps.totals.spans, spans.totals.spans);
        rows_compare(expert_run_rows(spans.run->experts), expert_run_rows(steps.run->experts));
        run_text_free(&spans);
        run_text_free(&steps);
    }
    struct run_text skewed = run_text_set(drifting, NULL, NULL, 0, false);
    struct run_text balanced = run_text_set(drifting, NULL, plain, 1, false);
    ck_assert(strcmp(skewed.totals.digest, balanced.totals.digest) != 0);
    run_text_free(&skewed);
    run_text_free(&balanced);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_law_identity,
                                  test_moe_layers_alone_pay,
                                  test_balance_of_100_and_200,
                                  test_streaming_counts_distinct_experts,
                                  test_copies_take_memory,
                                  test_build_time,
                                  test_modes_agree,
                                  NULL};
    return suite_run("moe_roofline", tests, 120);
}
