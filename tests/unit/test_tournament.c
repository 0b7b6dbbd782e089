/* The winner tree against a linear search. */
#include "sim/base/rng.h"
#include "sim/base/tournament.h"
#include "tests/unit/suite_run.h"

/* The lowest slot with the smallest key. */
static uint32_t search(const uint64_t *keys, uint32_t slots)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < slots; i++) {
        best = keys[i] < keys[best] ? i : best;
    }
    return best;
}

static void ck_winner(const struct tournament *t, const uint64_t *keys, uint32_t slots)
{
    uint32_t best = search(keys, slots);
    ck_assert_uint_eq(tournament_winner(t), best);
    ck_assert_uint_eq(tournament_key(t), keys[best]);
}

START_TEST(random_keys_with_many_ties)
{
    for (uint32_t slots = 1; slots <= 70; slots++) {
        uint64_t keys[70];
        struct tournament t;
        tournament_init(&t, slots);
        for (uint32_t i = 0; i < slots; i++) {
            keys[i] = TOURNAMENT_IDLE;
        }
        ck_winner(&t, keys, slots);
        for (uint64_t step = 0; step < 3000; step++) {
            struct rng_pair bits = rng_draw(1, slots, step);
            uint32_t slot = (uint32_t)(bits.a % slots);
            uint64_t kind = bits.b % 10;
            keys[slot] = kind == 0   ? TOURNAMENT_IDLE
                         : kind == 1 ? TOURNAMENT_IDLE - 1
                         : kind == 2 ? bits.b
                                     : bits.b >> 61;
            tournament_set(&t, slot, keys[slot]);
            ck_winner(&t, keys, slots);
        }
        tournament_free(&t);
    }
}
END_TEST

START_TEST(growing_keeps_the_keys)
{
    enum { MOST = 5000 };
    static uint64_t keys[MOST];
    struct tournament t;
    tournament_init(&t, 0);
    ck_assert_uint_eq(tournament_key(&t), TOURNAMENT_IDLE);
    for (uint32_t slots = 1; slots <= MOST; slots++) {
        tournament_resize(&t, slots);
        ck_assert_uint_eq(t.slots, slots);
        keys[slots - 1] = TOURNAMENT_IDLE;
        struct rng_pair bits = rng_draw(2, slots, 0);
        uint32_t slot = (uint32_t)(bits.a % slots);
        keys[slot] = bits.b % 1000;
        tournament_set(&t, slot, keys[slot]);
        if (slots < 200 || slots % 50 == 0) {
            ck_winner(&t, keys, slots);
        }
    }
    tournament_free(&t);
}
END_TEST

/* Taking the winner out again and again sorts, ties by slot. */
START_TEST(draining_sorts)
{
    enum { SLOTS = 1000 };
    struct tournament t;
    tournament_init(&t, SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        tournament_set(&t, i, rng_draw(3, i, 0).a % 100);
    }
    uint64_t last_key = 0;
    uint32_t last_slot = 0, taken = 0;
    for (; tournament_key(&t) != TOURNAMENT_IDLE; taken++) {
        uint64_t key = tournament_key(&t);
        uint32_t slot = tournament_winner(&t);
        ck_assert(taken == 0 || key > last_key || (key == last_key && slot > last_slot));
        last_key = key;
        last_slot = slot;
        tournament_set(&t, slot, TOURNAMENT_IDLE);
    }
    ck_assert_uint_eq(taken, SLOTS);
    tournament_free(&t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_keys_with_many_ties, growing_keeps_the_keys,
                                  draining_sorts, NULL};
    return suite_run("tournament", tests, 30);
}
