/* The log-bucket histogram: edges, error, ranks, merging, ramps (acceptance T12). */
#include <math.h>
#include <string.h>

#include "sim/base/histogram.h"
#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

static const int64_t MS = PS_PER_SECOND / 1000;

static struct histogram *histogram_new(void)
{
    struct histogram *h = malloc(sizeof(*h));
    ck_assert_ptr_nonnull(h);
    histogram_init(h);
    return h;
}

static void ck_same(const struct histogram *a, const struct histogram *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->overflow, b->overflow);
    ck_assert_int_eq(a->min, b->min);
    ck_assert_int_eq(a->max, b->max);
    ck_assert(a->sum == b->sum);
    ck_assert(memcmp(a->buckets, b->buckets, sizeof(a->buckets)) == 0);
}

/* Within the stated relative error of the exact value. */
static void ck_near(int64_t found, int64_t exact)
{
    ck_assert_msg(fabs((double)(found - exact)) <= HISTOGRAM_RELATIVE_ERROR * (double)exact,
                  "%lld is not %lld", (long long)found, (long long)exact);
}

START_TEST(buckets_are_contiguous)
{
    ck_assert_int_eq(histogram_bucket_low(0), 0);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        int64_t low = histogram_bucket_low(i), mid = histogram_bucket_mid(i);
        ck_assert_uint_eq(histogram_bucket((uint64_t)low), i);
        ck_assert_uint_eq(histogram_bucket((uint64_t)mid), i);
        if (i > 0) {
            ck_assert_int_gt(low, histogram_bucket_low(i - 1));
            ck_assert_uint_eq(histogram_bucket((uint64_t)low - 1), i - 1);
        }
        int64_t high = i + 1 < HISTOGRAM_BUCKETS ? histogram_bucket_low(i + 1) - 1 : INT64_MAX;
        ck_assert_uint_eq(histogram_bucket((uint64_t)high), i);
        ck_near(mid, low > 0 ? low : mid);
        ck_near(mid, high);
    }
    ck_assert_uint_eq(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1);
    ck_assert_double_le(HISTOGRAM_RELATIVE_ERROR, 0.005);
}
END_TEST

/* A random list against its own sorted copy: nearest rank, within the stated error. */
static int value_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(quantiles_against_sorting)
{
    static const double shares[] = {0.001, 0.01, 0.07, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
    for (uint64_t round = 0; round < 60; round++) {
        size_t n = 1 + rng_draw(1, round, 0).a % 3000;
        int64_t *values = malloc(n * sizeof(*values));
        ck_assert_ptr_nonnull(values);
        struct histogram *h = histogram_new();
        for (size_t i = 0; i < n; i++) {
            struct rng_pair bits = rng_draw(2, round, i);
            values[i] = (int64_t)(bits.a >> (1 + (round % 3 == 0 ? 20 : bits.b % 63)));
            histogram_add(h, values[i]);
        }
        qsort(values, n, sizeof(*values), value_order);
        for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
            size_t permille = (size_t)lround(shares[s] * 1000), rank = (n * permille + 999) / 1000;
            ck_near(histogram_quantile(h, shares[s]), values[rank - 1]);
        }
        enum { SHARES = sizeof shares / sizeof shares[0] };
        int64_t together[SHARES];
        histogram_quantiles(h, shares, SHARES, together);
        for (size_t s = 0; s < SHARES; s++) {
            ck_assert_int_eq(together[s], histogram_quantile(h, shares[s]));
        }
        ck_assert_int_eq(h->min, values[0]);
        ck_assert_int_eq(h->max, values[n - 1]);
        free(values);
        free(h);
    }
}
END_TEST

START_TEST(nearest_rank)
{
    struct histogram *h = histogram_new();
    for (int64_t i = 1; i <= 10; i++) {
        histogram_add(h, i);
    }
    ck_assert_int_eq(histogram_quantile(h, 0.5), 5);
    ck_assert_int_eq(histogram_quantile(h, 0.99), 10);
    ck_assert_int_eq(histogram_quantile(h, 0.1), 1);
    ck_assert_int_eq(histogram_quantile(h, 0.11), 2);
    ck_assert_int_eq(histogram_quantile(h, 1), 10);
    ck_assert_int_eq(histogram_quantile(h, 1e-12), 1);
    free(h);

    /* The rank is that of the written decimal: 0.07 · 100 is above 7 in doubles. */
    h = histogram_new();
    for (int64_t i = 1; i <= 100; i++) {
        histogram_add(h, i);
    }
    for (int64_t i = 1; i <= 100; i++) {
        ck_assert_int_eq(histogram_quantile(h, (double)i / 100), i);
    }
    free(h);
}
END_TEST

