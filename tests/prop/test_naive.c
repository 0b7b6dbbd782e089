/* The naive engine against cases computed by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/obs.h"
#include "tests/prop/support_kink.h"
#include "tests/prop/support_naive.h"
#include "tests/prop/support_scenario_gen.h"

#define MS INT64_C(1000000000)

/* 64 sequences, 2,048 tokens, blocks of 16, nothing limited. */
static struct naive_engine engine_default(void)
{
    return (struct naive_engine){.max_num_seqs = 64,
                                 .max_num_batched_tokens = 2048,
                                 .block_size = 16,
                                 .num_gpu_blocks = NAIVE_UNLIMITED,
                                 .max_model_len = NAIVE_UNLIMITED,
                                 .max_queue = NAIVE_UNLIMITED,
                                 .enable_chunked_prefill = true};
}

static struct request ask(int64_t arrival_ps, uint32_t prompt, uint32_t output)
{
    return (struct request){
        .arrival_ps = arrival_ps, .prompt_tokens = prompt, .output_tokens = output, .session = -1};
}

/* A config whose steps all take step_ps; numbers the requests. */
static struct naive_config config_constant(int64_t step_ps, struct naive_engine engine,
                                           struct request *requests, size_t count,
                                           struct kink_config *kink, struct step_model *model)
{
    *kink = (struct kink_config){.a_ps = step_ps, .c_ps = step_ps};
    *model = (struct step_model){.type = &kink_type, .model = kink};
    for (size_t i = 0; i < count; i++) {
        requests[i].id = i;
    }
    return (struct naive_config){.engine = engine,
                                 .step = model,
                                 .replicas = 1,
                                 .requests = requests,
                                 .request_count = count};
}

#define CONFIG(step_ps, engine, requests)                                                          \
    config_constant(step_ps, engine, requests, sizeof(requests) / sizeof(*(requests)),             \
                    &(struct kink_config){0}, &(struct step_model){0})

static const struct request_record *record_of(const struct naive_result *r, uint64_t id)
{
    for (size_t i = 0; i < r->record_count; i++) {
        if (r->records[i].request.id == id) {
            return &r->records[i];
        }
    }
    ck_abort_msg("request %d has no end", (int)id);
}

static void expect(const struct naive_result *r, uint64_t id, enum outcome outcome,
                   int64_t admitted_ps, int64_t first_ps, int64_t end_ps, uint32_t emitted)
{
    const struct request_record *record = record_of(r, id);
    ck_assert_int_eq(record->outcome, outcome);
    ck_assert_int_eq(record->admitted_ps, admitted_ps);
    ck_assert_int_eq(record->first_token_ps, first_ps);
    ck_assert_int_eq(record->end_ps, end_ps);
    ck_assert_uint_eq(record->emitted_tokens, emitted);
}

static void expect_sum(const struct histogram *h, uint64_t count, int64_t sum)
{
    ck_assert_uint_eq(h->count, count);
    ck_assert_int_eq((int64_t)h->sum, sum);
    ck_assert_uint_eq(h->overflow, 0);
}

/* Acceptance T01: a replica never idles with work queued. */
START_TEST(test_never_idle)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    struct request q[] = {ask(0, 1, 5), ask(10 * MS, 1, 5), ask(10000 * MS, 1, 5)};
    struct naive_config c = CONFIG(10 * MS, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10 * MS, 50 * MS, 5);
    expect(r, 1, OUTCOME_COMPLETED, 50 * MS, 60 * MS, 100 * MS, 5);
    expect(r, 2, OUTCOME_COMPLETED, 10000 * MS, 10010 * MS, 10050 * MS, 5);
    expect_sum(&r->ttft, 3, 70 * MS);
    expect_sum(&r->itl, 12, 120 * MS);
    expect_sum(&r->queue, 3, 40 * MS);
    ck_assert_uint_eq(r->iterations, 15);
    ck_assert_int_eq(r->end_ps, 10050 * MS);
    naive_free(r);
}
END_TEST

/* Acceptance T08 (a): 1,000 arrivals at once, one at a time. */
START_TEST(test_thousand_at_once)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    struct request q[1000];
    for (size_t i = 0; i < 1000; i++) {
        q[i] = ask(0, 1, 1);
    }
    struct naive_config c = CONFIG(MS, e, q);
    struct naive_result *r = naive_run(&c);
    for (int64_t k = 0; k < 1000; k++) {
        ck_assert_uint_eq(r->records[k].request.id, (uint64_t)k);
        ck_assert_int_eq(r->records[k].end_ps, (k + 1) * MS);
    }
    naive_free(r);
}
END_TEST

/* Acceptance T11: tokens at 1.0, 1.1, 1.2, 1.5 s; one token at 2.0 s; zero outputs. The step is
 * max(0.1, 0.2·kv − 2.1) + 0.09·prompt tokens: prefill of 10 takes 1 s, decodes at 10, 11 and 12
 * KV tokens take 0.1, 0.1 and 0.3 s. */
