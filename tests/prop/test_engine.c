/* Spans, stepping and the naive engine must agree to the bit on random scenarios. */
#include <check.h>
#include <stdlib.h>

#include "sim/engine/engine.h"
#include "tests/prop/support_engine.h"

static bool modes_differ_to(const struct prop_case *c, FILE *out)
{
    struct naive_result *truth = prop_case_run_naive(c);
    bool differ = false;
    /* Odd span limits put cuts where nothing else would: extra cuts must change nothing. */
    const uint32_t span_limits[] = {ENGINE_SPAN_MAX, 1, 2 + (uint32_t)(c->seed % 15)};
    for (size_t i = 0; i < sizeof span_limits / sizeof *span_limits && !differ; i++) {
        struct naive_result *result = engine_run(c, span_limits[i]);
        differ = !engine_results_equal(truth, result, c, out);
        if (differ && out != NULL) {
            fprintf(out, "(a: naive, b: spans of at most %u)\n", span_limits[i]);
        }
        naive_free(result);
    }
    naive_free(truth);
    return differ;
}

static bool modes_differ(const struct prop_case *c, void *self)
{
    return modes_differ_to(c, self);
}

START_TEST(test_modes_agree)
{
    ck_assert_uint_eq(prop_run("spans = steps = naive", 5000, modes_differ,
                               getenv("PROP_VERBOSE") ? stderr : NULL),
                      0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *agree = tcase_create("modes");
    tcase_set_timeout(agree, 600);
    tcase_add_test(agree, test_modes_agree);
    suite_add_tcase(suite, agree);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
