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

/* What random cases hardly ever reach: a decode (v, id 3) has made a block full, and goes for a
 * prefill (s, id 4) behind it in the same pass; but it shares so much that s has to go as well, so
 * that nobody takes v's block. It was never computed: w (id 5), which says what v said, does not
 * find it. In blocks of one token v's block is new: w finds 5 shared tokens and 2 of v's, not 3. In
 * blocks of two v had half of it before: w finds 10 shared tokens and 2 of v's, not 4. */
START_TEST(test_published_and_taken_back)
{
    static const struct corner {
        int64_t budget, block_size, blocks;
        uint32_t first, v, s, w, shared, found;
    } corners[] = {{11, 1, 27, 6, 6, 14, 9, 5, 7}, {15, 2, 21, 11, 12, 22, 15, 10, 12}};
    const struct corner *k = &corners[_i];
    struct request requests[] = {
        {.prompt_tokens = k->first, .output_tokens = 6, .shared_tokens = k->shared},
        {.prompt_tokens = 1, .output_tokens = 6},
        {.prompt_tokens = 1, .output_tokens = 6},
        {.prompt_tokens = k->v, .output_tokens = 5, .shared_tokens = k->shared, .priority = 2},
        {.arrival_ps = 5, .prompt_tokens = k->s, .output_tokens = 1, .priority = 1},
        {.arrival_ps = 25, .prompt_tokens = k->w, .shared_tokens = k->shared, .priority = -1}};
    requests[3].stream = requests[5].stream = 1;
    for (uint64_t id = 0; id < 6; id++) {
        requests[id].id = id;
    }
    struct prop_case c = {.engine = {.max_num_seqs = 10,
                                     .max_num_batched_tokens = k->budget,
                                     .block_size = k->block_size,
                                     .num_gpu_blocks = k->blocks,
                                     .max_model_len = NAIVE_UNLIMITED,
                                     .max_queue = NAIVE_UNLIMITED,
                                     .enable_chunked_prefill = true,
                                     .by_priority = true,
                                     .enable_prefix_caching = true},
                          .step = {.kind = PROP_CONSTANT, .base_ps = 10},
                          .replicas = 1,
                          .request_count = 6,
                          .requests = requests};
    struct naive_result *r = prop_case_run_naive(&c);
    ck_assert_uint_eq(r->record_count, 6);
    for (size_t i = 0; i < r->record_count; i++) {
        const struct request_record *record = &r->records[i];
        uint64_t id = record->request.id;
        ck_assert_uint_eq(record->preemptions, id == 3 || id == 4);
        ck_assert(id != 5 || (record->admitted_ps == 30 && record->cached_tokens == k->found));
    }
    naive_free(r);
    ck_assert(!modes_differ_to(&c, stderr));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *agree = tcase_create("modes");
    tcase_set_timeout(agree, 600);
    tcase_add_test(agree, test_modes_agree);
    tcase_add_loop_test(agree, test_published_and_taken_back, 0, 2);
    suite_add_tcase(suite, agree);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