START_TEST(test_token_times)
{
    struct request q[] = {ask(0, 10, 4), ask(2000 * MS, 10, 1), ask(4000 * MS, 10, 0)};
    struct naive_config c = CONFIG(1, engine_default(), q);
    struct kink_config kink = {
        .a_ps = 100 * MS, .c_ps = -2100 * MS, .d_ps = 200 * MS, .per_prefill_ps = 90 * MS};
    struct step_model model = {.type = &kink_type, .model = &kink};
    c.step = &model;
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 1000 * MS, 1500 * MS, 4);
    expect(r, 1, OUTCOME_COMPLETED, 2000 * MS, 3000 * MS, 3000 * MS, 1);
    expect(r, 2, OUTCOME_COMPLETED, 4000 * MS, TIME_NONE, 5000 * MS, 0);
    expect_sum(&r->ttft, 2, 2000 * MS);
    expect_sum(&r->itl, 3, 500 * MS);
    ck_assert_int_eq(r->itl.min, 100 * MS);
    ck_assert_int_eq(r->itl.max, 300 * MS);
    expect_sum(&r->tpot, 1, INT64_C(166666666667)); /* half a second over three, rounded */
    expect_sum(&r->e2e, 3, 3500 * MS);
    naive_free(r);
}
END_TEST

/* Block 4, 3 tokens held, a chunk of 5: 8 tokens are 2 blocks in all. */
START_TEST(test_blocks)
{
    ck_assert_int_eq(naive_blocks(3, 4), 1);
    ck_assert_int_eq(naive_blocks(3 + 5, 4), 2);
    ck_assert_int_eq(naive_blocks(9, 4), 3);
    ck_assert_int_eq(naive_blocks(0, 4), 0);
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.max_num_seqs = 2;
    e.max_num_batched_tokens = 5;
    struct request q[] = {ask(0, 2, 1), ask(0, 8, 2)}; /* chunks of 3 and 5, then one decode */
    struct naive_config c = CONFIG(10, e, q);
    int64_t times_ps[] = {5, 10, 15, 25, 30};
    c.gauge_times_ps = times_ps;
    c.gauge_count = 5;
    struct naive_result *r = naive_run(&c);
    int64_t blocks[] = {2, 2, 2, 3, 0}; /* at 10 the second iteration has begun */
    uint64_t running[] = {2, 1, 1, 1, 0};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(r->gauges[i].kv_blocks, blocks[i]);
        ck_assert_int_eq(r->gauges[i].kv_blocks_max, blocks[i]);
        ck_assert_uint_eq(r->gauges[i].running, running[i]);
        ck_assert_uint_eq(r->gauges[i].waiting, 0);
    }
    ck_assert_int_eq(r->peak_blocks[0], 3);
    expect(r, 1, OUTCOME_COMPLETED, 0, 20, 30, 2);
    naive_free(r);
}
END_TEST

/* Two sequences that outgrow 6 blocks of 1 token:
 *   [0,10) both prefill; [10,20) both decode, 6 blocks; at 20 A needs a 7th: B goes;
 *   [20,40) A alone ends at 40; [40,50) B recomputes 2 + 2 tokens; [50,60) its last token. */
START_TEST(test_preemption)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 6;
    struct request q[] = {ask(0, 2, 4), ask(0, 2, 4)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 40, 4);
    expect(r, 1, OUTCOME_COMPLETED, 0, 10, 60, 4);
    ck_assert_uint_eq(record_of(r, 0)->preemptions, 0);
    ck_assert_uint_eq(record_of(r, 1)->preemptions, 1);
    ck_assert_uint_eq(record_of(r, 1)->computed_tokens, 2);
    ck_assert_uint_eq(record_of(r, 1)->recomputed_tokens, 4);
    ck_assert_uint_eq(r->iterations, 6);
    ck_assert_uint_eq(r->decode_tokens, 5);
    ck_assert_uint_eq(r->prefill_tokens, 8);
    ck_assert_int_eq(r->peak_blocks[0], 6);
    expect_sum(&r->itl, 6, 80); /* 10 five times, and 30 across the preemption */
    ck_assert_int_eq(r->itl.max, 30);
    expect_sum(&r->tpot, 2, 10 + 17);
    ck_assert_int_eq((int64_t)r->running_ps, 80);
    ck_assert_int_eq((int64_t)r->waiting_ps, 20);
    struct digest d;
    digest_init(&d);
    digest_event(&d, OBS_ADMIT, 0, 0, 0);
    digest_event(&d, OBS_ADMIT, 0, 1, 0);
    digest_event(&d, OBS_FIRST_TOKEN, 10, 0, 0);
    digest_event(&d, OBS_FIRST_TOKEN, 10, 1, 0);
    digest_event(&d, OBS_PREEMPT, 20, 1, 2);
    digest_event(&d, OBS_END, 40, 0, OUTCOME_COMPLETED + 16 * 4);
    digest_event(&d, OBS_END, 60, 1, OUTCOME_COMPLETED + 16 * 4);
    ck_assert_uint_eq(r->digest.state, d.state);
    ck_assert_uint_eq(r->digest.events, d.events);
    naive_free(r);
}
END_TEST

/* The last admitted one is itself the one that needs a block: at 10 B's fifth token finds none, so
 * B goes back; A ends at 40, B recomputes 5 tokens until 50. */
