/* The prefix cache as a user sees it: acceptance case T05 and the one-liners about prefixes; then
 * the rules one by one: order of eviction, duplicates, preemption, cancels, what a listener learns.
 * Every case runs in spans and step by step, with the same result. */
#include "sim/base/digest.h"
#include "sim/engine/prefix_chain.h"
#include "tests/fleet_drive.h"
#include "tests/unit/suite_run.h"

enum { TOLD_MAX = 256 };
#define US(n) ((int64_t)(n)*1000000)

/* What a router was told. */
struct told {
    uint64_t key;
    uint32_t blocks;
    uint64_t outcomes; /* ends and first tokens before it */
};

/* What a run was like. */
struct seen {
    struct digest digest;
    uint32_t looks, hits; /* admissions, and their hit tokens in all */
    uint32_t hit[64];     /* tokens found at first admission, by request */
    uint32_t again[64];   /* at later ones, summed */
    struct request_record records[64];
    uint64_t preemptions;
    uint64_t outcomes;
    struct told told[TOLD_MAX]; /* the first of told_count */
    uint32_t told_count;
    uint64_t told_sum; /* of all, in whatever order those of one boundary came */
};

/* A router that sends all to replica 0, and notes what it is told. */
static void *router_create(const void *config, const struct router_env *env)
{
    (void)env;
    struct seen *const *seen = config;
    return *seen;
}

static void router_destroy(void *state)
{
    (void)state;
}

static void router_resize(void *state, uint32_t slots)
{
    (void)state, (void)slots;
}

static void router_ready(void *state, uint32_t pool, uint32_t slot, bool ready)
{
    (void)state, (void)pool, (void)slot, (void)ready;
}

static uint32_t router_pick(void *state, const struct request *request, const uint32_t *pools,
                            uint32_t count)
{
    (void)state, (void)request, (void)pools, (void)count;
    return 0;
}

static void router_cached(void *state, uint32_t slot, uint64_t key, uint32_t blocks)
{
    struct seen *s = state;
    struct digest one;
    ck_assert_uint_eq(slot, 0);
    if (s->told_count < TOLD_MAX) {
        s->told[s->told_count] = (struct told){key, blocks, s->outcomes};
    }
    s->told_count++;
    digest_init(&one);
    digest_event(&one, 1, (int64_t)s->outcomes, key, blocks);
    s->told_sum += one.state;
}

static const struct router_type router_type = {
    .create = router_create,
    .destroy = router_destroy,
    .resize = router_resize,
    .ready = router_ready,
    .pick = router_pick,
    .cached = router_cached,
};
static const struct variant router_variant = {.name = "noting", .ops = &router_type};

static void seen_take(void *self, const struct obs *obs)
{
    struct seen *s = self;
    if (obs->kind == OBS_PREFIX) {
        const struct obs_prefix *p = obs->u.prefix;
        uint64_t id = p->record->request.id;
        s->looks++;
        s->hits += p->hit_tokens;
        ck_assert_uint_lt(p->hit_tokens, p->lookup_tokens);
        ck_assert(p->first == (p->record->preemptions == 0));
        s->hit[id] += p->first ? p->hit_tokens : 0;
        s->again[id] += p->first ? 0 : p->hit_tokens;
        digest_event(&s->digest, obs->kind, obs->time_ps, id, p->hit_tokens);
    } else if (obs->kind == OBS_END) {
        const struct request_record *r = obs->u.record;
        s->records[r->request.id] = *r;
        s->preemptions += r->preemptions;
        if (r->outcome == OUTCOME_COMPLETED) {
            ck_assert_uint_eq(r->cached_tokens + r->computed_tokens, r->request.prompt_tokens);
        }
        s->outcomes++;
        digest_event(&s->digest, obs->kind, obs->time_ps, r->request.id, r->cached_tokens);
    } else if (obs->kind == OBS_FIRST_TOKEN || obs->kind == OBS_PREEMPT) {
        s->outcomes += obs->kind == OBS_FIRST_TOKEN;
        digest_event(&s->digest, obs->kind, obs->time_ps, obs->u.record->request.id, 0);
    }
}

