/* Routers: who gets a request, alone (through their callbacks) and in a run (T07). */
#include <math.h>

#include "sim/base/rng.h"
#include "sim/engine/prefix_chain.h"
#include "sim/fleet/router.h"
#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

/* A router and the loads it was told. */
struct bench {
    const struct router_type *type;
    void *state;
    uint32_t load[64];
    uint64_t requests;
};

static const struct router_pool bench_pools[3] = {{16, 64}, {16, 64}, {16, 64}};

static void bench_open_with(struct bench *b, const struct variant *variant, const void *config,
                            uint32_t pools)
{
    struct router_env env = {.pool_count = pools, .pools = bench_pools, .slots = 64, .seed = 1};
    *b = (struct bench){.type = variant->ops};
    b->state = b->type->create(config, &env);
}

static void bench_open(struct bench *b, const struct variant *variant, uint32_t pools)
{
    bench_open_with(b, variant, NULL, pools);
}

static void bench_load(struct bench *b, uint32_t pool, uint32_t slot, uint32_t load)
{
    b->load[slot] = load;
    if (b->type->load != NULL) {
        b->type->load(b->state, pool, slot, load);
    }
}

static uint32_t bench_pick(struct bench *b, const uint32_t *pools, uint32_t count)
{
    struct request request = {.id = b->requests++, .prompt_tokens = 1, .session = -1};
    return b->type->pick(b->state, &request, pools, count);
}

static const uint32_t pool_0 = 0;

/* Picks from pool 0; the request stays there. */
static uint32_t bench_send(struct bench *b)
{
    uint32_t slot = bench_pick(b, &pool_0, 1);
    ck_assert_uint_ne(slot, ROUTER_NONE);
    bench_load(b, 0, slot, b->load[slot] + 1);
    return slot;
}

START_TEST(nobody_ready_is_nobody)
{
    static const struct variant *const all[] = {
        &router_round_robin_variant, &router_random_variant, &router_least_loaded_variant,
        &router_power_of_two_variant, &router_session_sticky_variant};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct bench b;
        bench_open(&b, all[i], 2);
        ck_assert_uint_eq(bench_pick(&b, &pool_0, 1), ROUTER_NONE);
        b.type->ready(b.state, 1, 5, true);
        ck_assert_uint_eq(bench_pick(&b, &pool_0, 1), ROUTER_NONE);
        static const uint32_t both[] = {0, 1};
        ck_assert_uint_eq(bench_pick(&b, both, 2), 5);
        b.type->ready(b.state, 1, 5, false);
        ck_assert_uint_eq(bench_pick(&b, both, 2), ROUTER_NONE);
        b.type->destroy(b.state);
    }
}
END_TEST

/* Ties rotate: with requests that end before the next comes, every replica has its turn. */
START_TEST(ties_rotate)
{
    static const struct variant *const all[] = {&router_round_robin_variant,
                                                &router_least_loaded_variant};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        bench_open(&b, all[i], 1);
        for (uint32_t s = 0; s < 5; s++) {
            b.type->ready(b.state, 0, s, true);
        }
        for (uint32_t n = 0; n < 50; n++) {
            uint32_t slot = bench_send(&b);
            ck_assert_uint_eq(slot, n % 5);
            bench_load(&b, 0, slot, 0);
        }
        b.type->destroy(b.state);
    }
}
END_TEST

/* A replica that becomes ready beside three others with five requests each gets the next five from
 * least_loaded; with round_robin it has its turn within four requests, then every fourth. */