START_TEST(test_preempts_itself)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.num_gpu_blocks = 2;
    struct request q[] = {ask(0, 1, 4), ask(0, 4, 2)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 40, 4);
    expect(r, 1, OUTCOME_COMPLETED, 0, 10, 50, 2);
    ck_assert_uint_eq(record_of(r, 1)->preemptions, 1);
    ck_assert_uint_eq(record_of(r, 1)->recomputed_tokens, 5);
    expect_sum(&r->itl, 4, 10 + 10 + 10 + 40);
    ck_assert_uint_eq(r->iterations, 5);
    naive_free(r);
}
END_TEST

/* Who was preempted is ahead of who waits: 4 blocks of 1, A (1 + 4) and B (2 + 2) run, C waits for
 * one of the 2 seats. */
START_TEST(test_preempted_goes_first)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 4;
    e.max_num_seqs = 2;
    struct request q[] = {ask(0, 1, 4), ask(0, 2, 2), ask(5, 1, 1)};
    struct naive_config c = CONFIG(10, e, q);
    int64_t times_ps[] = {15, 25};
    c.gauge_times_ps = times_ps;
    c.gauge_count = 2;
    struct naive_result *r = naive_run(&c);
    /* [0,10) A holds 1, B 2 blocks; at 10 A takes the 4th and B, needing one, goes. Then A holds 2,
     * 3 and 4 of 4 while B needs 3: C's single block would be free until 30, but B is ahead. At 40
     * A has ended: B and C start together. */
    ck_assert_uint_eq(r->gauges[0].running, 1);
    ck_assert_uint_eq(r->gauges[0].waiting, 2);
    ck_assert_int_eq(r->gauges[0].kv_blocks, 2);
    ck_assert_uint_eq(r->gauges[1].waiting, 2);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 40, 4);
    expect(r, 1, OUTCOME_COMPLETED, 0, 10, 50, 2);
    expect(r, 2, OUTCOME_COMPLETED, 40, 50, 50, 1);
    ck_assert_uint_eq(r->records[1].request.id, 1); /* one boundary: by id */
    naive_free(r);
}
END_TEST

/* Budget 4: B's prompt of 10 goes in chunks of 2, 3, 3, 2 beside A's 2 tokens and two decodes. */
START_TEST(test_chunking)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 2;
    e.max_num_batched_tokens = 4;
    struct request q[] = {ask(0, 2, 3), ask(0, 10, 1)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 30, 3);
    expect(r, 1, OUTCOME_COMPLETED, 0, 40, 40, 1);
    ck_assert_uint_eq(r->prefill_tokens, 12);
    ck_assert_uint_eq(r->decode_tokens, 2);
    ck_assert_uint_eq(r->iterations, 4);
    naive_free(r);
    /* Off, with 11 tokens: B needs 10 of the 9 left, so it starts beside A's first decode. */
    c.engine.enable_chunked_prefill = false;
    c.engine.max_num_batched_tokens = 11;
    r = naive_run(&c);
    expect(r, 1, OUTCOME_COMPLETED, 10, 20, 20, 1);
    ck_assert_uint_eq(r->iterations, 3);
    naive_free(r);
}
END_TEST

START_TEST(test_unservable)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.num_gpu_blocks = 2;
    struct request q[] = {ask(0, 8, 1), ask(0, 8, 2), ask(0, 9, 0), ask(0, 8, 0), ask(0, 3, 6)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 10, 1);
    expect(r, 1, OUTCOME_UNSERVABLE, TIME_NONE, TIME_NONE, 0, 0); /* 9 stored tokens: 3 blocks */
    expect(r, 2, OUTCOME_UNSERVABLE, TIME_NONE, TIME_NONE, 0, 0);
    expect(r, 3, OUTCOME_COMPLETED, 10, TIME_NONE, 20, 0);
    expect(r, 4, OUTCOME_COMPLETED, 20, 30, 80, 6);
    naive_free(r);
    c.engine.max_model_len = 9;
    r = naive_run(&c);
    ck_assert_uint_eq(r->outcomes[OUTCOME_UNSERVABLE], 2);
    c.engine.max_model_len = 8; /* 8 + 1 and 3 + 6 are one too long now */
    naive_free(r);
    r = naive_run(&c);
    ck_assert_uint_eq(r->outcomes[OUTCOME_UNSERVABLE], 4);
    naive_free(r);
    c.engine = engine_default();
    c.engine.max_num_seqs = 2;
    c.engine.max_num_batched_tokens = 8;
    c.engine.enable_chunked_prefill = false;
    r = naive_run(&c); /* 8 + 2 − 1 recomputed at worst is beyond 8, so is a prompt of 9 */
    ck_assert_uint_eq(r->outcomes[OUTCOME_UNSERVABLE], 2);
    ck_assert_int_eq(record_of(r, 1)->outcome, OUTCOME_UNSERVABLE);
    ck_assert_int_eq(record_of(r, 2)->outcome, OUTCOME_UNSERVABLE);
    naive_free(r);
}
END_TEST

/* One seat and one place in the queue. At 20 the first is still counted: arrivals come before the
 * step that ends it. */