/* T12: hour A 990 values of 0.1 s, hour B 10 values of 10 s. */
START_TEST(a_day_is_merged_from_its_hours)
{
    struct histogram *a = histogram_new(), *b = histogram_new(), *day = histogram_new();
    histogram_add_n(a, 100 * MS, 990);
    for (int i = 0; i < 10; i++) {
        histogram_add(b, 10000 * MS);
    }
    histogram_merge(day, a);
    histogram_merge(day, b);
    ck_near(histogram_quantile(day, 0.99), 100 * MS);
    ck_near(histogram_quantile(day, 0.991), 10000 * MS);
    ck_near(histogram_quantile(day, 0.995), 10000 * MS);
    ck_assert(day->sum == (int128)199000 * MS);
    ck_assert_double_eq_tol(histogram_mean(day) / (double)PS_PER_SECOND, 0.199, 1e-15);
    ck_assert_int_eq(histogram_quantile(a, 0.99), 100 * MS); /* one value: exact */
    free(a);
    free(b);
    free(day);
}
END_TEST

START_TEST(long_waits_do_not_hit_a_ceiling)
{
    static const int64_t waits_s[] = {1000, 3600, 86400, 8640000};
    for (size_t i = 0; i < 4; i++) {
        struct histogram *h = histogram_new();
        histogram_add_n(h, 1, 50);
        histogram_add_n(h, waits_s[i] * PS_PER_SECOND, 50);
        histogram_add_n(h, INT64_MAX, 1);
        ck_near(histogram_quantile(h, 0.99), waits_s[i] * PS_PER_SECOND);
        ck_assert_uint_ne(histogram_bucket((uint64_t)(waits_s[i] * PS_PER_SECOND)),
                          HISTOGRAM_BUCKETS - 1);
        ck_assert_uint_eq(h->overflow, 0);
        free(h);
    }
}
END_TEST

START_TEST(negative_values_are_counted_apart)
{
    struct histogram *h = histogram_new(), *sum = histogram_new();
    histogram_add(h, -1);
    histogram_add_n(h, INT64_MIN, 2);
    histogram_add_n(h, 5, 0);
    ck_assert_uint_eq(h->overflow, 3);
    ck_assert_uint_eq(h->count, 0);
    ck_assert_int_eq(histogram_quantile(h, 0.5), TIME_NONE);
    ck_assert(isnan(histogram_mean(h)));
    ck_assert(isnan(histogram_share_at_most(h, 5)));
    histogram_merge(sum, h);
    histogram_merge(sum, h);
    ck_assert_uint_eq(sum->overflow, 6);
    ck_assert_int_gt(sum->min, sum->max);
    free(h);
    free(sum);
}
END_TEST

START_TEST(merging_equals_filling_once)
{
    for (uint64_t round = 0; round < 50; round++) {
        struct histogram *parts[3] = {histogram_new(), histogram_new(), histogram_new()};
        struct histogram *whole = histogram_new(), *merged = histogram_new();
        for (uint64_t i = 0; i < 500; i++) {
            struct rng_pair bits = rng_draw(3, round, i);
            int64_t value = (int64_t)(bits.a >> (bits.b % 64)); /* negative ones too */
            uint64_t n = bits.b >> 60;
            histogram_add_n(parts[bits.b % 3], value, n);
            histogram_add_n(whole, value, n);
        }
        for (int i = 0; i < 3; i++) {
            histogram_merge(merged, parts[i]);
            free(parts[i]);
        }
        ck_same(merged, whole);
        free(merged);
        free(whole);
    }
}
END_TEST

static void ck_ramp(int64_t first, int64_t slope, uint64_t n, uint64_t weight)
{
    struct histogram *ramp = histogram_new(), *naive = histogram_new();
    histogram_add(ramp, 1000);
    histogram_add(naive, 1000);
    histogram_add_ramp(ramp, first, slope, n, weight);
    for (uint64_t i = 0; i < n; i++) {
        histogram_add_n(naive, first + slope * (int64_t)i, weight);
    }
    ck_same(ramp, naive);
    free(ramp);
    free(naive);
}

