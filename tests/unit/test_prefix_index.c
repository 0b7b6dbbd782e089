/* Who holds what of which prompt: the map against a plain table, under random operations. */
#include "sim/fleet/prefix_index.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

enum { SLOTS = 40, NODES = 3000 };

static uint32_t naive[NODES][SLOTS];

/* Few low bits, so that entries crowd and wrap around the end of the table. */
static uint64_t node_key(uint32_t node)
{
    return (uint64_t)node << 40 | (node % 7 == 0 ? 1023 : node % 97);
}

static void check_node(const struct prefix_index *index, uint32_t node)
{
    size_t count, live = 0, expected = 0;
    const struct prefix_holder *held = prefix_index_holders(index, node_key(node), &count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || held[i - 1].slot < held[i].slot);
        if (prefix_index_holds(index, &held[i])) {
            live++;
            ck_assert_uint_eq(held[i].blocks, naive[node][held[i].slot]);
        }
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        expected += naive[node][slot] > 0;
        ck_assert_uint_eq(prefix_index_blocks(index, node_key(node), slot), naive[node][slot]);
    }
    ck_assert_uint_eq(live, expected);
}

START_TEST(index_against_a_table)
{
    memset(naive, 0, sizeof naive);
    struct prefix_index *index = prefix_index_create(SLOTS / 2);
    prefix_index_resize(index, SLOTS);
    uint64_t key = rng_key(1, 0, RNG_TEST, 1);
    for (uint64_t i = 0; i < 200000; i++) {
        struct rng_pair draw = rng_draw(key, i, 0);
        uint32_t slot = draw.a % SLOTS;
        /* A few nodes are held by many. */
        uint32_t node = draw.a >> 62 == 0 ? (uint32_t)(draw.b % 3) : (uint32_t)(draw.b % NODES);
        if (i % 5000 == 4999) {
            prefix_index_forget(index, slot);
            for (uint32_t n = 0; n < NODES; n++) {
                naive[n][slot] = 0;
            }
            continue;
        }
        uint32_t blocks = draw.b >> 60 < 7 ? 0 : (uint32_t)(draw.b >> 40 & 63) + 1;
        prefix_index_put(index, slot, node_key(node), blocks);
        naive[node][slot] = blocks;
        if (i % 64 == 0) {
            check_node(index, node);
        }
    }
    for (uint32_t node = 0; node < NODES; node++) {
        check_node(index, node);
    }
    prefix_index_free(index);
}
END_TEST

/* What was taken away leaves no gap that hides others. */
START_TEST(emptied_and_filled_again)
{
    struct prefix_index *index = prefix_index_create(1);
    for (int round = 0; round < 3; round++) {
        for (uint32_t node = 0; node < NODES; node++) {
            prefix_index_put(index, 0, node_key(node), node + 1);
        }
        for (uint32_t node = 0; node < NODES; node++) {
            ck_assert_uint_eq(prefix_index_blocks(index, node_key(node), 0), node + 1);
            prefix_index_put(index, 0, node_key(node), 0);
            size_t count;
            ck_assert_ptr_null(prefix_index_holders(index, node_key(node), &count));
            ck_assert_uint_eq(count, 0);
        }
    }
    prefix_index_free(index);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {index_against_a_table, emptied_and_filled_again, NULL};
    return suite_run("prefix_index", tests, 60);
}