START_TEST(a_new_replica_gets_its_share)
{
    struct bench b;
    bench_open(&b, &router_least_loaded_variant, 1);
    for (uint32_t s = 0; s < 3; s++) {
        b.type->ready(b.state, 0, s, true);
    }
    for (uint32_t n = 0; n < 15; n++) {
        bench_send(&b);
    }
    b.type->ready(b.state, 0, 9, true);
    for (uint32_t n = 0; n < 5; n++) {
        ck_assert_uint_eq(bench_send(&b), 9);
    }
    for (uint32_t n = 0; n < 40; n++) {
        bench_send(&b);
    }
    for (uint32_t s = 0; s < 3; s++) {
        ck_assert_uint_eq(b.load[s], 15);
    }
    ck_assert_uint_eq(b.load[9], 15);
    b.type->destroy(b.state);

    bench_open(&b, &router_round_robin_variant, 1);
    for (uint32_t s = 0; s < 3; s++) {
        b.type->ready(b.state, 0, s, true);
    }
    for (uint32_t n = 0; n < 16; n++) {
        bench_send(&b);
    }
    b.type->ready(b.state, 0, 9, true);
    uint32_t before[64];
    memcpy(before, b.load, sizeof before);
    for (uint32_t n = 0; n < 4; n++) {
        bench_send(&b);
    }
    ck_assert_uint_eq(b.load[9], 1);
    for (uint32_t n = 4; n < 40; n++) {
        bench_send(&b);
    }
    static const uint32_t slots[] = {0, 1, 2, 9};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(b.load[slots[i]] - before[slots[i]], 10);
    }
    b.type->destroy(b.state);
}
END_TEST

/* Uniform over whoever is ready, in the pools allowed, by the request's number alone. */
START_TEST(random_is_uniform_and_keyed)
{
    struct bench b;
    bench_open(&b, &router_random_variant, 2);
    for (uint32_t s = 0; s < 10; s++) {
        b.type->ready(b.state, s % 2, s, true);
    }
    static const uint32_t both[] = {0, 1};
    enum { DRAWS = 100000 };
    double count[10] = {0};
    for (uint32_t n = 0; n < DRAWS; n++) {
        count[bench_pick(&b, both, 2)]++;
    }
    double chi2 = 0;
    for (size_t s = 0; s < 10; s++) {
        chi2 += (count[s] - DRAWS / 10) * (count[s] - DRAWS / 10) / (DRAWS / 10);
    }
    ck_assert_double_lt(chi2, 27.9); /* 99.9 % of chi-square with 9 degrees */
    /* The same numbers again, with other requests between and after a replica came and went. */
    uint32_t first[100];
    b.requests = 0;
    for (uint32_t n = 0; n < 100; n++) {
        first[n] = bench_pick(&b, both, 2);
    }
    b.type->ready(b.state, 0, 20, true);
    bench_pick(&b, both, 2);
    b.type->ready(b.state, 0, 20, false);
    for (uint32_t n = 100; n-- > 0;) {
        b.requests = n;
        ck_assert_uint_eq(bench_pick(&b, both, 2), first[n]);
    }
    b.type->destroy(b.state);
}
END_TEST

struct naive {
    uint32_t load, pool;
    uint64_t sent; /* number of the last operation that sent to it; 0: none since it is ready */
    bool ready;
};

/* Fewest in flight among the pools allowed, then the least recently sent to, then pools as listed,
 * then the lowest slot. */
static uint32_t naive_pick(const struct naive *slots, const uint32_t *pools, uint32_t count)
{
    uint32_t best = ROUTER_NONE;
    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t s = 0; s < 64; s++) {
            const struct naive *n = &slots[s];
            if (n->ready && n->pool == pools[p] &&
                (best == ROUTER_NONE || n->load < slots[best].load ||
                 (n->load == slots[best].load && n->sent < slots[best].sent))) {
                best = s;
            }
        }
    }
    return best;
}

static void naive_ready(struct bench *b, struct naive *n, uint32_t slot)
{
    n->pool = n->ready ? n->pool : (slot + n->load) % 3;
    n->ready = !n->ready;
    n->load = 0;
    n->sent = 0;
    b->load[slot] = 0;
    b->type->ready(b->state, n->pool, slot, n->ready);
}

/* 60,000 random operations on 64 slots in 3 pools, against the rule written plainly: more
 * dispatches than there are numbers for their order, and in the middle room for more slots. */