START_TEST(ramps_equal_single_adds)
{
    for (uint64_t round = 0; round < 4000; round++) {
        struct rng_pair x = rng_draw(4, round, 0), y = rng_draw(4, round, 1);
        uint64_t n = x.a % (round % 100 == 0 ? 60000 : 300), weight = x.b % 5;
        int64_t first = (int64_t)(y.a >> (2 + x.b % 62)), slope = 0;
        int64_t room = n > 1 ? (INT64_MAX - first) / (int64_t)n : INT64_MAX;
        switch (round % 4) {
        case 0:
            break;
        case 1: /* falling, to 0 at the lowest */
            slope = n > 1 ? -(int64_t)(y.b % (uint64_t)(first / (int64_t)(n - 1) + 1)) : -first;
            break;
        case 2: /* steep */
            slope = (int64_t)(y.b % (uint64_t)room);
            break;
        default: /* as a batch: microseconds on milliseconds */
            first = (int64_t)(y.a % 100000000000) + 1;
            slope = (int64_t)(y.b % 3000000) - 10000;
            slope = first + slope * (int64_t)n < 0 ? 1 : slope;
        }
        ck_ramp(first, slope, n, weight);
    }
    ck_ramp(0, 0, 7, 3);
    ck_ramp(0, 1, 70000, 1);
    ck_ramp(70000, -1, 70001, 2);
    ck_ramp(0, INT64_MAX, 2, 1);
    ck_ramp(INT64_MAX, -INT64_MAX, 2, 1);
    ck_ramp(5, INT64_MIN, 1, 1);
    ck_ramp(255, 1, 2, 1);
    ck_ramp(INT64_MAX, 0, 3, 1);
}
END_TEST

static void ramp_below_zero(void *arg)
{
    histogram_add_ramp(arg, 10, -6, 3, 1);
}

START_TEST(a_ramp_out_of_range_is_a_fault)
{
    char message[256];
    struct histogram *h = histogram_new();
    ck_assert(suite_aborts(ramp_below_zero, h, message, sizeof(message)));
    free(h);
}
END_TEST

/* By histogram_clear after values at both ends, and of memory that is zero. */
START_TEST(emptied_like_new)
{
    struct histogram *fresh = histogram_new(), *h = histogram_new();
    struct histogram *zeroed = calloc(1, sizeof *zeroed);
    ck_assert_ptr_nonnull(zeroed);
    histogram_init_zeroed(zeroed);
    ck_same(zeroed, fresh);
    histogram_clear(h);
    ck_same(h, fresh);
    histogram_add(h, 0);
    histogram_add_n(h, INT64_MAX, 3);
    histogram_add_ramp(h, 5 * MS, MS, 100, 2);
    histogram_add(h, -1);
    histogram_clear(h);
    ck_same(h, fresh);
    histogram_add(h, 7 * MS);
    histogram_clear(h);
    ck_same(h, fresh);
    free(fresh);
    free(h);
    free(zeroed);
}
END_TEST

START_TEST(share_at_most)
{
    struct histogram *h = histogram_new();
    histogram_add_n(h, 100 * MS, 70);
    histogram_add_n(h, 2000 * MS, 30);
    ck_assert(histogram_share_at_most(h, 50 * MS) == 0);
    ck_assert(histogram_share_at_most(h, -1) == 0);
    ck_assert(histogram_share_at_most(h, 100 * MS) == 0.7);
    ck_assert(histogram_share_at_most(h, 1000 * MS) == 0.7);
    ck_assert(histogram_share_at_most(h, 2000 * MS) == 1);
    ck_assert(histogram_share_at_most(h, INT64_MAX) == 1);
    free(h);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {buckets_are_contiguous,
                                  quantiles_against_sorting,
                                  nearest_rank,
                                  a_day_is_merged_from_its_hours,
                                  long_waits_do_not_hit_a_ceiling,
                                  negative_values_are_counted_apart,
                                  merging_equals_filling_once,
                                  ramps_equal_single_adds,
                                  a_ramp_out_of_range_is_a_fault,
                                  emptied_like_new,
                                  share_at_most,
                                  NULL};
    return suite_run("histogram", tests, 60);
}