/* A replica with the cache on, blocks of 16 tokens, and a step of 10 us + 1 us per token. */
static void begin(struct drive *d)
{
    drive_init(d);
    d->model = drive_model(&d->arena, drive_variant(&d->arena, &step_affine_variant, "base=10 us",
                                                    "per_token=1 us", NULL));
    d->engine.enable_prefix_caching = true;
}

/* The requests' hashes, of blocks of block_tokens, made anew for each run: a run gives them back.
 */
struct contents {
    uint32_t block_tokens;
    uint32_t counts[64];
    uint64_t ids[64][16];
};

static struct seen run_once(struct drive *d, struct request *requests, size_t count,
                            const struct contents *contents)
{
    struct seen s = {0};
    struct token_hash_pool *pool = token_hashes_pool_create();
    digest_init(&s.digest);
    for (size_t i = 0; i < count; i++) {
        requests[i].id = i;
        requests[i].session = -1;
        if (contents != NULL) {
            uint32_t n = contents->counts[i];
            requests[i].hashes = token_hashes_acquire(pool, n, contents->block_tokens);
            memcpy(requests[i].hashes->ids, contents->ids[i], n * sizeof(uint64_t));
        }
    }
    d->requests = requests;
    d->request_count = count;
    struct seen *self = &s;
    d->router = (struct variant_value){.type = &router_variant, .config = &self};
    d->sink = (struct obs_sink){.take = seen_take, .self = &s};
    drive_run(d);
    token_hashes_pool_free(pool);
    return s;
}

/* In spans and step by step: the same. */
static struct seen run_both(struct drive *d, struct request *requests, size_t count,
                            const struct contents *contents)
{
    d->span_max = ENGINE_SPAN_MAX;
    struct seen spans = run_once(d, requests, count, contents);
    d->span_max = 1;
    struct seen steps = run_once(d, requests, count, contents);
    ck_assert_uint_eq(spans.digest.state, steps.digest.state);
    ck_assert_uint_eq(spans.digest.events, steps.digest.events);
    ck_assert_uint_eq(spans.told_count, steps.told_count);
    ck_assert_uint_eq(spans.told_sum, steps.told_sum);
    return spans;
}

/* T05: R1 has 64 tokens; R2 the same; R3 R1 and one more; R4 the first 40 of R1 and 30 others. */
START_TEST(t05_prefix_arithmetic)
{
    static const uint32_t lengths[] = {64, 64, 65, 70}, hits[] = {0, 48, 64, 32};
    static const int64_t budgets[] = {8192, 20};
    for (int b = 0; b < 2; b++) {
        for (int unlimited = 0; unlimited < 2; unlimited++) {
            struct drive d;
            begin(&d);
            d.engine.max_num_seqs = 4;
            d.engine.max_num_batched_tokens = budgets[b];
            d.engine.num_gpu_blocks = unlimited ? FIELD_INT_UNLIMITED : 100;
            struct request r[4];
            struct contents contents = {.block_tokens = 16};
            for (uint32_t i = 0; i < 4; i++) {
                r[i] = (struct request){.arrival_ps = i * PS_PER_SECOND,
                                        .prompt_tokens = lengths[i],
                                        .output_tokens = 1};
                contents.counts[i] = 4;
                for (uint64_t j = 0; j < 4; j++) {
                    contents.ids[i][j] = i == 3 && j >= 2 ? 100 + j : 1 + j;
                }
            }
            struct seen s = run_both(&d, r, 4, &contents);
            ck_assert_uint_eq(s.looks, 4);
            ck_assert_uint_eq(s.hits, 144);
            for (int i = 0; i < 4; i++) {
                ck_assert_uint_eq(s.hit[i], hits[i]);
                ck_assert_uint_eq(s.records[i].cached_tokens, hits[i]);
                ck_assert_uint_eq(s.records[i].computed_tokens, lengths[i] - hits[i]);
                ck_assert_uint_eq(s.records[i].recomputed_tokens, 0);
            }
            drive_free(&d);
        }
    }
}
END_TEST