START_TEST(test_refused)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    e.max_queue = 1;
    struct request q[] = {ask(0, 1, 2), ask(0, 1, 1), ask(0, 1, 1), ask(20, 1, 1), ask(21, 1, 1)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 20, 2);
    expect(r, 1, OUTCOME_COMPLETED, 20, 30, 30, 1);
    expect(r, 2, OUTCOME_REFUSED, TIME_NONE, TIME_NONE, 0, 0);
    expect(r, 3, OUTCOME_REFUSED, TIME_NONE, TIME_NONE, 20, 0);
    expect(r, 4, OUTCOME_COMPLETED, 30, 40, 40, 1);
    naive_free(r);
}
END_TEST

/* Running: leaves at once, its blocks too, and the iteration in flight keeps its 10 ps. At a
 * boundary the cancel comes before the step. */
START_TEST(test_cancel)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 2;
    struct request q[] = {ask(0, 20, 9), ask(0, 1, 3), ask(0, 1, 9), ask(0, 1, 1), ask(0, 1, 1)};
    struct naive_cancel cancels[] = {{5, 2}, {15, 0}, {15, 0}, {30, 1}, {30, 3}};
    int64_t times_ps[] = {14, 15, 20};
    struct naive_config c = CONFIG(10, e, q);
    c.cancels = cancels;
    c.cancel_count = 5;
    c.gauge_times_ps = times_ps;
    c.gauge_count = 3;
    struct naive_result *r = naive_run(&c);
    expect(r, 2, OUTCOME_CANCELLED, TIME_NONE, TIME_NONE, 5, 0);
    expect(r, 0, OUTCOME_CANCELLED, 0, 10, 15, 1);
    expect(r, 1, OUTCOME_CANCELLED, 0, 10, 30, 2); /* its third token would have come at 30 */
    expect(r, 3, OUTCOME_CANCELLED, 20, TIME_NONE, 30, 0);
    expect(r, 4, OUTCOME_COMPLETED, 30, 40, 40, 1);
    int64_t blocks[] = {3, 1, 2};
    uint64_t running[] = {2, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(r->gauges[i].kv_blocks, blocks[i]);
        ck_assert_uint_eq(r->gauges[i].running, running[i]);
    }
    ck_assert_uint_eq(r->decode_tokens, 2 + 1); /* the cancelled one's second token was computed */
    ck_assert_uint_eq(record_of(r, 3)->computed_tokens, 0);
    naive_free(r);
    /* Nobody left in the iteration: an arrival still waits for its end. A cancel at the arrival's
     * instant comes after it. */
    struct request p[] = {ask(0, 1, 9), ask(2, 1, 1), ask(40, 1, 1)};
    struct naive_cancel two[] = {{1, 0}, {40, 2}};
    c = CONFIG(10, e, p);
    c.cancels = two;
    c.cancel_count = 2;
    r = naive_run(&c);
    expect(r, 1, OUTCOME_COMPLETED, 10, 20, 20, 1);
    expect(r, 2, OUTCOME_CANCELLED, TIME_NONE, TIME_NONE, 40, 0);
    ck_assert_uint_eq(r->iterations, 2);
    naive_free(r);
}
END_TEST

static void expect_replicas(const struct naive_result *r, const uint32_t *replicas, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(record_of(r, i)->replica, replicas[i]);
    }
}

/* Acceptance T07 and the draining rules. */
START_TEST(test_routers)
{
    struct request herd[8];
    for (size_t i = 0; i < 8; i++) {
        herd[i] = ask(0, 1, 1);
    }
    struct naive_config c = CONFIG(10, engine_default(), herd);
    c.replicas = 4;
    for (int router = NAIVE_ROUND_ROBIN; router <= NAIVE_LEAST_LOADED; router++) {
        c.router = (enum naive_router)router;
        struct naive_result *r = naive_run(&c);
        expect_replicas(r, (uint32_t[]){0, 1, 2, 3, 0, 1, 2, 3}, 8);
        naive_free(r);
    }
    /* Loads 1, 0 at 12: the third goes to 1. At 40 all is idle: 0 was dispatched to before 1. */
    struct request q[] = {ask(0, 1, 3), ask(0, 1, 1), ask(12, 1, 1), ask(40, 1, 1)};
    c = CONFIG(10, engine_default(), q);
    c.replicas = 2;
    c.router = NAIVE_LEAST_LOADED;
    struct naive_result *r = naive_run(&c);
    expect_replicas(r, (uint32_t[]){0, 1, 1, 0}, 4);
    naive_free(r);
    /* Drained at 12, after the arrival of 12 would have come: it finishes at 30. */
    struct naive_drain drains[] = {{12, 0}, {50, 1}};
    struct request p[] = {ask(0, 1, 3), ask(13, 1, 1), ask(14, 1, 1), ask(60, 1, 1)};
    c = CONFIG(10, engine_default(), p);
    c.replicas = 2;
    c.drains = drains;
    c.drain_count = 2;
    r = naive_run(&c);
    expect_replicas(r, (uint32_t[]){0, 1, 1, UINT32_MAX}, 4);
    expect(r, 3, OUTCOME_REFUSED, TIME_NONE, TIME_NONE, 60, 0);
    ck_assert_int_eq(r->released_ps[0], 30);
    ck_assert_int_eq(r->released_ps[1], 50);
    naive_free(r);
}
END_TEST

/* One queue, two replicas with one seat each: the third request goes to whoever is free first; at
 * equal times to the lower index. */