START_TEST(least_loaded_against_a_scan)
{
    struct bench b;
    bench_open(&b, &router_least_loaded_variant, 3);
    struct naive slots[64] = {0};
    uint64_t key = rng_key(1, 0, RNG_TEST, 0), picks = 0;
    for (uint64_t i = 1; i <= 60000; i++) {
        if (i == 25000) {
            b.type->resize(b.state, 100);
        }
        struct rng_pair draw = rng_draw(key, i, 0);
        uint32_t slot = draw.a % 64;
        struct naive *n = &slots[slot];
        if (draw.b % 8 == 0) {
            naive_ready(&b, n, slot);
        } else if (draw.b % 8 < 4 && n->ready && n->load > 0) {
            bench_load(&b, n->pool, slot, --n->load);
        } else {
            uint32_t pools[3] = {(uint32_t)(draw.b >> 8) % 3, 0, 0};
            pools[1] = (pools[0] + 1) % 3;
            pools[2] = (pools[0] + 2) % 3;
            uint32_t count = 1 + (uint32_t)(draw.b >> 16) % 3;
            uint32_t expected = naive_pick(slots, pools, count);
            ck_assert_uint_eq(bench_pick(&b, pools, count), expected);
            if (expected != ROUTER_NONE) {
                slots[expected].sent = i;
                bench_load(&b, slots[expected].pool, expected, ++slots[expected].load);
                picks++;
            }
        }
    }
    ck_assert_uint_gt(picks, 20000);
    b.type->destroy(b.state);
}
END_TEST

/* Two different replicas, each equally often first, and the one with less to do. */
START_TEST(power_of_two_takes_the_lesser)
{
    struct bench b;
    bench_open(&b, &router_power_of_two_variant, 1);
    for (uint32_t s = 0; s < 5; s++) {
        b.type->ready(b.state, 0, s, true);
        bench_load(&b, 0, s, s);
    }
    enum { DRAWS = 100000 };
    double count[5] = {0};
    for (uint32_t n = 0; n < DRAWS; n++) {
        count[bench_pick(&b, &pool_0, 1)]++;
    }
    /* Of the 10 pairs slot s is the lesser of those with the 4 − s above it. */
    for (uint32_t s = 0; s < 5; s++) {
        double expected = DRAWS * (4 - s) / 10.0;
        ck_assert_double_le(fabs(count[s] - expected), 4 * sqrt(expected));
    }
    /* Equal loads: both orders of a pair come, so each of two gets half. */
    for (uint32_t s = 0; s < 5; s++) {
        bench_load(&b, 0, s, 7);
        count[s] = 0;
    }
    for (uint32_t n = 0; n < DRAWS; n++) {
        count[bench_pick(&b, &pool_0, 1)]++;
    }
    for (uint32_t s = 0; s < 5; s++) {
        ck_assert_double_le(fabs(count[s] - DRAWS / 5.0), 4 * sqrt(DRAWS / 5.0));
    }
    b.type->destroy(b.state);
}
END_TEST

/* The largest load of n requests that stay, on n replicas, grows like log log n with two choices
 * and like log n / log log n with one. */
START_TEST(two_choices_beat_one)
{
    static const struct variant *const all[] = {&router_random_variant,
                                                &router_power_of_two_variant};
    uint32_t most[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        bench_open(&b, all[i], 1);
        for (uint32_t s = 0; s < 64; s++) {
            b.type->ready(b.state, 0, s, true);
        }
        for (uint32_t n = 0; n < 64 * 16; n++) {
            bench_send(&b);
        }
        for (uint32_t s = 0; s < 64; s++) {
            most[i] = b.load[s] > most[i] ? b.load[s] : most[i];
        }
        b.type->destroy(b.state);
    }
    ck_assert_uint_le(most[1], 16 + 3);
    ck_assert_uint_ge(most[0], 16 + 6);
}
END_TEST

static uint32_t bench_send_session(struct bench *b, uint32_t class_index, int64_t session)
{
    struct request request = {
        .id = b->requests++, .prompt_tokens = 1, .class_index = class_index, .session = session};
    uint32_t slot = b->type->pick(b->state, &request, &pool_0, 1);
    bench_load(b, 0, slot, b->load[slot] + 1);
    return slot;
}

/* A session stays where it began, whatever the loads; when its replica goes it moves, and stays
 * there even if another replica comes to the old slot. */