/* Hashes of 32 tokens, blocks of 16: both halves of an id count, and the same id behind another one
 * is other content. */
START_TEST(hashes_are_chained)
{
    struct drive d;
    begin(&d);
    struct request r[3];
    struct contents contents = {
        .block_tokens = 32, .counts = {2, 2, 2}, .ids = {{1, 2}, {9, 2}, {1, 2}}};
    for (uint32_t i = 0; i < 3; i++) {
        r[i] = (struct request){
            .arrival_ps = i * PS_PER_SECOND, .prompt_tokens = i == 2 ? 63 : 64, .output_tokens = 1};
    }
    struct seen s = run_both(&d, r, 3, &contents);
    ck_assert_uint_eq(s.hit[1], 0);
    ck_assert_uint_eq(s.hit[2], 48);
    drive_free(&d);
}
END_TEST

/* A conversation: each turn finds all full blocks of the one before, outputs included, but for its
 * last output token, which was never stored. */
START_TEST(a_turn_finds_the_one_before)
{
    struct drive d;
    begin(&d);
    struct request r[3] = {
        {.prompt_tokens = 100, .output_tokens = 29},
        {.arrival_ps = PS_PER_SECOND, .prompt_tokens = 200, .output_tokens = 25},
        {.arrival_ps = 2 * PS_PER_SECOND, .prompt_tokens = 225, .output_tokens = 25},
    };
    for (int i = 0; i < 3; i++) {
        r[i].stream = 7;
        r[i].shared_prompt = 3;
        r[i].shared_tokens = 40;
    }
    struct seen s = run_both(&d, r, 3, NULL);
    ck_assert_uint_eq(s.hit[1], 128); /* 100 + 29 − 1 = 8 × 16 */
    ck_assert_uint_eq(s.hit[2], 224); /* 200 + 25 − 1 = 14 × 16 */
    /* Another conversation has the whole blocks of the shared prompt in common, no more. */
    r[2].stream = 8;
    s = run_both(&d, r, 3, NULL);
    ck_assert_uint_eq(s.hit[2], 32);
    /* The shared tokens end elsewhere in the block: the stream begins elsewhere too. */
    r[2].stream = 7;
    r[2].shared_tokens = 41;
    s = run_both(&d, r, 3, NULL);
    ck_assert_uint_eq(s.hit[2], 32);
    drive_free(&d);
}
END_TEST

/* What is scheduled can be hit in the same pass by those behind it; a copy made beside it is
 * private. */
START_TEST(hits_within_one_pass)
{
    struct drive d;
    begin(&d);
    struct request r[3];
    for (uint32_t i = 0; i < 3; i++) {
        r[i] = (struct request){.prompt_tokens = 64, .output_tokens = 1, .stream = 5};
    }
    struct seen s = run_both(&d, r, 3, NULL);
    ck_assert_uint_eq(s.hit[0], 0);
    ck_assert_uint_eq(s.hit[1], 48);
    ck_assert_uint_eq(s.hit[2], 48);
    ck_assert_int_eq(s.records[2].admitted_ps, 0);
    ck_assert_int_eq(s.records[0].end_ps, US(10 + 64 + 16 + 16));
    drive_free(&d);
}
END_TEST

/* One-liner: distinct prompts in a tight pool: 0 hits; what is computed again after preemptions is
 * told apart. */