START_TEST(test_central_queue)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    e.max_queue = 1;
    struct request q[] = {ask(0, 1, 3), ask(0, 1, 1), ask(0, 1, 3),
                          ask(0, 1, 2), ask(0, 1, 1), ask(41, 1, 1)};
    struct naive_config c = CONFIG(10, e, q);
    c.replicas = 2;
    c.router = NAIVE_CENTRAL_QUEUE;
    struct naive_result *r = naive_run(&c);
    expect_replicas(r, (uint32_t[]){0, 1, 1, 0, UINT32_MAX, 1}, 6);
    expect(r, 2, OUTCOME_COMPLETED, 10, 20, 40, 3);
    expect(r, 3, OUTCOME_COMPLETED, 30, 40, 50, 2);
    expect(r, 4, OUTCOME_REFUSED, TIME_NONE, TIME_NONE, 0, 0); /* 2 seats and 2 places */
    expect(r, 5, OUTCOME_COMPLETED, 41, 51, 51, 1);            /* 0 is busy, 1 idle */
    naive_free(r);
    /* A draining replica takes nothing from the central queue. */
    struct naive_drain drains[] = {{5, 1}};
    c.drains = drains;
    c.drain_count = 1;
    r = naive_run(&c);
    expect_replicas(r, (uint32_t[]){0, 1, 0, 0}, 4);
    ck_assert_int_eq(r->released_ps[1], 10);
    naive_free(r);
}
END_TEST

/* The queue goes by (priority, id), whatever the order of arrival. */
START_TEST(test_priority_queue)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    e.by_priority = true;
    struct request q[] = {ask(0, 1, 1), ask(1, 1, 1), ask(2, 1, 1), ask(3, 1, 1)};
    q[1].priority = 2;
    q[2].priority = q[3].priority = -1;
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 10, 1);
    expect(r, 2, OUTCOME_COMPLETED, 10, 20, 20, 1);
    expect(r, 3, OUTCOME_COMPLETED, 20, 30, 30, 1);
    expect(r, 1, OUTCOME_COMPLETED, 30, 40, 40, 1);
    naive_free(r);
}
END_TEST

/* Six blocks of one token. At 20 A (priority 1) takes the sixth; B (priority 0), behind it, finds
 * none: A goes, and what it took in this pass with it. B runs alone until 50; A computes its 2 + 2
 * tokens again until 60, and ends at 70. */
START_TEST(test_priority_preemption)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 6;
    e.by_priority = true;
    struct request q[] = {ask(0, 2, 4), ask(5, 2, 4)};
    q[0].priority = 1;
    struct naive_config c = CONFIG(10, e, q);
    int64_t times_ps[] = {25, 35};
    c.gauge_times_ps = times_ps;
    c.gauge_count = 2;
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 70, 4);
    expect(r, 1, OUTCOME_COMPLETED, 10, 20, 50, 4);
    ck_assert_uint_eq(r->taken_back, 1);
    ck_assert_uint_eq(record_of(r, 0)->preemptions, 1);
    ck_assert_uint_eq(record_of(r, 0)->recomputed_tokens, 4);
    ck_assert_int_eq(r->gauges[0].kv_blocks, 3);
    ck_assert_int_eq(r->gauges[1].kv_blocks, 4);
    ck_assert_uint_eq(r->gauges[0].waiting, 1);
    expect_sum(&r->itl, 6, 10 + 10 + 10 + 10 + 40 + 10);
    naive_free(r);
}
END_TEST

/* A window of 3 tokens; a step is 10 + KV read within it + 100 for each query-key pair of chunks.
 * Chunks of 4 and 1 have 1 + 2 + 3 + 3 and 3 pairs, and read 0 and 3 tokens; then decodes read 3.
 * The other's decodes read 1, 2 and 3. */
START_TEST(test_window)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 2;
    e.max_num_batched_tokens = 4;
    struct request q[] = {ask(0, 5, 3), ask(2000, 1, 4)};
    struct naive_config c = CONFIG(10, e, q);
    struct kink_config kink = {
        .a_ps = 10, .c_ps = 10, .window = 3, .per_window_kv_ps = 1, .per_window_pair_ps = 100};
    struct step_model model = {.type = &kink_type, .model = &kink};
    c.step = &model;
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 910 + 313, 910 + 313 + 2 * 13, 3);
    expect(r, 1, OUTCOME_COMPLETED, 2000, 2110, 2110 + 11 + 12 + 13, 4);
    ck_assert_uint_eq(r->window_straddles, 1);
    ck_assert_uint_eq(r->window_fills, 1);
    naive_free(r);
}
END_TEST

/* One user after another: 1 comes 5 after the end of 0, at the instant of 2, and goes first by id;
 * 3 comes 1 after 2, which was cancelled. */
