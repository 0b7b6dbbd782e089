/* Queueing theory and laws that the naive engine keeps on random cases; the shrinker, the loop over
 * seeds and the step model with corners against what they promise. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/moments.h"
#include "sim/base/rng.h"
#include "tests/prop/support_kink.h"
#include "tests/prop/support_naive.h"
#include "tests/prop/support_scenario_gen.h"

/* M/D/1, rate 7, service 0.1 s: mean wait 0.116667 s (Pollaczek-Khinchine). */
START_TEST(test_md1)
{
    enum { RUNS = 20, REQUESTS = 20000, SKIPPED = REQUESTS / 20 };
    struct kink_config kink = {.a_ps = PS_PER_SECOND / 10, .c_ps = PS_PER_SECOND / 10};
    struct step_model model = {.type = &kink_type, .model = &kink};
    struct naive_config c = {.engine = {.max_num_seqs = 1,
                                        .max_num_batched_tokens = 2048,
                                        .block_size = 16,
                                        .num_gpu_blocks = NAIVE_UNLIMITED,
                                        .max_model_len = NAIVE_UNLIMITED,
                                        .max_queue = NAIVE_UNLIMITED,
                                        .enable_chunked_prefill = true},
                             .step = &model,
                             .replicas = 1,
                             .request_count = REQUESTS};
    struct moments waits_s;
    moments_init(&waits_s);
    struct request *q = calloc(REQUESTS, sizeof(*q));
    for (uint32_t run = 0; run < RUNS; run++) {
        uint64_t key = rng_key(1, run, RNG_TEST, 1);
        double now_s = 0;
        for (size_t i = 0; i < REQUESTS; i++) {
            now_s -= log(rng_unit_open(rng_draw(key, i, 0).a)) / 7;
            q[i] = (struct request){.id = i,
                                    .arrival_ps = time_from_seconds(now_s),
                                    .prompt_tokens = 1,
                                    .output_tokens = 1,
                                    .session = -1};
        }
        c.requests = q;
        struct naive_result *r = naive_run(&c);
        double sum_s = 0;
        for (size_t i = SKIPPED; i < REQUESTS; i++) {
            sum_s += time_seconds(r->records[i].admitted_ps - r->records[i].request.arrival_ps);
        }
        moments_add(&waits_s, sum_s / (REQUESTS - SKIPPED));
        naive_free(r);
    }
    free(q);
    double low_s = moments_interval(&waits_s, 0.99).low;
    double high_s = moments_interval(&waits_s, 0.99).high;
    printf("M/D/1 mean wait %.6f s, 99 %% interval [%.6f, %.6f], theory 0.116667\n", waits_s.mean,
           low_s, high_s);
    ck_assert(low_s <= 0.7 * 0.1 / (2 * 0.3) && 0.7 * 0.1 / (2 * 0.3) <= high_s);
    ck_assert((high_s - low_s) / 2 < 0.05 * waits_s.mean);
}
END_TEST

static bool conserves_record(const struct prop_case *c, const struct request_record *r)
{
    bool ok = r->end_ps >= r->request.arrival_ps && r->emitted_tokens <= r->request.output_tokens;
    ok = ok && (r->first_token_ps != TIME_NONE) == (r->emitted_tokens > 0);
    ok = ok && r->computed_tokens + r->cached_tokens <= r->request.prompt_tokens;
    ok = ok && (c->engine.enable_prefix_caching || r->cached_tokens == 0);
    if (r->outcome == OUTCOME_COMPLETED) {
        ok = ok && r->emitted_tokens == r->request.output_tokens;
        ok = ok && r->computed_tokens + r->cached_tokens == r->request.prompt_tokens;
        ok = ok && r->replica < c->replicas && r->admitted_ps >= r->request.arrival_ps;
    } else {
        ok = ok && (r->outcome == OUTCOME_CANCELLED || r->admitted_ps == TIME_NONE);
    }
    return ok && (r->preemptions > 0 || r->recomputed_tokens == 0);
}

/* Lookups: what is not hit is computed, unless it is preempted or cancelled on the way. */
static bool conserves_hits(const struct prop_case *c, const struct naive_result *r)
{
    bool ok = r->hit_tokens >= r->cached_tokens && r->hit_tokens <= r->lookup_tokens;
    if (!c->engine.enable_prefix_caching) {
        return ok && r->lookup_tokens == 0 && r->story.evicted == 0;
    }
    ok = ok && r->prefill_tokens <= r->lookup_tokens - r->hit_tokens;
    if (c->cancel_count == 0 && r->preemptions == 0) {
        ok = ok && r->prefill_tokens == r->lookup_tokens - r->hit_tokens &&
             r->hit_tokens == r->cached_tokens;
    }
    return ok;
}

/* Totals against the sum of the records; Little's law; tokens; limits. True when one is broken. A
 * cut is left out: these hold for what is served to its end. */