START_TEST(distinct_prompts_hit_nothing)
{
    struct drive d;
    begin(&d);
    d.engine.block_size = 4;
    d.engine.num_gpu_blocks = 40;
    d.engine.max_num_seqs = 8;
    d.engine.max_num_batched_tokens = 64;
    struct request r[40];
    for (uint32_t i = 0; i < 40; i++) {
        r[i] = (struct request){.prompt_tokens = 30, .output_tokens = 50};
    }
    struct seen s = run_both(&d, r, 40, NULL);
    uint64_t recomputed = 0;
    for (uint32_t i = 0; i < 40; i++) {
        ck_assert_uint_eq(s.hit[i], 0);
        ck_assert_uint_eq(s.records[i].cached_tokens, 0);
        ck_assert_uint_eq(s.records[i].computed_tokens, 30);
        recomputed += s.records[i].recomputed_tokens;
    }
    ck_assert_uint_gt(s.preemptions, 10);
    ck_assert_uint_gt(recomputed, 100);
    ck_assert_uint_eq(s.looks, 40 + s.preemptions);
    drive_free(&d);
}
END_TEST

/* One-liner: a request that waits for memory counts its hit once, at admission; a prompt of three
 * chunks counts once. Of 6 blocks A holds 4; B (hit 1 of them; 3 more to come) waits until A ends.
 */
START_TEST(a_hit_counts_once)
{
    struct drive d;
    begin(&d);
    d.engine.max_num_seqs = 4;
    d.engine.max_num_batched_tokens = 16;
    d.engine.num_gpu_blocks = 6;
    struct request r[2] = {
        {.prompt_tokens = 48, .output_tokens = 12, .stream = 1},
        {.prompt_tokens = 64, .output_tokens = 1, .stream = 2},
    };
    r[0].shared_prompt = r[1].shared_prompt = 1;
    r[0].shared_tokens = r[1].shared_tokens = 16;
    struct seen s = run_both(&d, r, 2, NULL);
    ck_assert_uint_eq(s.looks, 2);
    ck_assert_uint_eq(s.hits, 16);
    ck_assert_uint_eq(s.records[1].cached_tokens, 16);
    ck_assert_uint_eq(s.records[1].computed_tokens, 48);
    ck_assert_int_eq(s.records[1].admitted_ps, s.records[0].end_ps);
    drive_free(&d);
}
END_TEST

/* One-liner: sequences that share a prefix of 10,000 tokens: memory once, but every decode reads
 * its whole context. */
START_TEST(sharing_saves_memory_not_reads)
{
    struct drive d;
    begin(&d);
    d.engine.max_num_batched_tokens = 65536;
    d.engine.num_gpu_blocks = 625 + 2 * 4;
    d.model = drive_model(&d.arena, drive_variant(&d.arena, &step_affine_variant, "base=1 us",
                                                  "per_kv_token=1 ns", NULL));
    struct request r[4];
    for (uint32_t i = 0; i < 4; i++) {
        r[i] = (struct request){.prompt_tokens = 10016,
                                .output_tokens = 3,
                                .stream = i + 1,
                                .shared_prompt = 1,
                                .shared_tokens = 10000};
    }
    struct seen s = run_both(&d, r, 4, NULL);
    ck_assert_uint_eq(s.hits, 30000);
    ck_assert_uint_eq(s.preemptions, 0);
    /* All four are admitted at once; their 2nd iteration reads 4 × 10,016 tokens, the 3rd 4 more.
     */
    ck_assert_int_eq(s.records[3].admitted_ps, 0);
    int64_t steps = s.records[3].end_ps - s.records[3].first_token_ps;
    ck_assert_int_eq(steps, 2 * US(1) + 1000 * (int64_t)(4 * 10016 + 4 * 10017));
    drive_free(&d);
}
END_TEST

/* The queue of free blocks: oldest first, and of one sequence the tail first. 8 blocks. A (3 blocks
 * of content) and B (3) end in this order; C takes four blocks: the two never used, then A's last
 * two. What is left of A is its first block; B is whole. */