START_TEST(test_closed_loop)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    struct request q[] = {ask(0, 1, 1), ask(0, 1, 1), ask(15, 1, 1), ask(15, 1, 1)};
    struct naive_link links[] = {{1, 0, 5}, {3, 2, 1}};
    struct naive_cancel cancels[] = {{21, 2}};
    struct naive_config c = CONFIG(10, e, q);
    c.links = links;
    c.link_count = 2;
    c.cancels = cancels;
    c.cancel_count = 1;
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 10, 1);
    expect(r, 1, OUTCOME_COMPLETED, 15, 25, 25, 1);
    expect(r, 2, OUTCOME_CANCELLED, TIME_NONE, TIME_NONE, 21, 0);
    expect(r, 3, OUTCOME_COMPLETED, 25, 35, 35, 1);
    ck_assert_int_eq(record_of(r, 1)->request.arrival_ps, 15);
    ck_assert_int_eq(record_of(r, 3)->request.arrival_ps, 22);
    naive_free(r);
}
END_TEST

/* A cut at 25: what is running has what the iterations until then brought, by id. */
START_TEST(test_cut)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 1;
    struct request q[] = {ask(0, 3, 9), ask(1, 1, 1)};
    struct naive_config c = CONFIG(10, e, q);
    c.cut_ps = 25;
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_IN_FLIGHT, 0, 10, 25, 2);
    expect(r, 1, OUTCOME_IN_FLIGHT, TIME_NONE, TIME_NONE, 25, 0);
    ck_assert_uint_eq(r->iterations, 2);
    ck_assert_uint_eq(r->decode_tokens, 1);
    ck_assert_int_eq((int64_t)r->busy_ps, 20);
    naive_free(r);
}
END_TEST

/* ---- prefix caching ---- */

/* Requests one after the other, and what each hits. */
static void expect_cached(const struct naive_config *c, const uint32_t *cached, size_t count)
{
    struct naive_result *r = naive_run(c);
    for (size_t i = 0; i < count; i++) {
        const struct request_record *record = record_of(r, i);
        ck_assert_uint_eq(record->cached_tokens, cached[i]);
        ck_assert_uint_eq(record->computed_tokens, record->request.prompt_tokens - cached[i]);
        ck_assert_uint_eq(record->recomputed_tokens, 0);
    }
    naive_free(r);
}

/* Acceptance T05: 64 tokens, the same, one more, 40 of them and 30 others; whole and in chunks of
 * 20; named by hashes and as a shared prompt. */
START_TEST(test_prefix_arithmetic)
{
    struct naive_engine e = engine_default();
    e.max_num_seqs = 20;
    e.enable_prefix_caching = true;
    struct token_hashes *one = PROP_HASHES(16, 1, 2, 3, 4);
    struct token_hashes *other = PROP_HASHES(16, 1, 2, 5, 6);
    struct request hashed[] = {ask(0, 64, 1), ask(1000, 64, 1), ask(2000, 65, 1), ask(3000, 70, 1)};
    struct request shared[4];
    memcpy(shared, hashed, sizeof(shared));
    for (size_t i = 0; i < 4; i++) {
        hashed[i].hashes = i < 3 ? one : other;
        shared[i].shared_tokens = i < 3 ? 64 : 40;
    }
    const uint32_t cached[] = {0, 48, 64, 32};
    for (int chunk = 0; chunk < 2; chunk++) {
        e.max_num_batched_tokens = chunk ? 20 : 2048;
        struct naive_config c = CONFIG(10, e, hashed);
        expect_cached(&c, cached, 4);
        struct naive_result *r = naive_run(&c);
        ck_assert_uint_eq(r->lookups, 4);
        ck_assert_uint_eq(r->hit_tokens, 144);
        ck_assert_uint_eq(r->lookup_tokens, 263);
        ck_assert_uint_eq(r->prefill_tokens, 263 - 144);
        naive_free(r);
        c = CONFIG(10, e, shared);
        expect_cached(&c, cached, 4);
    }
    free(one);
    free(other);
}
END_TEST

/* Equal numbers of different kinds, equal hashes behind others, and a stream behind another shared
 * prompt, or more of it: nothing in common. Without caching nothing anyway. */
START_TEST(test_prefix_contents)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.enable_prefix_caching = true;
    struct token_hashes *a = PROP_HASHES(8, 1, 1);
    struct token_hashes *b = PROP_HASHES(8, 2, 1);
    struct request q[11];
    for (size_t i = 0; i < 11; i++) {
        q[i] = ask((int64_t)i * 1000, 17, 1);
    }
    q[0].stream = q[1].stream = 1;
    q[2].hashes = a;
    q[3].hashes = b;
    q[4].hashes = a; /* 16, as named by 2 */
    q[5].shared_prompt = q[6].shared_prompt = 1;
    q[5].shared_tokens = 17;
    q[6].shared_tokens = 7; /* 4 of 5's; its own from 4 on */
    q[6].stream = q[7].stream = q[8].stream = 1;
    q[7].shared_tokens = 7; /* of prompt 0 */
    q[8].shared_prompt = 1;
    q[8].shared_tokens = 6; /* 4 of 5's; the stream is another */
    q[9] = q[6];
    q[9].arrival_ps = 9000; /* 16, as said by 6 */
    struct naive_config c = CONFIG(10, e, q);
    expect_cached(&c, (const uint32_t[]){0, 16, 0, 0, 16, 0, 4, 0, 4, 16, 0}, 11);
    c.engine.enable_prefix_caching = false;
    expect_cached(&c, (const uint32_t[11]){0}, 11);
    free(a);
    free(b);
}
END_TEST

/* A conversation: the first turn stores 4 + 5 − 1 tokens, which the second finds; with an output
 * fewer its second block is not full. One token is always computed. */
