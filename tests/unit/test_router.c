/* Routers: who gets a request, alone (through their callbacks) and in a run (T07). */
#include <math.h>

#include "sim/base/rng.h"
#include "sim/fleet/router.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

/* A router and the loads it was told. */
struct bench {
    const struct router_type *type;
    void *state;
    uint32_t load[64];
    uint64_t requests;
};

static void bench_open(struct bench *b, const struct variant *variant, uint32_t pools)
{
    struct router_env env = {.pool_count = pools, .slots = 64, .seed = 1};
    *b = (struct bench){.type = variant->ops};
    b->state = b->type->create(NULL, &env);
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
    struct request request = {.id = b->requests++, .prompt_tokens = 1};
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
    static const struct variant *const all[] = {&router_round_robin_variant, &router_random_variant,
                                                &router_least_loaded_variant};
    for (size_t i = 0; i < 3; i++) {
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

/* 20,000 random operations on 64 slots in 3 pools, against the rule written plainly. */
START_TEST(least_loaded_against_a_scan)
{
    struct bench b;
    bench_open(&b, &router_least_loaded_variant, 3);
    struct naive slots[64] = {0};
    uint64_t key = rng_key(1, 0, RNG_TEST, 0), picks = 0;
    for (uint64_t i = 1; i <= 20000; i++) {
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
    ck_assert_uint_gt(picks, 5000);
    b.type->destroy(b.state);
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

int main(void)
{
    const TTest *const tests[] = {nobody_ready_is_nobody,       ties_rotate,
                                  a_new_replica_gets_its_share, random_is_uniform_and_keyed,
                                  least_loaded_against_a_scan,  t07_herd_at_one_instant,
                                  t07_a_hundred_prompts,        NULL};
    return suite_run("router", tests, 60);
}
