/* Placement of experts: EPLB's published example, equal slots, no two copies on one GPU. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "models/moe_placement.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* max/mean of the GPUs' loads. */
static double balance(const struct moe_placement *p, const double *load)
{
    double most = 0, all = 0;
    size_t each = p->slots / p->ranks;
    for (size_t g = 0; g < p->ranks; g++) {
        double sum = 0;
        for (size_t s = g * each; s < (g + 1) * each; s++) {
            sum += load[p->expert[s]] / (double)p->copies[p->expert[s]];
        }
        most = sum > most ? sum : most;
        all += sum;
    }
    return most * (double)p->ranks / all;
}

/* The example of EPLB's README: 12 experts in 4 groups, 16 slots on 2 nodes of 4 GPUs. */
START_TEST(test_published_example)
{
    static const double load[2][12] = {{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
                                       {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}};
    static const int32_t published[2][16] = {{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
                                             {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}};
    static const double expected[2] = {1.20813, 1.24221};
    struct moe_placement_shape shape = {12, 4, 8, 2, 4};
    for (int layer = 0; layer < 2; layer++) {
        struct moe_placement p;
        moe_placement_init(&p, &shape);
        moe_placement_fill(&p, MOE_PLACEMENT_EPLB, &shape, load[layer]);
        ck_assert_double_eq_tol(balance(&p, load[layer]), expected[layer], 5e-6);
        ck_assert_int_eq(memcmp(p.expert, published[layer], sizeof published[layer]), 0);
        moe_placement_free(&p);
    }
}
END_TEST

/* Whether the slots are full, every expert is there, and no GPU has two copies of one. */
static bool is_sound(const struct moe_placement *p, const struct moe_placement_shape *shape)
{
    size_t each = p->slots / p->ranks, slots = 0;
    bool sound = p->slots == shape->experts + shape->redundant;
    for (size_t e = 0; e < p->experts; e++) {
        sound &= p->copies[e] >= 1;
        slots += (size_t)p->copies[e];
    }
    for (size_t s = 0; s < p->slots; s++) {
        sound &= p->expert[s] >= 0 && (size_t)p->expert[s] < p->experts;
        for (size_t t = s + 1; t < (s / each + 1) * each; t++) {
            sound &= p->expert[s] != p->expert[t];
        }
    }
    return sound && slots == p->slots;
}

/* Every kind, any load (an expert with nearly all of it too), many copies on few GPUs. */
START_TEST(test_never_twice_on_one_gpu)
{
    static const size_t gpus[] = {1, 2, 3, 4, 8, 16, 32};
    size_t tried = 0, tight = 0;
    for (int round = 0; round < 4000; round++) {
        size_t ranks = gpus[draw(7)], each = 1 + draw(12), slots = ranks * each;
        size_t experts = 1 + draw(slots), nodes = ranks % 2 == 0 && draw(2) ? 2 : 1;
        size_t groups = experts % 4 == 0 && draw(2) ? 4 : 1;
        struct moe_placement_shape shape = {experts, slots - experts, ranks, nodes, groups};
        if (moe_placement_refuse(&shape) != NULL) {
            ck_assert_uint_gt(slots - experts, experts * (ranks - 1));
            continue;
        }
        double load[400];
        for (size_t e = 0; e < experts; e++) {
            load[e] = draw(3) == 0 ? 0 : (double)draw(draw(2) ? 10 : 100000);
        }
        for (int kind = 0; kind < MOE_PLACEMENT_COUNT; kind++) {
            struct moe_placement p;
            moe_placement_init(&p, &shape);
            moe_placement_fill(&p, (enum moe_placement_kind)kind, &shape, load);
            ck_assert(is_sound(&p, &shape));
            moe_placement_free(&p);
            tried++;
        }
        tight += slots - experts == experts * (ranks - 1);
    }
    ck_assert_uint_gt(tried, 4000);
    ck_assert_uint_gt(tight, 10);
}
END_TEST

START_TEST(test_order_kinds)
{
    struct moe_placement_shape shape = {8, 0, 4, 1, 1};
    static const int32_t contiguous[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int32_t in_turn[] = {0, 4, 1, 5, 2, 6, 3, 7};
    struct moe_placement p;
    moe_placement_init(&p, &shape);
    moe_placement_fill(&p, MOE_PLACEMENT_CONTIGUOUS, &shape, NULL);
    ck_assert_int_eq(memcmp(p.expert, contiguous, sizeof contiguous), 0);
    moe_placement_fill(&p, MOE_PLACEMENT_ROUND_ROBIN, &shape, NULL);
    ck_assert_int_eq(memcmp(p.expert, in_turn, sizeof in_turn), 0);
    moe_placement_free(&p);
}
END_TEST

/* 256 + 32 slots on 32 GPUs are 9 each; 256 + 16 would be 8.5. On one GPU no copy helps. */
START_TEST(test_slots)
{
    struct moe_placement_shape nine = {256, 32, 32, 1, 1}, half = {256, 16, 32, 1, 1};
    struct moe_placement_shape alone = {256, 32, 1, 1, 1};
    ck_assert_ptr_null(moe_placement_refuse(&nine));
    ck_assert_ptr_nonnull(moe_placement_refuse(&half));
    ck_assert_ptr_nonnull(moe_placement_refuse(&alone));
    struct moe_placement p;
    moe_placement_init(&p, &nine);
    ck_assert_uint_eq(p.slots / p.ranks, 9);
    moe_placement_free(&p);
}
END_TEST

/* A copy more of the only hot expert halves its GPU's load only on another GPU. */
START_TEST(test_copies_share)
{
    struct moe_placement_shape shape = {4, 4, 4, 1, 1};
    static const double load[] = {1000, 1, 1, 1};
    double slot_share[8], all = 0;
    struct moe_placement p, before;
    moe_placement_init(&p, &shape);
    moe_placement_init(&before, &shape);
    moe_placement_fill(&before, MOE_PLACEMENT_CONTIGUOUS, &shape, load);
    moe_placement_fill(&p, MOE_PLACEMENT_EPLB, &shape, load);
    ck_assert_int_eq(p.copies[0], 4);
    moe_placement_shares(&p, load, slot_share);
    for (size_t s = 0; s < 8; s++) {
        all += slot_share[s];
        ck_assert(p.expert[s] != 0 || slot_share[s] == 250);
    }
    ck_assert_double_eq_tol(all, 1003, 1e-9);
    struct moe_placement_moves none = moe_placement_moves(&p, &p);
    struct moe_placement_moves some = moe_placement_moves(&before, &p);
    ck_assert_uint_eq(none.all, 0);
    ck_assert_uint_ge(some.all, 2); /* two GPUs of four had expert 0 */
    ck_assert_uint_ge(some.most, 1);
    ck_assert_uint_le(some.most, 2);
    moe_placement_free(&p);
    moe_placement_free(&before);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moe_placement");
    TCase *core = tcase_create("core");
    tcase_add_test(core, test_published_example);
    tcase_add_test(core, test_never_twice_on_one_gpu);
    tcase_add_test(core, test_order_kinds);
    tcase_add_test(core, test_slots);
    tcase_add_test(core, test_copies_share);
    suite_add_tcase(suite, core);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