START_TEST(sessions_stick)
{
    enum { SESSIONS = 5000 };
    static uint32_t home[SESSIONS];
    struct bench b;
    bench_open(&b, &router_session_sticky_variant, 1);
    for (uint32_t s = 0; s < 8; s++) {
        b.type->ready(b.state, 0, s, true);
    }
    for (int64_t i = 0; i < SESSIONS; i++) {
        home[i] = bench_send_session(&b, i % 2, i / 2);
        ck_assert_uint_eq(home[i], i % 8); /* the least loaded, in turn */
    }
    bench_load(&b, 0, 3, 100000);
    for (int64_t i = 0; i < SESSIONS; i++) {
        ck_assert_uint_eq(bench_send_session(&b, i % 2, i / 2), home[i]);
    }
    b.type->ready(b.state, 0, 3, false);
    b.load[3] = 0;
    for (int64_t i = 0; i < SESSIONS; i++) {
        uint32_t slot = bench_send_session(&b, i % 2, i / 2);
        ck_assert(home[i] == 3 ? slot != 3 : slot == home[i]);
        home[i] = slot;
    }
    b.type->ready(b.state, 0, 3, true);
    for (int64_t i = 0; i < SESSIONS; i++) {
        ck_assert_uint_eq(bench_send_session(&b, i % 2, i / 2), home[i]);
    }
    /* Without a session: the least loaded. */
    ck_assert_uint_eq(bench_send_session(&b, 0, -1), 3);
    b.type->destroy(b.state);
}
END_TEST

/* Sessions that are over are forgotten, in any order, and nobody else is: their numbers, were they
 * to come again, would be new ones. */
START_TEST(sessions_that_are_over_are_forgotten)
{
    enum { NUMBERS = 3000, ROUNDS = 60000 };
    static uint32_t home[NUMBERS];
    struct bench b;
    bench_open(&b, &router_session_sticky_variant, 1);
    for (uint32_t s = 0; s < 8; s++) {
        b.type->ready(b.state, 0, s, true);
    }
    for (uint32_t i = 0; i < NUMBERS; i++) {
        home[i] = ROUTER_NONE;
    }
    uint32_t moved = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct rng_pair bits = rng_draw(7, round, 0);
        uint32_t number = (uint32_t)(bits.a % NUMBERS);
        struct request last = {.class_index = 0, .session = number};
        if (bits.b % 2 == 0) {
            b.type->over(b.state, &last); /* of one that never began, too */
            home[number] = ROUTER_NONE;
            continue;
        }
        for (uint32_t s = 0; s < 8; s++) {
            bench_load(&b, 0, s, s == round % 8 ? 0 : 1 + s);
        }
        uint32_t slot = bench_send_session(&b, 0, number);
        ck_assert_uint_eq(slot, home[number] == ROUTER_NONE ? round % 8 : home[number]);
        moved += home[number] != ROUTER_NONE && slot != round % 8;
        home[number] = slot;
    }
    ck_assert_uint_gt(moved, 1000);
    b.type->destroy(b.state);
}
END_TEST

/* ---- prompts that replicas have cached ---- */

/* A config with defaults, changed by "key=value" texts. */
static struct variant_value config_of(struct arena *arena, const struct variant *variant,
                                      const char *change)
{
    return change ? drive_variant(arena, variant, change, NULL)
                  : drive_variant(arena, variant, NULL);
}

static struct request turn(uint64_t stream, uint32_t prompt)
{
    return (struct request){.prompt_tokens = prompt, .session = -1, .stream = stream};
}

/* Tells the router that a slot has so many blocks of 16 of a stream. */
static void bench_cached(struct bench *b, uint32_t slot, uint64_t stream, uint32_t blocks)
{
    struct request request = turn(stream, 16 * 1000);
    struct prefix_chain chain;
    struct prefix_part part;
    uint32_t has;
    prefix_chain_begin(&chain, &request, 16);
    ck_assert(prefix_chain_next(&chain, 1, &part, &has));
    b->type->cached(b->state, slot, chain.key, blocks);
}

static uint32_t bench_turn(struct bench *b, uint64_t stream, uint32_t prompt)
{
    struct request request = turn(stream, prompt);
    request.id = b->requests++;
    return b->type->pick(b->state, &request, &pool_0, 1);
}