START_TEST(eviction_takes_the_oldest_tail_first)
{
    struct drive d;
    begin(&d);
    d.engine.num_gpu_blocks = 8;
    struct request r[5] = {
        {.prompt_tokens = 48, .output_tokens = 1, .stream = 1},
        {.prompt_tokens = 48, .output_tokens = 1, .stream = 2},
        {.prompt_tokens = 64, .output_tokens = 1},
        {.prompt_tokens = 49, .output_tokens = 1, .stream = 1},
        {.prompt_tokens = 49, .output_tokens = 1, .stream = 2},
    };
    for (int i = 0; i < 5; i++) {
        r[i].arrival_ps = i * PS_PER_SECOND;
    }
    struct seen s = run_both(&d, r, 5, NULL);
    ck_assert_uint_eq(s.hit[3], 16);
    /* A again needed 3 blocks: C's four stood behind B's three, so B's went: all of them. */
    ck_assert_uint_eq(s.hit[4], 0);
    /* The other way round: B first, and it is whole; A then finds its first block gone too. */
    r[3].stream = 2;
    r[4].stream = 1;
    s = run_both(&d, r, 5, NULL);
    ck_assert_uint_eq(s.hit[3], 48);
    ck_assert_uint_eq(s.hit[4], 0);
    drive_free(&d);
}
END_TEST

/* A hit makes blocks recent again. 7 blocks; A and B have 3; A is hit (whole), then C takes three:
 * they are B's. */
START_TEST(a_hit_renews)
{
    struct drive d;
    begin(&d);
    d.engine.num_gpu_blocks = 7;
    struct request r[5] = {
        {.prompt_tokens = 48, .output_tokens = 1, .stream = 1},
        {.prompt_tokens = 48, .output_tokens = 1, .stream = 2},
        {.prompt_tokens = 49, .output_tokens = 1, .stream = 1},
        {.prompt_tokens = 48, .output_tokens = 1},
        {.prompt_tokens = 49, .output_tokens = 1, .stream = 1},
    };
    for (int i = 0; i < 5; i++) {
        r[i].arrival_ps = i * PS_PER_SECOND;
    }
    struct seen s = run_both(&d, r, 5, NULL);
    ck_assert_uint_eq(s.hit[2], 48);
    ck_assert_uint_eq(s.hit[4], 48);
    r[4].stream = 2;
    s = run_both(&d, r, 5, NULL);
    ck_assert_uint_eq(s.hit[4], 0);
    drive_free(&d);
}
END_TEST

/* Two decodes of the same content: the first to fill a block gives it its name, the other's copy is
 * private, and so is all behind it: whose end frees what shows in what a third finds. */
START_TEST(duplicates_stay_private)
{
    struct drive d;
    begin(&d);
    d.engine.block_size = 4;
    d.engine.num_gpu_blocks = 12;
    struct request r[4] = {
        {.prompt_tokens = 6, .output_tokens = 3, .stream = 1}, /* A: fills block 1 by a decode */
        {.prompt_tokens = 6,
         .output_tokens = 11,
         .stream = 1}, /* B: hits block 0; its own 1, 2, 3 */
        {.arrival_ps = PS_PER_SECOND, .prompt_tokens = 17, .output_tokens = 1, .stream = 1},
        {.arrival_ps = 2 * PS_PER_SECOND, .prompt_tokens = 17, .output_tokens = 1, .stream = 1},
    };
    struct seen s = run_both(&d, r, 4, NULL);
    ck_assert_uint_eq(s.hit[1], 4);
    ck_assert_uint_eq(s.hit[2], 8); /* A's two blocks; of B's nothing */
    ck_assert_uint_eq(s.hit[3], 16);
    drive_free(&d);
}
END_TEST

/* After a preemption a sequence finds its own blocks, as far as they have not been taken: only what
 * is missing is computed again. */
