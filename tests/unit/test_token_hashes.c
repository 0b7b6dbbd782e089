#include "sim/base/token_hashes.h"

#include <check.h>
#include <stdlib.h>

START_TEST(what_is_given_back_is_used_again)
{
    struct token_hash_pool *pool = token_hashes_pool_create();
    struct token_hashes *first = token_hashes_acquire(pool, 5, 16);
    struct token_hashes *other = token_hashes_acquire(pool, 9, 16);
    ck_assert_ptr_ne(first, other);
    token_hashes_release(first);
    /* 6 and 5 ids have room for 8 alike. */
    struct token_hashes *again = token_hashes_acquire(pool, 6, 512);
    ck_assert_ptr_eq(first, again);
    ck_assert_uint_eq(again->count, 6);
    ck_assert_uint_eq(again->block_tokens, 512);
    token_hashes_release(again);
    token_hashes_release(other);
    token_hashes_release(NULL);
    token_hashes_pool_free(pool);
    token_hashes_pool_free(NULL);
}
END_TEST

START_TEST(every_size_has_its_room)
{
    struct token_hash_pool *pool = token_hashes_pool_create();
    struct token_hashes *kept[70];
    for (uint32_t count = 0; count < 70; count++) {
        kept[count] = token_hashes_acquire(pool, count, 1);
        for (uint32_t i = 0; i < count; i++) {
            kept[count]->ids[i] = (uint64_t)count << 32 | i;
        }
    }
    for (uint32_t count = 0; count < 70; count++) {
        ck_assert_uint_eq(kept[count]->count, count);
        for (uint32_t i = 0; i < count; i++) {
            ck_assert_uint_eq(kept[count]->ids[i], (uint64_t)count << 32 | i);
        }
        token_hashes_release(kept[count]);
    }
    token_hashes_pool_free(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("token_hashes");
    TCase *tcase = tcase_create("pool");
    tcase_add_test(tcase, what_is_given_back_is_used_again);
    tcase_add_test(tcase, every_size_has_its_room);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
