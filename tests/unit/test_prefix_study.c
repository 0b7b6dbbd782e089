/* Prefix hits of a trace: by hand, against a literal LRU cache at every capacity, and on the public
 * traces. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "sim/workload/prefix_study.h"
#include "sim/workload/trace_reader.h"
#include "tests/unit/support_traffic.h"

/* 64 tokens; the same; one more; the first 40 of them and 30 others: 0, 48, 64 and 32 hit. */
START_TEST(four_requests)
{
    static const uint64_t first[] = {1, 2, 3, 4, 5}, other[] = {1, 2, 13, 14, 15};
    static const struct {
        const uint64_t *ids;
        size_t count;
        uint32_t tokens;
        uint64_t hit_tokens;
    } requests[] = {{first, 4, 64, 0}, {first, 4, 64, 48}, {first, 5, 65, 64}, {other, 5, 70, 32}};
    struct prefix_study *s = prefix_study_create(16);
    uint64_t before = 0;
    for (size_t i = 0; i < 4; i++) {
        prefix_study_add(s, requests[i].ids, requests[i].count, requests[i].tokens);
        uint64_t hits = prefix_study_hits(s, UINT64_MAX);
        ck_assert_uint_eq((hits - before) * 16, requests[i].hit_tokens);
        before = hits;
    }
    ck_assert_uint_eq(prefix_study_blocks(s), 6); /* 1 … 4, 13, 14 */
    /* Two blocks: the head of the chain stays, so 0, 2, 2 and 2 blocks. */
    ck_assert_uint_eq(prefix_study_hits(s, 2), 6);
    ck_assert_uint_eq(prefix_study_hits(s, 0), 0);
    prefix_study_free(s);
}
END_TEST

/* A cache as a list of ids, the one used last at the front. */
struct literal {
    uint64_t ids[64];
    size_t count, capacity;
    uint64_t hits;
};

static bool literal_has(const struct literal *c, uint64_t id)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->ids[i] == id)
            return true;
    return false;
}

static void literal_use(struct literal *c, uint64_t id)
{
    size_t at = 0;
    while (at < c->count && c->ids[at] != id)
        at++;
    if (at == c->count)
        c->count += c->count < c->capacity;
    if (c->count == 0)
        return;
    at = at < c->count ? at : c->count - 1; /* the last one is evicted */
    memmove(c->ids + 1, c->ids, at * sizeof *c->ids);
    c->ids[0] = id;
}

static void literal_add(struct literal *c, const uint64_t *ids, size_t count, uint32_t tokens)
{
    for (size_t i = 0; i < count && i < (tokens - 1) / 16 && literal_has(c, ids[i]); i++)
        c->hits++;
    for (size_t i = count; i-- > 0;)
        literal_use(c, ids[i]);
}

/* Chains through a random tree: an id is named by the path to it. */
START_TEST(like_a_literal_cache)
{
    enum { CAPACITIES = 48, REQUESTS = 20000 };
    static struct literal caches[CAPACITIES];
    memset(caches, 0, sizeof caches);
    for (size_t c = 0; c < CAPACITIES; c++)
        caches[c].capacity = c;
    uint64_t key = rng_key(3, 0, RNG_TEST, 0);
    struct prefix_study *s = prefix_study_create(16);
    for (uint64_t n = 0; n < REQUESTS; n++) {
        struct rng_pair bits = rng_draw(key, n, 0);
        uint64_t ids[6], path = 1;
        uint32_t tokens = 1 + (uint32_t)(bits.b % 96);
        for (size_t i = 0; i < tokens / 16; i++) {
            path = path * 4 + (bits.a >> (8 * i) & (i < 2 ? 1 : 3));
            ids[i] = path * UINT64_C(0x9e3779b97f4a7c15);
        }
        prefix_study_add(s, ids, tokens / 16, tokens);
        for (size_t c = 0; c < CAPACITIES; c++)
            literal_add(&caches[c], ids, tokens / 16, tokens);
    }
    for (size_t c = 0; c < CAPACITIES; c++)
        ck_assert_msg(prefix_study_hits(s, c) == caches[c].hits, "capacity %zu: %lu, literally %lu",
                      c, (unsigned long)prefix_study_hits(s, c), (unsigned long)caches[c].hits);
    ck_assert(caches[40].hits > caches[4].hits && caches[4].hits > 0);
    prefix_study_free(s);
}
END_TEST

START_TEST(public_traces)
{
    static const struct {
        const char *file;
        uint64_t hits;
    } cases[] = {{"data/mooncake/conversation_trace.jsonl.gz", 105592},
                 {"data/mooncake/synthetic_trace.jsonl.gz", 77740}};
    struct errors errors;
    errors_init(&errors);
    for (size_t i = 0; i < 2; i++) {
        const char *path = traffic_shared(cases[i].file);
        if (!path)
            break;
        struct trace_reader_options options = {0};
        struct trace_reader *reader = trace_reader_open(path, &options, &errors);
        ck_assert_ptr_nonnull(reader);
        struct prefix_study *s = prefix_study_create(trace_reader_hash_block_size(reader));
        struct trace_row row;
        while (trace_reader_next(reader, &row) == TRACE_ROW)
            prefix_study_add(s, row.hash_ids, row.hash_count, row.prompt_tokens);
        ck_assert_uint_eq(prefix_study_hits(s, UINT64_MAX), cases[i].hits);
        ck_assert_uint_eq(prefix_study_hits(s, prefix_study_blocks(s)), cases[i].hits);
        prefix_study_free(s);
        trace_reader_close(reader);
    }
    errors_free(&errors);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefix_study");
    TCase *c = tcase_create("prefix_study");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, four_requests);
    tcase_add_test(c, like_a_literal_cache);
    tcase_add_test(c, public_traces);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
