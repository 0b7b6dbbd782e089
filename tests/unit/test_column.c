/* Column tables as CSV. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/column.h"
#include "sim/base/request.h"
#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "tests/unit/suite_run.h"

struct row {
    int64_t i64;
    uint64_t u64;
    int32_t i32;
    uint32_t u32;
    double real;
    int64_t time_ps;
    const char *text;
};

static const struct column columns[] = {
    {"i64", COLUMN_INT64, offsetof(struct row, i64), "1", "a", "An integer."},
    {"u64", COLUMN_UINT64, offsetof(struct row, u64), "1", "b", "An integer."},
    {"i32", COLUMN_INT32, offsetof(struct row, i32), "1", "c", "An integer."},
    {"u32", COLUMN_UINT32, offsetof(struct row, u32), "1", "d", "An integer."},
    {"real", COLUMN_DOUBLE, offsetof(struct row, real), "1", "e", "A real."},
    {"time_s", COLUMN_TIME, offsetof(struct row, time_ps), "s", "f", "A time."},
    {"text", COLUMN_TEXT, offsetof(struct row, text), "", "g", "A text."},
    {0},
};

static void ck_row(const struct row *row, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    column_csv_row(columns, row, out);
    fclose(out);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(header)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    column_csv_header(columns, out);
    fclose(out);
    ck_assert_str_eq(text, "i64,u64,i32,u32,real,time_s,text\n");
    free(text);
    ck_assert_uint_eq(column_count(columns), 7);
    ck_assert_uint_eq(column_count(&columns[7]), 0);
}
END_TEST

START_TEST(values)
{
    ck_row(&(struct row){-5, UINT64_MAX, 7, UINT32_MAX, 0.1, 3599900000000000, "main"},
           "-5,18446744073709551615,7,4294967295,0.1,3599.9,main\n");
    ck_row(&(struct row){INT64_MAX, 0, INT32_MIN, 0, -1e300, 1, "a b"},
           "9223372036854775807,0,-2147483648,0,-1e+300,0.000000000001,a b\n");
}
END_TEST

START_TEST(undefined_is_empty)
{
    ck_row(&(struct row){COLUMN_INT_NONE, 0, -1, 0, NAN, TIME_NONE, NULL}, ",0,,0,,,\n");
}
END_TEST

START_TEST(text_is_quoted_where_needed)
{
    ck_row(&(struct row){.text = "a,b"}, "0,0,0,0,0,0,\"a,b\"\n");
    ck_row(&(struct row){.text = "say \"hi\""}, "0,0,0,0,0,0,\"say \"\"hi\"\"\"\n");
    ck_row(&(struct row){.text = "two\nlines"}, "0,0,0,0,0,0,\"two\nlines\"\n");
    ck_row(&(struct row){.text = ""}, "0,0,0,0,0,0,\n");
}
END_TEST

START_TEST(doubles_read_back)
{
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = rng_draw(1, 0, i).a;
        struct row row = {0};
        memcpy(&row.real, &bits, sizeof(row.real));
        if (i % 2 == 0) {
            row.real = (double)(bits >> 40) / 1000;
        }
        if (!isfinite(row.real)) {
            continue;
        }
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(out);
        column_csv_value(&columns[4], &row, out);
        fclose(out);
        ck_assert(strtod(text, NULL) == row.real);
        ck_assert_uint_le(size, i % 2 == 0 ? 12 : 24); /* short where a short form exists */
        free(text);
    }
}
END_TEST

START_TEST(outcomes_have_names)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        ck_assert_ptr_nonnull(outcome_names[i]);
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(outcome_names[i], outcome_names[j]);
        }
    }
    ck_assert_str_eq(outcome_names[OUTCOME_COMPLETED], "completed");
    ck_assert_str_eq(outcome_names[OUTCOME_IN_FLIGHT], "in_flight");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {header,
                                  values,
                                  undefined_is_empty,
                                  text_is_quoted_where_needed,
                                  doubles_read_back,
                                  outcomes_have_names,
                                  NULL};
    return suite_run("column", tests, 30);
}