START_TEST(test_prefix_outputs)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 4, 5), ask(1000, 12, 1), ask(2000, 4, 4), ask(3000, 12, 1),
                          ask(4000, 8, 1)};
    q[0].stream = q[1].stream = 1;
    q[2].stream = q[3].stream = q[4].stream = 2;
    struct naive_config c = CONFIG(10, e, q);
    expect_cached(&c, (const uint32_t[]){0, 8, 0, 4, 4}, 5);
}
END_TEST

/* Four at once in a batch of 20 tokens: the second hits what the first has just been given; the
 * third, of other tokens, gets the 12 that are left (2 of its blocks), the fourth starts at 10. It
 * ends with a block that is a duplicate of the third's: nobody hits it. */
START_TEST(test_prefix_same_pass)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.max_num_seqs = 4;
    e.max_num_batched_tokens = 20;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 4, 1), ask(0, 8, 1), ask(0, 16, 1), ask(0, 16, 1)};
    q[0].stream = q[1].stream = 1;
    q[2].stream = q[3].stream = 2;
    struct naive_config c = CONFIG(10, e, q);
    int64_t times_ps[] = {5, 15};
    c.gauge_times_ps = times_ps;
    c.gauge_count = 2;
    expect_cached(&c, (const uint32_t[]){0, 4, 0, 12}, 4);
    struct naive_result *r = naive_run(&c);
    expect(r, 1, OUTCOME_COMPLETED, 0, 10, 10, 1);
    expect(r, 2, OUTCOME_COMPLETED, 0, 20, 20, 1);
    expect(r, 3, OUTCOME_COMPLETED, 10, 20, 20, 1);
    ck_assert_int_eq(r->gauges[0].kv_blocks, 1 + 1 + 3); /* the first block is held twice */
    ck_assert_int_eq(r->gauges[1].kv_blocks, 4 + 1);
    ck_assert_uint_eq(r->story.duplicates, 1);
    naive_free(r);
}
END_TEST

/* Four blocks of four. The first leaves its blocks, tail first; the second takes its tail; the
 * third finds three of them, and evicts the second's; so the fourth, which says what the second
 * said, finds nothing and takes, again, a tail. */
START_TEST(test_prefix_eviction)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.num_gpu_blocks = 4;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 16, 1), ask(1000, 4, 1), ask(2000, 16, 1), ask(3000, 5, 1),
                          ask(4000, 16, 1)};
    q[0].stream = q[2].stream = q[4].stream = 1;
    q[1].stream = q[3].stream = 2;
    struct naive_config c = CONFIG(10, e, q);
    /* After the third the queue holds its blocks 3, 2, 1, 0; the fourth takes 3 and 2. */
    expect_cached(&c, (const uint32_t[]){0, 0, 12, 0, 8}, 5);
    struct naive_result *r = naive_run(&c);
    ck_assert_uint_eq(r->story.evicted, 1 + 1 + 2 + 1); /* the fifth takes 4's tail and its head */
    naive_free(r);
}
END_TEST

/* Four blocks of four. A leaves two that can be hit; B holds one until 1040. C needs three, two of
 * which are A's: those are not free for the third, but another is. When B holds two, C waits for
 * its end; D, for which A's blocks are held by then, needs one more and finds one. */
START_TEST(test_prefix_fit)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.num_gpu_blocks = 4;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 8, 1), ask(1000, 1, 4), ask(1005, 12, 1), ask(1035, 12, 1)};
    q[0].stream = q[2].stream = q[3].stream = 1;
    struct naive_config c = CONFIG(10, e, q);
    int64_t times_ps[] = {1015, 1025, 1035, 1045};
    c.gauge_times_ps = times_ps;
    c.gauge_count = 4;
    const int64_t blocks[2][4] = {{4, 1, 1, 3}, {2, 2, 2, 4}};
    for (uint32_t i = 0; i < 2; i++) {
        q[1].prompt_tokens = 1 + 4 * i;
        struct naive_result *r = naive_run(&c);
        int64_t start_ps = i == 0 ? 1010 : 1040;
        expect(r, 1, OUTCOME_COMPLETED, 1000, 1010, 1040, 4);
        expect(r, 2, OUTCOME_COMPLETED, start_ps, start_ps + 10, start_ps + 10, 1);
        expect(r, 3, OUTCOME_COMPLETED, 1040, 1050, 1050, 1);
        ck_assert_uint_eq(record_of(r, 2)->cached_tokens, 8);
        ck_assert_uint_eq(record_of(r, 3)->cached_tokens, 8);
        for (size_t k = 0; k < 4; k++) {
            ck_assert_int_eq(r->gauges[k].kv_blocks, blocks[i][k]);
        }
        naive_free(r);
    }
}
END_TEST

/* test_preemption, with caching: B has stored 3 tokens when it goes at 20; its blocks stand in the
 * queue as 2, 1, 0. A takes 2 and 1 at 20 and 30, ends at 40; B finds its block 0, and computes the
 * other 3 of its 4 tokens. */