START_TEST(own_blocks_are_found_after_a_preemption)
{
    struct drive d;
    begin(&d);
    d.engine.block_size = 4;
    d.engine.num_gpu_blocks = 10;
    d.engine.max_num_seqs = 2;
    struct request r[2] = {
        {.prompt_tokens = 16, .output_tokens = 9},
        {.prompt_tokens = 16, .output_tokens = 9},
    };
    struct seen s = run_both(&d, r, 2, NULL);
    ck_assert_uint_eq(s.preemptions, 1);
    const struct request_record *b = &s.records[1];
    ck_assert_uint_eq(b->preemptions, 1);
    ck_assert_uint_eq(b->cached_tokens, 0);
    ck_assert_uint_eq(b->computed_tokens, 16);
    /* Both hold 5 blocks of 4 when A needs its sixth: B has stored 20 tokens, published in 5
     * blocks. A takes one, B's last. B waits for A's end (A's 6 are free then) and finds 16 of
     * its 20. */
    ck_assert_uint_eq(s.again[1], 16);
    ck_assert_uint_eq(b->recomputed_tokens, 5);
    drive_free(&d);
}
END_TEST

/* Free cached blocks go before anyone is preempted. */
START_TEST(cached_blocks_go_before_running_ones)
{
    struct drive d;
    begin(&d);
    d.engine.block_size = 4;
    d.engine.num_gpu_blocks = 20;
    struct request r[3] = {
        {.prompt_tokens = 64, .output_tokens = 1, .stream = 1},
        {.arrival_ps = PS_PER_SECOND, .prompt_tokens = 8, .output_tokens = 70, .stream = 2},
        {.arrival_ps = 2 * PS_PER_SECOND, .prompt_tokens = 64, .output_tokens = 1, .stream = 1},
    };
    struct seen s = run_both(&d, r, 3, NULL);
    ck_assert_uint_eq(s.preemptions, 0);
    ck_assert_uint_eq(s.records[1].outcome, OUTCOME_COMPLETED);
    /* B took 20 blocks: 4 never used, the 16 of A. */
    ck_assert_uint_eq(s.hit[2], 0);
    drive_free(&d);
}
END_TEST

/* A client that leaves gives up its blocks at once, those of the iteration in flight too; what they
 * hold can be hit. */
START_TEST(cancelled_blocks_can_be_hit)
{
    struct drive d;
    begin(&d);
    d.engine.max_num_batched_tokens = 256;
    d.patience_ps = US(100);
    struct request r[2] = {
        {.prompt_tokens = 128, .output_tokens = 50, .stream = 1},
        {.arrival_ps = US(150), .prompt_tokens = 129, .output_tokens = 1, .stream = 1},
    };
    struct seen s = run_both(&d, r, 2, NULL);
    ck_assert_uint_eq(s.records[0].outcome, OUTCOME_CANCELLED);
    ck_assert_uint_eq(s.records[1].outcome, OUTCOME_COMPLETED);
    ck_assert_uint_eq(s.hit[1], 128);
    drive_free(&d);
}
END_TEST

/* Blocks of 4, 6 of them. A and B have stored 5 tokens, in 2 blocks each, when C arrives at 25 us,
 * in the iteration from 20 to 32 us. */
static struct seen arrival_beside_two(uint32_t prompt)
{
    struct drive d;
    begin(&d);
    d.engine.block_size = 4;
    d.engine.num_gpu_blocks = 6;
    struct request r[3] = {
        {.prompt_tokens = 5, .output_tokens = 20},
        {.prompt_tokens = 5, .output_tokens = 20, .stream = 1},
        {.arrival_ps = US(25), .prompt_tokens = prompt, .output_tokens = 1, .stream = 1},
    };
    struct seen s = run_both(&d, r, 3, NULL);
    drive_free(&d);
    return s;
}

/* C has 3 blocks, and 2 are free: one is B's first, so it comes in at the next boundary. */
START_TEST(an_arrival_fits_by_its_hit)
{
    struct seen s = arrival_beside_two(9);
    ck_assert_int_eq(s.records[2].admitted_ps, US(32));
    ck_assert_uint_eq(s.hit[2], 4);
}
END_TEST

