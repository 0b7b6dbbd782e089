/* The winner tree of one word per node against a linear search. */
#include "sim/base/rank_tree.h"
#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

enum { SLOTS_MOST = 70 };

/* The lowest slot with the smallest key. */
static uint32_t search(const uint64_t *keys, uint32_t slots)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < slots; i++) {
        best = keys[i] < keys[best] ? i : best;
    }
    return best;
}

static void ck_winner(const struct rank_tree *t, const uint64_t *keys, uint32_t slots)
{
    uint32_t best = search(keys, slots);
    ck_assert_uint_eq(rank_tree_winner(t), best);
    ck_assert_uint_eq(rank_tree_key(t), keys[best]);
}

START_TEST(random_keys_with_many_ties)
{
    for (uint32_t slots = 1; slots <= SLOTS_MOST; slots++) {
        uint64_t keys[SLOTS_MOST];
        struct rank_tree t;
        rank_tree_init(&t, slots);
        uint64_t idle = rank_tree_idle(&t);
        for (uint32_t i = 0; i < slots; i++) {
            keys[i] = idle;
        }
        ck_winner(&t, keys, slots);
        for (uint64_t step = 0; step < 3000; step++) {
            struct rng_pair bits = rng_draw(1, slots, step);
            uint32_t slot = (uint32_t)(bits.a % slots);
            uint64_t kind = bits.b % 10;
            keys[slot] = kind == 0   ? idle
                         : kind == 1 ? idle - 1
                         : kind == 2 ? bits.b % idle
                                     : bits.b >> 61;
            rank_tree_set(&t, slot, keys[slot]);
            ck_assert_uint_eq(rank_tree_key_at(&t, slot), keys[slot]);
            ck_winner(&t, keys, slots);
        }
        rank_tree_free(&t);
    }
}
END_TEST

/* A slot and its key share 64 bits, whatever the number of slots. */
START_TEST(keys_get_what_slots_leave)
{
    static const struct {
        uint32_t slots, bits;
    } cases[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {1024, 10}, {1025, 11}, {100000, 17}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rank_tree t;
        rank_tree_init(&t, cases[i].slots);
        ck_assert_uint_eq(rank_tree_idle(&t), UINT64_MAX >> cases[i].bits);
        ck_assert_uint_eq(rank_tree_key(&t), rank_tree_idle(&t));
        uint32_t last = cases[i].slots - 1;
        rank_tree_set(&t, last, rank_tree_idle(&t) - 1);
        ck_assert_uint_eq(rank_tree_winner(&t), last);
        ck_assert_uint_eq(rank_tree_key(&t), rank_tree_idle(&t) - 1);
        rank_tree_free(&t);
    }
}
END_TEST

/* Taking the winner out again and again sorts, ties by slot. */
START_TEST(draining_sorts)
{
    enum { SLOTS = 1000 };
    struct rank_tree t;
    rank_tree_init(&t, SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        rank_tree_set(&t, i, rng_draw(3, i, 0).a % 100);
    }
    uint64_t last_key = 0;
    uint32_t last_slot = 0, taken = 0;
    for (; rank_tree_key(&t) != rank_tree_idle(&t); taken++) {
        uint64_t key = rank_tree_key(&t);
        uint32_t slot = rank_tree_winner(&t);
        ck_assert(taken == 0 || key > last_key || (key == last_key && slot > last_slot));
        last_key = key;
        last_slot = slot;
        rank_tree_set(&t, slot, rank_tree_idle(&t));
    }
    ck_assert_uint_eq(taken, SLOTS);
    rank_tree_free(&t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_keys_with_many_ties, keys_get_what_slots_leave,
                                  draining_sorts, NULL};
    return suite_run("rank_tree", tests, 30);
}