START_TEST(test_prefix_preemption)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 6;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 2, 4), ask(0, 2, 4)};
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 1, OUTCOME_COMPLETED, 0, 10, 60, 4);
    ck_assert_uint_eq(record_of(r, 1)->preemptions, 1);
    ck_assert_uint_eq(record_of(r, 1)->cached_tokens, 0);
    ck_assert_uint_eq(record_of(r, 1)->computed_tokens, 2);
    ck_assert_uint_eq(record_of(r, 1)->recomputed_tokens, 3);
    ck_assert_uint_eq(r->hit_tokens, 1);
    ck_assert_uint_eq(r->lookup_tokens, 2 + 2 + 4);
    struct digest d;
    digest_init(&d);
    digest_event(&d, 1, 0, 0, 2);
    digest_event(&d, 1, 0, 1, 2);
    digest_event(&d, 0, 40, 1, UINT64_C(1) << 32 | 4);
    ck_assert_uint_eq(r->prefix.state, d.state);
    naive_free(r);
}
END_TEST

/* test_priority_preemption, with caching: A's block of the pass in which it goes was published, and
 * is taken back. B takes it at 20, then A's blocks 2 and 1; at 50 A finds its block 0, and in front
 * of it in the queue the last ones of B: it takes three, and one more at 60. */
START_TEST(test_prefix_taken_back)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 6;
    e.by_priority = true;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 2, 4), ask(5, 2, 4)};
    q[0].priority = 1;
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    expect(r, 0, OUTCOME_COMPLETED, 0, 10, 70, 4);
    expect(r, 1, OUTCOME_COMPLETED, 10, 20, 50, 4);
    ck_assert_uint_eq(r->story.unpublished, 1);
    ck_assert_uint_eq(r->story.evicted, 2 + 3 + 1);
    ck_assert_uint_eq(r->hit_tokens, 1);
    ck_assert_uint_eq(record_of(r, 0)->recomputed_tokens, 3);
    naive_free(r);
}
END_TEST

/* Eight blocks of one token, three tokens an iteration. S (priority 1) computes 2 + 2 of its 6 and
 * goes at 30, when D has four blocks. At 40 T, which says the same and goes first, finds those 4
 * and computes the other two; S, behind it, finds 5: one more than it ever had. */
START_TEST(test_prefix_more_again)
{
    struct naive_engine e = engine_default();
    e.block_size = 1;
    e.num_gpu_blocks = 8;
    e.max_num_seqs = e.max_num_batched_tokens = 3;
    e.by_priority = true;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 1, 4), ask(1, 6, 1), ask(35, 6, 1)};
    q[1].priority = 1;
    q[1].stream = q[2].stream = 1;
    struct naive_config c = CONFIG(10, e, q);
    struct naive_result *r = naive_run(&c);
    const uint32_t counts[3][3] = {{0, 1, 0}, {1, 5, 0}, {4, 2, 0}};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(record_of(r, i)->cached_tokens, counts[i][0]);
        ck_assert_uint_eq(record_of(r, i)->computed_tokens, counts[i][1]);
        ck_assert_uint_eq(record_of(r, i)->recomputed_tokens, counts[i][2]);
    }
    expect(r, 1, OUTCOME_COMPLETED, 10, 50, 50, 1);
    expect(r, 2, OUTCOME_COMPLETED, 40, 50, 50, 1);
    ck_assert_uint_eq(r->hit_tokens, 4 + 5);
    ck_assert_uint_eq(r->story.hit_more_again, 1);
    naive_free(r);
}
END_TEST

/* A cancel in the first iteration: what it was to store can be hit all the same. */
START_TEST(test_prefix_cancel)
{
    struct naive_engine e = engine_default();
    e.block_size = 4;
    e.enable_prefix_caching = true;
    struct request q[] = {ask(0, 8, 3), ask(6, 9, 1)};
    q[0].stream = q[1].stream = 7;
    struct naive_cancel cancels[] = {{5, 0}};
    struct naive_config c = CONFIG(10, e, q);
    c.cancels = cancels;
    c.cancel_count = 1;
    struct naive_result *r = naive_run(&c);
    ck_assert_uint_eq(record_of(r, 0)->computed_tokens, 0);
    ck_assert_uint_eq(record_of(r, 1)->cached_tokens, 8);
    expect(r, 1, OUTCOME_COMPLETED, 10, 20, 20, 1);
    naive_free(r);
}
END_TEST

int main(void)
{
    const TTest *const rules[] = {
        test_never_idle,    test_thousand_at_once, test_token_times,
        test_blocks,        test_preemption,       test_preempts_itself,
        test_chunking,      test_unservable,       test_preempted_goes_first,
        test_refused,       test_cancel,           test_routers,
        test_central_queue, test_priority_queue,   test_priority_preemption,
        test_window,        test_closed_loop,      test_cut};
    const TTest *const prefix[] = {test_prefix_arithmetic, test_prefix_contents,
                                   test_prefix_outputs,    test_prefix_same_pass,
                                   test_prefix_eviction,   test_prefix_fit,
                                   test_prefix_preemption, test_prefix_taken_back,
                                   test_prefix_more_again, test_prefix_cancel};
    TCase *tcase = tcase_create("naive");
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        tcase_add_test(tcase, rules[i]);
    }
    for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++) {
        tcase_add_test(tcase, prefix[i]);
    }
    Suite *suite = suite_create("naive");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
