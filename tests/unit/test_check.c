/* Asserts and the arena. */
#include <stdint.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "tests/unit/suite_run.h"

static void fail_plainly(void *arg)
{
    int *two = arg;
    check(*two + *two == 5);
}

static void fail_in_a_run(void *arg)
{
    check_context(3600000000000001, 17);
    check_msg(arg == NULL, "held %d of %s", 3, "blocks");
}

START_TEST(check_prints_and_aborts)
{
    char message[512];
    int two = 2;
    ck_assert(suite_aborts(fail_plainly, &two, message, sizeof(message)));
    ck_assert_ptr_nonnull(strstr(message, "test_check.c:"));
    ck_assert_ptr_nonnull(strstr(message, "check failed: *two + *two == 5\n"));
    ck_assert_ptr_null(strstr(message, "simulated time"));

    ck_assert(suite_aborts(fail_in_a_run, &two, message, sizeof(message)));
    ck_assert_ptr_nonnull(strstr(message, ": held 3 of blocks\n"));
    ck_assert_ptr_nonnull(strstr(message, "simulated time 3600000000000001 ps, actor 17\n"));
}
END_TEST

START_TEST(check_evaluates_once)
{
    int times = 0;
    check(++times);
    check_msg(++times, "never shown");
    ck_assert_int_eq(times, 2);
}
END_TEST

static void debug_fail(void *arg)
{
    debug_check(arg == NULL);
}

START_TEST(debug_check_follows_the_build)
{
    char message[512];
    int x = 0;
#ifdef NDEBUG
    ck_assert(!suite_aborts(debug_fail, &x, message, sizeof(message)));
#else
    ck_assert(suite_aborts(debug_fail, &x, message, sizeof(message)));
#endif
}
END_TEST

START_TEST(arena_pieces_are_zeroed_aligned_and_apart)
{
    struct arena arena;
    arena_init(&arena);
    unsigned char *pieces[2000];
    size_t sizes[2000];
    for (size_t i = 0; i < 2000; i++) {
        sizes[i] = i % 7 == 0 ? 0 : (i * 7919) % (i % 50 == 0 ? 50000 : 300);
        pieces[i] = arena_alloc(&arena, sizes[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < sizes[i]; j++) {
            ck_assert_uint_eq(pieces[i][j], 0);
        }
        memset(pieces[i], (int)(i % 251), sizes[i]);
        ck_assert(i == 0 || pieces[i] != pieces[i - 1]);
    }
    for (size_t i = 0; i < 2000; i++) {
        for (size_t j = 0; j < sizes[i]; j++) {
            ck_assert_uint_eq(pieces[i][j], i % 251);
        }
    }
    arena_free(&arena);
    arena_free(&arena); /* harmless twice */
}
END_TEST

START_TEST(arena_copies_text)
{
    struct arena arena;
    arena_init(&arena);
    ck_assert_str_eq(arena_copy(&arena, "fleet"), "fleet");
    ck_assert_str_eq(arena_copyn(&arena, "fleet", 3), "fle");
    ck_assert_str_eq(arena_copyn(&arena, "", 0), "");
    ck_assert_str_eq(arena_printf(&arena, "%s[%d]", "pools", 3), "pools[3]");
    char long_text[40000];
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    ck_assert_str_eq(arena_printf(&arena, "%s!", long_text) + sizeof(long_text) - 1, "!");
    arena_free(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {check_prints_and_aborts,
                                  check_evaluates_once,
                                  debug_check_follows_the_build,
                                  arena_pieces_are_zeroed_aligned_and_apart,
                                  arena_copies_text,
                                  NULL};
    return suite_run("check", tests, 30);
}