static bool breaks_conservation(const struct prop_case *case_, void *self)
{
    (void)self;
    struct prop_case whole = *case_;
    const struct prop_case *c = &whole;
    whole.cut_ps = 0;
    struct naive_result *r = prop_case_run_naive(c);
    bool ok = r->record_count == c->request_count;
    bool *seen = calloc(c->request_count + 1, sizeof(*seen));
    int128 sojourn_ps = 0;
    uint64_t first = 0;
    uint64_t later = 0;
    uint64_t tokens = 0;
    int64_t last_ps = 0;
    for (size_t i = 0; i < r->record_count; i++) {
        const struct request_record *record = &r->records[i];
        ok = ok && !seen[record->request.id] && record->end_ps >= last_ps;
        ok = ok && conserves_record(c, record);
        seen[record->request.id] = true;
        last_ps = record->end_ps;
        sojourn_ps += record->end_ps - record->request.arrival_ps;
        first += record->emitted_tokens > 0;
        later += record->emitted_tokens > 1 ? record->emitted_tokens - 1 : 0;
        tokens += (uint64_t)record->computed_tokens + record->recomputed_tokens;
    }
    ok = ok && r->running_ps + r->waiting_ps == sojourn_ps; /* Little */
    ok = ok && r->ttft.count == first && r->itl.count == later;
    ok = ok && r->e2e.count == r->outcomes[OUTCOME_COMPLETED];
    ok = ok && r->prefill_tokens >= tokens &&
         r->decode_tokens <= r->emitted_tokens + c->cancel_count;
    ok = ok && (c->cancel_count > 0 || r->prefill_tokens == tokens);
    ok = ok && conserves_hits(c, r);
    ok = ok && r->busy_ps <= (int128)r->end_ps * c->replicas;
    for (uint32_t i = 0; i < c->replicas; i++) {
        ok = ok && r->peak_blocks[i] <= c->engine.num_gpu_blocks;
    }
    free(seen);
    naive_free(r);
    return !ok;
}

START_TEST(test_conservation)
{
    ck_assert_uint_eq(prop_run("conservation", 300, breaks_conservation, NULL), 0);
}
END_TEST

static bool preempts(const struct prop_case *c, void *self)
{
    (void)self;
    struct naive_result *r = prop_case_run_naive(c);
    bool found = r->preemptions > 0;
    naive_free(r);
    return found;
}

/* A fault that is any preemption shrinks to a few short requests and no events; nearly always to
 * two, on one replica with constant steps. */
START_TEST(test_shrink)
{
    enum { CASES = 20 };
    uint32_t tried = 0;
    uint32_t smallest = 0;
    for (uint64_t seed = 1; tried < CASES; seed++) {
        struct prop_case *c = prop_case_generate(seed);
        if (preempts(c, NULL)) {
            struct prop_case *small = prop_case_shrink(c, preempts, NULL);
            ck_assert(preempts(small, NULL));
            ck_assert_uint_le(small->request_count, 6);
            ck_assert_uint_eq(small->cancel_count + small->drain_count + small->gauge_count, 0);
            smallest += small->request_count == 2 && small->replicas == 1 &&
                        small->step.kind == PROP_CONSTANT;
            prop_case_free(small);
            tried++;
        }
        prop_case_free(c);
    }
    printf("shrunk to the smallest: %u of %u\n", smallest, tried);
    ck_assert_uint_ge(smallest, CASES * 3 / 4);
}
END_TEST

static bool crashes(const struct prop_case *c, void *self)
{
    if (preempts(c, self)) {
        abort();
    }
    return false;
}

/* A crash is a failure of its case, found and shrunk like any other (it prints what it found). */
START_TEST(test_run_finds_crash)
{
    unsetenv("PROP_SEED");
    unsetenv("PROP_COUNT");
    ck_assert_uint_eq(prop_run("a crash put in on purpose", 600, crashes, NULL), 1);
    ck_assert_uint_eq(prop_run("plain failure put in on purpose", 600, preempts, NULL), 1);
}
END_TEST

/* The kink's law at iteration k is its law for the batch k iterations later, up to valid_n and not
 * always beyond. */
START_TEST(test_kink_law)
{
    uint64_t key = rng_key(1, 0, RNG_TEST, 2);
    uint32_t finite = 0;
    uint32_t bends = 0;
    uint32_t falls = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct prop_case *c = prop_case_generate(seed);
        struct rng_pair a = rng_draw(key, seed, 0);
        struct step_batch b = {.decodes = a.a % 5, .decode_kv = (int64_t)(a.b % 400)};
        if (a.a >> 32 & 1 || b.decodes == 0) {
            int64_t chunk = 1 + (int64_t)((a.a >> 40) % 30);
            b.prefills = 1;
            b.prefill_tokens = (uint32_t)chunk;
            b.prefill_kv = (int64_t)((a.b >> 20) % 100);
            b.prefill_pairs = chunk * b.prefill_kv + chunk * (chunk + 1) / 2;
            b.prefill_squares = chunk * chunk;
            b.prefill_window_growth = b.prefill_tokens;
            b.prefill_window_squares = b.prefill_squares;
            b.prefill_window_pairs = b.prefill_pairs;
        }
        b.decode_growing = b.decodes / 2;
        b.decode_window_kv = b.decode_kv / 3;
        struct step_law law;
        struct step_law now;
        if (c->step.kind == PROP_KINK) {
            kink_type.law(&c->step.kink, &b, &law);
            ck_assert_uint_ge(law.valid_n, 1);
            falls += law.slope_ps < 0;
            for (uint32_t k = 0; k < law.valid_n && k < 500; k++) {
                struct step_batch later = step_batch_advance(b, k);
                kink_type.law(&c->step.kink, &later, &now);
                ck_assert_int_eq(now.base_ps, law.base_ps + law.slope_ps * k);
            }
            if (law.valid_n < UINT32_MAX) {
                struct step_batch later = step_batch_advance(b, law.valid_n);
                kink_type.law(&c->step.kink, &later, &now);
                finite++;
                bends += now.base_ps != law.base_ps + law.slope_ps * (int64_t)law.valid_n;
            }
        }
        prop_case_free(c);
    }
    printf("kink: %u finite laws, %u bend right after, %u fall\n", finite, bends, falls);
    ck_assert(finite >= 100 && bends >= 50 && falls >= 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_md1, test_conservation, test_shrink, test_kink_law,
                                  test_run_finds_crash};
    TCase *tcase = tcase_create("random");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    Suite *suite = suite_create("random");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