/* C has 4 blocks: with one of B's it lacks one. In the third iteration from here B fills its second
 * block by a decode: C comes in there, in the middle of what would be one span. */
START_TEST(a_need_can_shrink)
{
    struct seen s = arrival_beside_two(13);
    ck_assert_int_eq(s.records[2].admitted_ps, US(44));
    ck_assert_uint_eq(s.hit[2], 8);
}
END_TEST

/* The path key of the part that a block of a request is in. */
static uint64_t key_of(const struct request *request, uint32_t block_size, uint32_t block)
{
    struct prefix_chain chain;
    struct prefix_part part;
    uint32_t blocks;
    prefix_chain_begin(&chain, request, block_size);
    while (prefix_chain_next(&chain, block + 1, &part, &blocks)) {
        ck_assert_uint_ge(blocks, 1);
    }
    return chain.key;
}

static void told_is(const struct seen *s, uint32_t i, uint64_t key, uint32_t blocks,
                    uint64_t outcomes)
{
    ck_assert_uint_lt(i, s->told_count);
    ck_assert_uint_eq(s->told[i].key, key);
    ck_assert_uint_eq(s->told[i].blocks, blocks);
    ck_assert_uint_eq(s->told[i].outcomes, outcomes);
}

/* A router learns of a prompt's blocks with its first token, and of those that are gone. 10 blocks:
 * A's prompt has 8 in two chunks, told with its first token, not between them; then B, like nobody
 * else, takes 8: 2 never used, and A's last 6. */
START_TEST(a_listener_learns_at_outcomes)
{
    struct drive d;
    begin(&d);
    d.engine.max_num_batched_tokens = 64;
    d.engine.max_num_seqs = 4;
    d.engine.num_gpu_blocks = 10;
    struct request r[2] = {
        {.prompt_tokens = 128, .output_tokens = 1, .stream = 1},
        {.arrival_ps = PS_PER_SECOND, .prompt_tokens = 128, .output_tokens = 1},
    };
    struct seen s = run_both(&d, r, 2, NULL);
    ck_assert_uint_eq(s.told_count, 2);
    uint64_t key = key_of(&r[0], 16, 0);
    told_is(&s, 0, key, 8, 2);
    told_is(&s, 1, key, 2, 4);
    drive_free(&d);
}
END_TEST

/* Of outputs at the end: A has 64 + 39 tokens then. B's first token and end, in between, tell
 * nothing of A. */
START_TEST(a_listener_learns_of_outputs_at_the_end)
{
    struct drive d;
    begin(&d);
    struct request r[2] = {
        {.prompt_tokens = 64, .output_tokens = 40, .stream = 1},
        {.arrival_ps = US(300), .prompt_tokens = 32, .output_tokens = 2, .stream = 2},
    };
    struct seen s = run_both(&d, r, 2, NULL);
    ck_assert_int_lt(s.records[1].end_ps, s.records[0].end_ps);
    uint64_t a = key_of(&r[0], 16, 0), b = key_of(&r[1], 16, 0);
    ck_assert_uint_eq(s.told_count, 3);
    told_is(&s, 0, a, 4, 1);
    told_is(&s, 1, b, 2, 2);
    told_is(&s, 2, a, 6, 4);
    drive_free(&d);
}
END_TEST

/* At a cancel, of nothing while the prompt is not done (A, in its third chunk), else of what is
 * computed: 15 + 16 tokens of B's, of which C finds one more, that the iteration in flight had
 * stored. D finds A's three chunks. */