START_TEST(prefix_aware_weighs_match_and_load)
{
    struct arena arena;
    arena_init(&arena);
    struct variant_value value = config_of(&arena, &router_prefix_aware_variant, NULL);
    struct bench b;
    bench_open_with(&b, value.type, value.config, 1);
    for (uint32_t s = 0; s < 4; s++) {
        b.type->ready(b.state, 0, s, true);
        bench_load(&b, 0, s, 10 + s);
    }
    bench_cached(&b, 2, 7, 10);
    bench_cached(&b, 3, 7, 60);
    /* 960 of 1,600 tokens at slot 3, 160 at slot 2. */
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 3);
    /* What is cached behind the prompt's end does not count: a tie, so the lesser load. */
    ck_assert_uint_eq(bench_turn(&b, 7, 161), 2);
    /* Below 30 % of the prompt the least loaded gets it; another conversation too. */
    ck_assert_uint_eq(bench_turn(&b, 7, 960 * 4), 0);
    ck_assert_uint_eq(bench_turn(&b, 8, 1600), 0);
    /* At least one token is computed: a prompt of 16 has no block to find. */
    ck_assert_uint_eq(bench_turn(&b, 7, 16), 0);
    /* Uneven: by more than 32 requests and half as much again. */
    bench_load(&b, 0, 3, 42);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 3);
    bench_load(&b, 0, 3, 43);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 0);
    bench_load(&b, 0, 3, 13);
    /* Evicted, or gone with its replica. */
    bench_cached(&b, 3, 7, 0);
    ck_assert_uint_eq(bench_turn(&b, 7, 400), 2);
    b.type->ready(b.state, 0, 2, false);
    b.type->ready(b.state, 0, 2, true);
    bench_load(&b, 0, 2, 12);
    ck_assert_uint_eq(bench_turn(&b, 7, 400), 0);
    b.type->destroy(b.state);
    arena_free(&arena);
}
END_TEST

/* A prompt that everyone holds is no reason to look at everyone: the least loaded holds it too. */
START_TEST(prefix_aware_among_many_holders)
{
    struct arena arena;
    arena_init(&arena);
    struct variant_value value = config_of(&arena, &router_prefix_aware_variant, NULL);
    struct router_env env = {.pool_count = 1, .pools = bench_pools, .slots = 2000, .seed = 1};
    const struct router_type *type = value.type->ops;
    void *state = type->create(value.config, &env);
    struct bench b = {.type = type, .state = state};
    for (uint32_t s = 0; s < 2000; s++) {
        type->ready(state, 0, s, true);
        type->load(state, 0, s, 1 + s % 17 + (s == 1234 ? 0 : 1));
        bench_cached(&b, s, 7, 60);
    }
    type->load(state, 0, 1234, 0);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 1234);
    /* One that has more of it is found among them all. */
    bench_cached(&b, 99, 7, 5); /* less */
    type->load(state, 0, 1234, 5);
    uint32_t slot = bench_turn(&b, 7, 1600);
    ck_assert_uint_ne(slot, 99);
    type->destroy(state);
    arena_free(&arena);
}
END_TEST

static const uint32_t LOADS[4] = {40, 30, 20, 10};

static void weighted_open(struct bench *b, struct arena *arena, const char *change)
{
    struct variant_value value = config_of(arena, &router_weighted_variant, change);
    bench_open_with(b, value.type, value.config, 1);
    for (uint32_t s = 0; s < 4; s++) {
        b->type->ready(b->state, 0, s, true);
    }
    for (uint32_t s = 0; s < 4; s++) {
        struct router_reading reading = {
            .in_flight = LOADS[s], .waiting = s == 0 ? 0 : 16, .kv_millionths = 500000};
        b->type->reading(b->state, 0, s, &reading);
        bench_load(b, 0, s, LOADS[s]);
    }
}

/* Change a weight and the routing changes. */
START_TEST(weights_decide)
{
    struct arena arena;
    arena_init(&arena);
    struct bench b;
    /* Of 64 seats: queue_depth of slot 0 is 1, of the others 0.75; the affinity of slot 2 is 0.6.
     */
    weighted_open(&b, &arena, NULL);
    bench_cached(&b, 2, 7, 60);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 2);
    b.type->destroy(b.state);
    weighted_open(&b, &arena, "prefix_affinity=0.5");
    bench_cached(&b, 2, 7, 60);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 0);
    b.type->destroy(b.state);
    weighted_open(&b, &arena, "active_requests=50");
    bench_cached(&b, 2, 7, 60);
    ck_assert_uint_eq(bench_turn(&b, 7, 1600), 3);
    b.type->destroy(b.state);
    arena_free(&arena);
}
END_TEST

/* One that holds a hundred parts of a prompt is looked at once: who holds fewer, and is the better
 * choice for its load, is found behind it. */
