/* Result files are read back as they were written: every shape and type, undefined values, and
 * columns that a file has not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/time.h"
#include "sim/trace/trace_read.h"
#include "tests/unit/suite_run.h"

struct row {
    int64_t start_ps, end_ps, wide, ps, added;
    uint64_t count;
    int32_t narrow;
    uint32_t flag;
    double real, late;
    const char *word;
};

#define COLUMN(type, member)                                                                       \
    {                                                                                              \
#member, COLUMN_##type, offsetof(struct row, member), "1", #member, "doc"                  \
    }
static const struct column written[] = {
    COLUMN(INT64, wide),  COLUMN(TIME, ps),     COLUMN(UINT64, count), COLUMN(INT32, narrow),
    COLUMN(UINT32, flag), COLUMN(DOUBLE, real), COLUMN(TEXT, word),    {0}};
/* What a later program might ask for. */
static const struct column asked[] = {COLUMN(TIME, added),   COLUMN(INT64, wide),
                                      COLUMN(TIME, ps),      COLUMN(UINT64, count),
                                      COLUMN(INT32, narrow), COLUMN(UINT32, flag),
                                      COLUMN(DOUBLE, real),  COLUMN(TEXT, word),
                                      COLUMN(DOUBLE, late),  {0}};

enum { TIMES = 5, SERIES = 3, ROWS = TIMES * SERIES };

static const char *const words[] = {"one", "two, with a comma", "größer", ""};
static const char *const series[SERIES] = {"left", "right", "middle"};

static void rows_fill(struct row *rows)
{
    for (int i = 0; i < ROWS; i++) {
        int t = i / SERIES;
        rows[i] = (struct row){.start_ps = t * PS_PER_HOUR,
                               .end_ps = (t + 1) * PS_PER_HOUR,
                               .wide = i == 3 ? COLUMN_INT_NONE : -i * 1000000007LL,
                               .ps = i == 4 ? TIME_NONE : i * 600 * PS_PER_SECOND + 123456789 + i,
                               .count = UINT64_MAX - (uint64_t)i,
                               .narrow = i == 5 ? -1 : i,
                               .flag = (uint32_t)i % 2,
                               .real = i == 6 ? NAN : 1.0 / (i + 1),
                               .word = words[i % 4]};
    }
}

static struct trace_table table_of(enum trace_shape shape, const struct row *rows)
{
    return (struct trace_table){.group = "rows",
                                .doc = "doc",
                                .shape = shape,
                                .columns = written,
                                .rows = rows,
                                .row_count = shape == TRACE_SERIES ? TIMES : ROWS,
                                .row_size = sizeof *rows,
                                .start_offset = offsetof(struct row, start_ps),
                                .end_offset = offsetof(struct row, end_ps),
                                .dimension = shape == TRACE_SERIES ? "side" : "name",
                                .labels = series,
                                .series_count = SERIES};
}

static void expect_same(const struct row *got, const struct row *want, bool timed)
{
    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_eq(got[i].wide, want[i].wide);
        ck_assert_int_eq(got[i].ps, want[i].ps);
        ck_assert_uint_eq(got[i].count, want[i].count);
        ck_assert_int_eq(got[i].narrow, want[i].narrow);
        ck_assert_uint_eq(got[i].flag, want[i].flag);
        ck_assert(got[i].real == want[i].real || (isnan(got[i].real) && isnan(want[i].real)));
        ck_assert_str_eq(got[i].word, want[i].word);
        ck_assert_int_eq(got[i].added, TIME_NONE);
        ck_assert(isnan(got[i].late));
        ck_assert(!timed ||
                  (got[i].start_ps == want[i].start_ps && got[i].end_ps == want[i].end_ps));
    }
}

/* Writes one table of that shape and reads it back. */
static void round_trip(enum trace_shape shape)
{
    struct row rows[ROWS];
    char path[] = "trace-read-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    rows_fill(rows);
    struct trace_table table = table_of(shape, rows);
    struct trace_meta meta[] = {{"seed", NULL, 42, "doc"}, {"name", "größer", 0, "doc"}};
    struct trace_run run = {.title = "a title",
                            .start_unix_s = 1772409600,
                            .tables = &table,
                            .table_count = 1,
                            .meta = meta,
                            .meta_count = 2,
                            .complete = true};
    struct errors errors;
    errors_init(&errors);
    ck_assert(trace_write(&run, path, true, &errors));
    struct trace_read *file = trace_read_open(path, &errors);
    ck_assert_ptr_nonnull(file);
    struct trace_rows got;
    table.columns = asked;
    ck_assert(trace_read_table(file, &table, &got, &errors));
    ck_assert_uint_eq(got.row_count, table.row_count);
    ck_assert_uint_eq(got.series_count, shape == TRACE_SERIES ? SERIES : 1);
    for (size_t s = 0; shape == TRACE_SERIES && s < SERIES; s++)
        ck_assert_str_eq(got.names[s], series[s]);
    expect_same(got.rows, rows, shape == TRACE_SERIES || shape == TRACE_TIMES);
    uint64_t seed = 0;
    ck_assert(trace_read_number(file, "meta/seed", &seed) && seed == 42);
    ck_assert_str_eq(trace_read_text(file, "meta/name"), "größer");
    ck_assert_str_eq(trace_read_text(file, "meta/start"), "2026-03-02T00:00:00Z");
    ck_assert_str_eq(trace_read_title(file), "a title");
    ck_assert_ptr_null(trace_read_text(file, "meta/seed")); /* a number */
    ck_assert(!trace_read_number(file, "meta/name", &seed));
    ck_assert_ptr_null(trace_read_text(file, "meta/none"));
    ck_assert_ptr_null(trace_read_text(file, "none/at/all"));
    table.group = "none";
    ck_assert(!trace_read_table(file, &table, &got, &errors));
    ck_assert_uint_eq(errors.error_count, 1);
    trace_read_close(file);
    errors_free(&errors);
    unlink(path);
}

START_TEST(times_and_series)
{
    round_trip(TRACE_SERIES);
}
END_TEST

START_TEST(times_alone)
{
    round_trip(TRACE_TIMES);
}
END_TEST

START_TEST(a_list)
{
    round_trip(TRACE_LIST);
}
END_TEST

/* Of no rows: a run without a scaling event. */
START_TEST(an_empty_list)
{
    char path[] = "trace-read-XXXXXX";
    close(mkstemp(path));
    struct row none;
    struct trace_table table = table_of(TRACE_LIST, &none);
    table.row_count = 0;
    struct trace_run run = {.tables = &table, .table_count = 1, .complete = true};
    struct errors errors;
    errors_init(&errors);
    ck_assert(trace_write(&run, path, true, &errors));
    struct trace_read *file = trace_read_open(path, &errors);
    struct trace_rows got;
    ck_assert(trace_read_table(file, &table, &got, &errors));
    ck_assert_uint_eq(got.row_count, 0);
    trace_read_close(file);
    errors_free(&errors);
    unlink(path);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {times_and_series, times_alone, a_list, an_empty_list, NULL};
    return suite_run("trace_read", tests, 30);
}