START_TEST(a_listener_learns_at_cancels)
{
    struct drive d;
    begin(&d);
    d.engine.max_num_batched_tokens = 64;
    d.engine.max_num_seqs = 4;
    d.patience_ps = US(205); /* chunks: 0 to 74 us, 74 to 148 us, 148 to 222 us */
    struct request r[4] = {
        {.prompt_tokens = 224, .output_tokens = 1, .stream = 1},
        {.arrival_ps = PS_PER_SECOND, .prompt_tokens = 15, .output_tokens = 40, .stream = 2},
        {.arrival_ps = 2 * PS_PER_SECOND, .prompt_tokens = 40, .output_tokens = 1, .stream = 2},
        {.arrival_ps = 3 * PS_PER_SECOND, .prompt_tokens = 224, .output_tokens = 1, .stream = 1},
    };
    struct seen s = run_both(&d, r, 4, NULL);
    ck_assert_uint_eq(s.records[0].outcome, OUTCOME_CANCELLED);
    ck_assert_uint_eq(s.records[1].outcome, OUTCOME_CANCELLED);
    ck_assert_uint_eq(s.hit[2], 32);
    ck_assert_uint_eq(s.hit[3], 192);
    uint64_t a = key_of(&r[0], 16, 0), b = key_of(&r[1], 16, 0);
    ck_assert_uint_eq(s.told_count, 3);
    told_is(&s, 0, b, 1, 3); /* the end is counted before it */
    told_is(&s, 1, b, 2, 5);
    told_is(&s, 2, a, 14, 7);
    drive_free(&d);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Many small cases with few contents, little memory and coincidences: spans and steps agree. */
START_TEST(spans_are_steps)
{
    uint64_t hits = 0, preemptions = 0, again = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t x = seed;
        struct drive d;
        begin(&d);
        d.engine.block_size = 1 + (int64_t)(next_random(&x) % 4);
        d.engine.max_num_seqs = 1 + (int64_t)(next_random(&x) % 5);
        d.engine.max_num_batched_tokens = d.engine.max_num_seqs + (int64_t)(next_random(&x) % 20);
        d.engine.num_gpu_blocks = 48 / d.engine.block_size + (int64_t)(next_random(&x) % 16);
        d.engine.scheduling_policy = (int)(next_random(&x) % 2);
        d.replicas = 1;
        d.patience_ps = next_random(&x) % 3 == 0 ? US(400) : 0;
        struct request r[24];
        for (size_t i = 0; i < 24; i++) {
            uint32_t shared = (uint32_t)(next_random(&x) % 3) * 5;
            r[i] = (struct request){.arrival_ps = US((int64_t)(i * (next_random(&x) % 40))),
                                    .prompt_tokens = 16 + (uint32_t)(next_random(&x) % 12),
                                    .output_tokens = (uint32_t)(next_random(&x) % 20),
                                    .priority = (int32_t)(next_random(&x) % 3),
                                    .stream = next_random(&x) % 4,
                                    .shared_prompt = (uint32_t)(next_random(&x) % 2),
                                    .shared_tokens = shared};
        }
        struct seen s = run_both(&d, r, 24, NULL);
        hits += s.hits;
        preemptions += s.preemptions;
        for (size_t i = 0; i < 24; i++) {
            again += s.again[i];
        }
        drive_free(&d);
    }
    ck_assert_uint_gt(hits, 20000);
    ck_assert_uint_gt(preemptions, 500);
    ck_assert_uint_gt(again, 1000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {t05_prefix_arithmetic,
                                  hashes_are_chained,
                                  a_turn_finds_the_one_before,
                                  hits_within_one_pass,
                                  distinct_prompts_hit_nothing,
                                  a_hit_counts_once,
                                  sharing_saves_memory_not_reads,
                                  eviction_takes_the_oldest_tail_first,
                                  a_hit_renews,
                                  duplicates_stay_private,
                                  own_blocks_are_found_after_a_preemption,
                                  cached_blocks_go_before_running_ones,
                                  cancelled_blocks_can_be_hit,
                                  an_arrival_fits_by_its_hit,
                                  a_need_can_shrink,
                                  a_listener_learns_at_outcomes,
                                  a_listener_learns_of_outputs_at_the_end,
                                  a_listener_learns_at_cancels,
                                  spans_are_steps,
                                  NULL};
    return suite_run("prefix cache", tests, 60);
}