START_TEST(a_holder_of_many_parts_is_one)
{
    enum { PARTS = 100, FEW = 30 };
    struct arena arena;
    arena_init(&arena);
    struct bench b;
    weighted_open(&b, &arena, "prefix_affinity=1");
    static const struct router_reading readings[4] = {
        {10, 0, 500000}, {60, 32, 500000}, {60, 60, 500000}, {10, 0, 400000}};
    for (uint32_t s = 0; s < 4; s++) {
        b.type->reading(b.state, 0, s, &readings[s]);
        bench_load(&b, 0, s, readings[s].in_flight);
    }
    struct token_hash_pool *pool = token_hashes_pool_create();
    struct request request = {.prompt_tokens = 16 * PARTS + 1, .session = -1};
    request.hashes = token_hashes_acquire(pool, PARTS, 16);
    for (uint32_t i = 0; i < PARTS; i++) {
        request.hashes->ids[i] = 1000 + i;
    }
    struct prefix_chain chain;
    struct prefix_part part;
    uint32_t blocks;
    prefix_chain_begin(&chain, &request, 16);
    for (uint32_t i = 0; prefix_chain_next(&chain, PARTS, &part, &blocks); i++) {
        b.type->cached(b.state, 1, chain.key, 1);
        if (i < FEW) {
            b.type->cached(b.state, 0, chain.key, 1);
        }
    }
    /* Of weights 1, 2 and 2: 0.3 + 2 + 1 at slot 0, 1 + 1 + 1 at slot 1, 0 + 2 + 1.2 at slot 3. */
    ck_assert_uint_eq(b.type->pick(b.state, &request, &pool_0, 1), 0);
    token_hashes_release(request.hashes);
    token_hashes_pool_free(pool);
    b.type->destroy(b.state);
    arena_free(&arena);
}
END_TEST

/* Prompts that nobody knows go round, whoever else gets prompts in between. */
START_TEST(cold_prompts_go_round)
{
    struct arena arena;
    arena_init(&arena);
    struct bench b;
    weighted_open(&b, &arena, "no_hit_lru=100");
    uint32_t count[4] = {0};
    bench_cached(&b, 2, 7, 60);
    for (uint32_t n = 0; n < 40; n++) {
        count[bench_turn(&b, 1000 + n, 1600)]++;
        ck_assert_uint_eq(bench_turn(&b, 7, 1000), 2);
    }
    for (uint32_t s = 0; s < 4; s++) {
        ck_assert_uint_eq(count[s], 10);
    }
    b.type->destroy(b.state);
    arena_free(&arena);
}
END_TEST

#define FOUR(step)                                                                                 \
    "name: t07\nhorizon: 1 h\n"                                                                    \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  router: {policy: least_loaded}\n"                                                           \
    "  pools:\n"                                                                                   \
    "    - {name: main, step_time: {" step "}, autoscaler: {policy: static, replicas: 4}}\n"

static void count_by_replica(const struct run_text *r, size_t from, uint32_t count[4])
{
    for (size_t i = 0; i < 4; i++) {
        count[i] = 0;
    }
    for (size_t i = from; i < r->row_count; i++) {
        ck_assert_int_ge(r->rows[i].replica, 0);
        ck_assert_int_lt(r->rows[i].replica, 4);
        count[r->rows[i].replica]++;
    }
}

/* T07: 4 idle replicas, 8 equal requests at one instant: 2 each, because own dispatches count. */
START_TEST(t07_herd_at_one_instant)
{
    struct run_text r = run_text_do(FOUR("model: constant, step: 10 ms"),
                                    "0,10,5\n0,10,5\n0,10,5\n0,10,5\n0,10,5\n0,10,5\n0,10,5\n"
                                    "0,10,5\n");
    uint32_t count[4];
    count_by_replica(&r, 0, count);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(count[i], 2);
        ck_assert_int_eq(r.rows[i].end_ps, MILLIS(50));
    }
    run_text_free(&r);
}
END_TEST

