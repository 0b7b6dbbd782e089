/* Wide expert parallelism of DeepSeek-V3 against published deployments. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/roofline.h"
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

struct deployment {
    const char *what, *gpu;
    int64_t ranks;
    uint32_t per_gpu;
    int64_t context;
    double measured_ms, allowed;
};

/* measured = batch / published tokens/s per GPU. */
static const struct deployment deployments[] = {
    {"SGLang, 72 H100, 22,282 tok/s per node (2025-05-05)", "h100-sxm", 72, 256, 2000, 91.9, 0.15},
    {"the same at 4k, 17,373 tok/s per node", "h100-sxm", 72, 128, 4000, 58.9, 0.15},
    {"DeepSeek profile data, 128 H800, 18,598 tok/s per node", "h800-sxm", 128, 128, 4000, 55.1,
     0.15},
    {"DeepSeek production, 144 H800, batch inferred", "h800-sxm", 144, 88, 4989, 47.6, 0.15},
};

START_TEST(test_deployments)
{
    const struct llm_spec *v3 = catalog_llm("deepseek-v3", &arena, &errors, NULL);
    static struct roofline r;
    for (size_t i = 0; i < sizeof deployments / sizeof *deployments; i++) {
        const struct deployment *d = &deployments[i];
        struct llm_spec llm = *v3;
        /* Redundant copies bring the experts to a multiple of the ranks: 288 slots on 72 or 144. */
        int64_t slots = (llm.moe.experts + d->ranks - 1) / d->ranks * d->ranks;

        struct roofline_config config = {.llm = &llm,
                                         .gpu = catalog_gpu(d->gpu, &arena, &errors, NULL),
                                         .parallel = {1, 1, d->ranks, d->ranks},
                                         .precision = {STORAGE_FP8, STORAGE_FP8, STORAGE_BF16},
                                         .factors = {NAN, NAN, NAN, NAN, FIELD_INT_UNSET,
                                                     FIELD_INT_UNSET, FIELD_INT_UNSET,
                                                     FIELD_INT_UNSET},
                                         .overlap = 0.2,
                                         .dedup = DEDUP_NODE,
                                         .measured = true,
                                         .expert_imbalance = 1,
                                         .redundant_experts = slots - llm.moe.experts};
        ck_assert_msg(roofline_init(&r, &config, &errors, NULL), "%s", d->what);
        uint32_t decodes = d->per_gpu * (uint32_t)d->ranks;
        struct step_batch b = {.decodes = decodes, .decode_kv = (int64_t)decodes * d->context};
        struct roofline_parts p = roofline_parts(&r, &b);
        double ms = p.total_s * 1e3, miss = ms / d->measured_ms - 1;
        printf("%s: measured %.1f ms, predicted %.1f (%+.1f %%): computing %.1f, all-to-all "
               "%.1f\n",
               d->what, d->measured_ms, ms, miss * 100,
               (p.weights_s + p.experts_s + p.attention_s + p.overhead_s) * 1e3,
               p.exchange_s * 1e3);
        fflush(stdout);
        ck_assert_msg(fabs(miss) <= d->allowed, "%s: %+.1f %%", d->what, miss * 100);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wide_expert");
    TCase *tcase = tcase_create("deployments");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_deployments);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
