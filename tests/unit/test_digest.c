/* The run digest: stable, and sensitive to every field and to the order. */
#include "sim/base/digest.h"
#include "tests/unit/suite_run.h"

static uint64_t digest_of(const uint64_t (*events)[4], size_t count)
{
    struct digest d;
    digest_init(&d);
    for (size_t i = 0; i < count; i++) {
        digest_event(&d, events[i][0], (int64_t)events[i][1], events[i][2], events[i][3]);
    }
    ck_assert_uint_eq(d.events, count);
    return d.state;
}

START_TEST(known_answer)
{
    /* Worked out apart from this code, from the definition in the header. */
    static const uint64_t events[][4] = {{1, 1000000000000, 7, 0}, {2, 2000000000000, 7, 400}};
    ck_assert_uint_eq(digest_of(events, 2), UINT64_C(0x06489b8137f179b6));
}
END_TEST

START_TEST(every_bit_and_the_order_count)
{
    uint64_t events[][4] = {{1, 10, 7, 3}, {2, 20, 8, 4}};
    uint64_t base = digest_of(events, 2);
    for (int field = 0; field < 4; field++) {
        for (int bit = 0; bit < (field == 0 ? 8 : field == 3 ? 56 : 64); bit++) {
            events[0][field] ^= UINT64_C(1) << bit;
            ck_assert_uint_ne(digest_of(events, 2), base);
            events[0][field] ^= UINT64_C(1) << bit;
        }
    }
    ck_assert_uint_eq(digest_of(events, 2), base);
    const uint64_t swapped[][4] = {{2, 20, 8, 4}, {1, 10, 7, 3}};
    ck_assert_uint_ne(digest_of(swapped, 2), base);
    ck_assert_uint_ne(digest_of(events, 1), base);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {known_answer, every_bit_and_the_order_count, NULL};
    return suite_run("digest", tests, 30);
}