/* T07: 100 prompts of 1 s each, 1 ms apart, after the herd has gone: 25 each. */
START_TEST(t07_a_hundred_prompts)
{
    char trace[4096] = "0,10,1\n0,10,1\n0,10,1\n0,10,1\n0,10,1\n0,10,1\n0,10,1\n0,10,1\n";
    for (int i = 0; i < 100; i++) {
        size_t used = strlen(trace);
        snprintf(trace + used, sizeof trace - used, "100.%03d,1000,1\n", i);
    }
    struct run_text r = run_text_do(
        FOUR("model: rate, prefill_tokens_per_s: 1000, decode_tokens_per_s: 1000"), trace);
    ck_assert_uint_eq(r.row_count, 108);
    uint32_t count[4];
    count_by_replica(&r, 8, count);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(count[i], 25);
    }
    run_text_free(&r);
}
END_TEST

/* T07: replica 0 has nothing to do and the others one request each when loads are read; without
 * counting its own, the router sends all 8 there until the next reading, and says so. */
static void t07_stale(const char *signals, const uint32_t expected[4], uint64_t stale)
{
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "name: t07\nhorizon: 1 h\n"
             "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
             "fleet:\n"
             "  router: {policy: least_loaded, signals: {%s}}\n"
             "  pools:\n"
             "    - {name: main, step_time: {model: constant, step: 10 ms}, "
             "autoscaler: {policy: static, replicas: 4}}\n",
             signals);
    /* The first four go out in turn, before a reading or after one that saw nobody: 0 ends at once,
     * the others stay a second. */
    struct run_text r = run_text_do(yaml, "0,10,1\n0,10,100\n0,10,100\n0,10,100\n"
                                          "0.15,10,5\n0.15,10,5\n0.15,10,5\n0.15,10,5\n"
                                          "0.15,10,5\n0.15,10,5\n0.15,10,5\n0.15,10,5\n");
    uint32_t count[4];
    count_by_replica(&r, 4, count);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(count[i], expected[i]);
    }
    ck_assert_uint_eq((uint64_t)run_text_summary(&r)->router_stale, stale);
    run_text_free(&r);
}

START_TEST(t07_old_loads)
{
    static const uint32_t all_on_0[] = {8, 0, 0, 0}, even[] = {2, 2, 2, 2};
    t07_stale("interval: 100 ms, count_own: false", all_on_0, 7);
    /* Nobody had anything at the reading of 0 s; the one of 100 ms is on its way until 160 ms. Own
     * dispatches count, so the herd spreads; what ended is not known: 4 + 8 over 4. */
    t07_stale("interval: 100 ms, delay: 60 ms", even, 2);
}
END_TEST

/* With readings as frequent as anything happens, the policy decides as if it knew all. */
START_TEST(frequent_readings_are_like_knowing)
{
    char trace[8192] = "";
    for (int i = 0; i < 200; i++) {
        size_t used = strlen(trace);
        snprintf(trace + used, sizeof trace - used, "%d.%03d5,%d,%d\n", i / 50, i % 50 * 20,
                 100 + i * 37 % 900, 1 + i * 13 % 40);
    }
    static const char *const signals[] = {"", ", signals: {interval: 1 ms}"};
    struct run_text runs[2];
    for (int i = 0; i < 2; i++) {
        char yaml[2048];
        snprintf(yaml, sizeof yaml,
                 "name: t07\nhorizon: 1 min\n"
                 "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
                 "fleet:\n"
                 "  router: {policy: least_loaded%s}\n"
                 "  pools:\n"
                 "    - {name: main, step_time: {model: constant, step: 10 ms}, "
                 "autoscaler: {policy: static, replicas: 5}}\n",
                 signals[i]);
        runs[i] = run_text_do(yaml, trace);
    }
    ck_assert_str_eq(runs[0].csv, runs[1].csv);
    run_text_free(&runs[0]);
    run_text_free(&runs[1]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {nobody_ready_is_nobody,
                                  ties_rotate,
                                  a_new_replica_gets_its_share,
                                  random_is_uniform_and_keyed,
                                  least_loaded_against_a_scan,
                                  power_of_two_takes_the_lesser,
                                  two_choices_beat_one,
                                  sessions_stick,
                                  sessions_that_are_over_are_forgotten,
                                  prefix_aware_weighs_match_and_load,
                                  prefix_aware_among_many_holders,
                                  weights_decide,
                                  a_holder_of_many_parts_is_one,
                                  cold_prompts_go_round,
                                  t07_herd_at_one_instant,
                                  t07_a_hundred_prompts,
                                  t07_old_loads,
                                  frequent_readings_are_like_knowing,
                                  NULL};
    return suite_run("router", tests, 60);
}
