/* Field tables: defaults, scalars, ranges, stamps, the echo, and what a broken table does. */
#include <math.h>
#include <string.h>

#include "sim/base/field.h"
#include "sim/base/time.h"
#include "tests/scenario_table.h"
#include "tests/unit/suite_run.h"

/* Parses into a 64-bit cell; the reason ("" when it was accepted) stays in why. */
union cell {
    int64_t integer;
    double real;
    const char *text;
    int choice;
    bool flag;
};
static bool parse(const struct field *field, const char *text, union cell *cell, char *why)
{
    static struct arena arena; /* kept for the texts that cells point at; zero is a valid start */
    return field_parse(field, text, cell, &arena, why, FIELD_WHY_MAX);
}

static void expect_refused(const struct field *field, const char *text, const char *reason)
{
    char why[FIELD_WHY_MAX];
    union cell cell = {.integer = 77};
    ck_assert_msg(!parse(field, text, &cell, why), "'%s' was accepted", text);
    ck_assert_msg(strstr(why, reason) != NULL, "'%s': reason '%s' lacks '%s'", text, why, reason);
    ck_assert_msg(cell.integer == 77, "'%s' was refused but written", text);
}

static int64_t expect_integer(const struct field *field, const char *text)
{
    char why[FIELD_WHY_MAX];
    union cell cell;
    ck_assert_msg(parse(field, text, &cell, why), "'%s' was refused: %s", text, why);
    return cell.integer;
}

START_TEST(defaults_fill_every_kind)
{
    struct arena arena;
    struct table_root root;
    memset(&root, 0xa5, sizeof root);
    arena_init(&arena);
    field_defaults(table_root_fields, &root, &arena);
    ck_assert_ptr_null(root.name);
    ck_assert_ptr_null(root.description);
    ck_assert_int_eq(root.seed, 1);
    ck_assert_int_eq(root.start_s, FIELD_INT_UNSET);
    ck_assert_int_eq(root.horizon_ps, 24 * PS_PER_HOUR);
    ck_assert(root.drain);
    ck_assert_int_eq(root.role, 0);
    ck_assert_int_eq(root.tier, -1);
    ck_assert_ptr_eq(root.router.type, &table_robin_variant);
    ck_assert_ptr_null(root.router.config);
    ck_assert_ptr_null(root.lengths.type);
    ck_assert_ptr_null(root.pools.items);
    ck_assert_uint_eq(root.pools.count, 0);
    ck_assert_int_eq(root.fallback_engine.block_size, 16);
    ck_assert_int_eq(root.fallback_engine.blocks, FIELD_INT_UNSET);
    ck_assert_double_eq(root.fallback_engine.memory_share, 0.9);
    ck_assert(!root.fallback_engine.prefix_caching);
    ck_assert_double_eq(root.rate, 10);
    arena_free(&arena);
}
END_TEST

START_TEST(inline_fields_are_found_at_their_offset)
{
    size_t offset = 0;
    const struct field *field = field_find(table_target_fields, "max_replicas", &offset);
    ck_assert_ptr_eq(field, &table_common_fields[2]);
    ck_assert_uint_eq(offset, offsetof(struct table_target, common) +
                                  offsetof(struct table_common, replicas_max));
    ck_assert_ptr_null(field_find(table_target_fields, "common", NULL));
    ck_assert_ptr_null(field_find(table_target_fields, "max", NULL));
}
END_TEST

START_TEST(ranges_bind_where_they_are_stated)
{
    const struct field closed = {.name = "f", .kind = FIELD_INT, .min = 1, .max = 8};
    const struct field open = {.name = "f", .kind = FIELD_REAL, .flags = FIELD_MIN_OPEN};
    const struct field from = {.name = "f", .kind = FIELD_INT, .min = 5};
    const struct field any = {.name = "f", .kind = FIELD_INT};
    const struct field share = {.name = "f", .kind = FIELD_REAL, .unit = UNIT_FRACTION, .max = 1};
    ck_assert_int_eq(expect_integer(&closed, "1"), 1);
    ck_assert_int_eq(expect_integer(&closed, "8"), 8);
    expect_refused(&closed, "0", "must be at least 1, not 0");
    expect_refused(&closed, "9", "must be at most 8, not 9");
    expect_refused(&open, "0", "must be more than 0, not 0");
    expect_refused(&open, "-1", "must be more than 0, not -1");
    expect_integer(&open, "1e300");
    expect_refused(&from, "4", "must be at least 5");
    ck_assert_int_eq(expect_integer(&from, "1e18"), INT64_C(1000000000000000000));
    ck_assert_int_eq(expect_integer(&any, "-9223372036854775807"), -INT64_MAX);
    expect_refused(&any, "9223372036854775807", "too large");
    expect_refused(&share, "101 %", "must be at most");
    expect_refused(&share, "-1 %", "must be at least");
    expect_integer(&share, "100 %");
}
END_TEST

START_TEST(a_time_that_needs_its_unit)
{
    const struct field time = {.name = "f", .kind = FIELD_TIME, .max = 3600, .bare_max = 10};
    ck_assert_int_eq(expect_integer(&time, "10"), 10 * PS_PER_SECOND);
    ck_assert_int_eq(expect_integer(&time, "50 s"), 50 * PS_PER_SECOND);
    ck_assert_int_eq(expect_integer(&time, "50 ms"), 50 * PS_PER_SECOND / 1000);
    expect_refused(&time, "50", "50 without a unit is in seconds: write '50 s' or, say, '50 ms'");
    expect_refused(&time, " 1e3 ", "without a unit");
    expect_refused(&time, "4000", "must be at most");
}
END_TEST

START_TEST(numbers_say_what_they_are_not)
{
    const struct field whole = {.name = "f", .kind = FIELD_INT};
    const struct field limited = {.name = "f", .kind = FIELD_INT, .flags = FIELD_UNLIMITED};
    const struct field real = {.name = "f", .kind = FIELD_REAL};
    const struct field time = {.name = "f", .kind = FIELD_TIME, .max = 60};
    expect_refused(&whole, "unlimited", "cannot be unlimited");
    ck_assert_int_eq(expect_integer(&limited, "unlimited"), FIELD_INT_UNLIMITED);
    expect_refused(&limited, "many", "or 'unlimited'");
    expect_refused(&whole, "1.5", "'1.5' is not a whole number");
    expect_refused(&whole, "", "");
    expect_refused(&real, "nan", "'nan'");
    expect_refused(&real, "inf", "'inf'");
    expect_refused(&real, "1e999", "too large");
    expect_refused(&time, "5 parsecs", "parsecs");
    expect_refused(&time, "61 s", "must be at most 60 s, not 61 s");
    ck_assert_int_eq(expect_integer(&time, "1 min"), 60 * PS_PER_SECOND);
    ck_assert_int_eq(expect_integer(&time, "1 ps"), 1);
}
END_TEST

START_TEST(words_are_checked)
{
    const struct field flag = {.name = "f", .kind = FIELD_BOOL};
    const struct field choice = {.name = "metric",
                                 .kind = FIELD_CHOICE,
                                 .choices = table_metrics,
                                 .later = table_metrics_later};
    char why[FIELD_WHY_MAX];
    union cell cell;
    ck_assert(parse(&flag, "true", &cell, why) && cell.flag);
    ck_assert(parse(&flag, "false", &cell, why) && !cell.flag);
    expect_refused(&flag, "yes", "'yes' is neither true nor false");
    ck_assert(parse(&choice, "queue", &cell, why));
    ck_assert_int_eq(cell.choice, 2);
    expect_refused(&choice, "quue", "unknown metric 'quue', did you mean 'queue'?");
    expect_refused(&choice, "xyzzy", "known: concurrency, utilization, queue");
    expect_refused(&choice, "slo", "metric 'slo' is designed but not built yet");
}
END_TEST

START_TEST(reasons_fit_any_buffer)
{
    const struct field choice = {.name = "metric", .kind = FIELD_CHOICE, .choices = table_metrics};
    struct arena arena;
    char why[FIELD_WHY_MAX], text[1000];
    int value;
    arena_init(&arena);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t size = 1; size <= sizeof why; size++) {
        memset(why, '#', sizeof why);
        ck_assert(!field_parse(&choice, text, &value, &arena, why, size));
        ck_assert_uint_lt(strnlen(why, size), size);
        ck_assert(size == sizeof why || why[size] == '#');
    }
    arena_free(&arena);
}
END_TEST

START_TEST(stamps_are_utc_seconds)
{
    const struct field stamp = {.name = "start", .kind = FIELD_STAMP};
    static const char *const bad[] = {"2026-13-01",
                                      "2026-00-01",
                                      "2026-02-29",
                                      "2100-02-29T00:00:00Z",
                                      "2026-3-2",
                                      "2026-03-02T00:00:00",
                                      "2026-03-02T24:00:00Z",
                                      "2026-03-02T00:60:00Z",
                                      "0000-01-01",
                                      "2026-03-02T00:00:60Z",
                                      "2026-03-02T00:00:00Zx",
                                      "2026-03-02T00:00:00+01:00",
                                      "",
                                      "noon",
                                      "20260302",
                                      "2026-03-02T",
                                      "2026-03-02T1Z",
                                      NULL};
    ck_assert_int_eq(expect_integer(&stamp, "1970-01-01T00:00:00Z"), 0);
    ck_assert_int_eq(expect_integer(&stamp, "2026-03-02T00:00:00Z"), INT64_C(1772409600));
    ck_assert_int_eq(expect_integer(&stamp, "2026-03-02"), INT64_C(1772409600));
    ck_assert_int_eq(expect_integer(&stamp, "2026-03-02 12:30Z"), INT64_C(1772409600) + 45000);
    ck_assert_int_eq(expect_integer(&stamp, "2000-02-29T23:59:59Z"), INT64_C(951868799));
    ck_assert_int_eq(expect_integer(&stamp, "1969-12-31T23:59:59Z"), -1);
    ck_assert_int_eq(expect_integer(&stamp, "0001-01-01T00:00:00Z"), INT64_C(-62135596800));
    ck_assert_int_eq(expect_integer(&stamp, "9999-12-31T23:59:59Z"), INT64_C(253402300799));
    for (size_t i = 0; bad[i]; i++)
        expect_refused(&stamp, bad[i], "is not a UTC time such as");
}
END_TEST

/* Every day of 800 years, each at another second, and the days follow one another. */
START_TEST(stamps_read_back)
{
    const struct field stamp = {.name = "start", .kind = FIELD_STAMP};
    struct arena arena;
    arena_init(&arena);
    int64_t first = expect_integer(&stamp, "1600-01-01");
    for (int64_t day = 0; day < 292194; day++) {
        int64_t value = first + day * 86400 + day * 7919 % 86400;
        ck_assert_int_eq(expect_integer(&stamp, field_text(&stamp, &value, &arena)), value);
    }
    ck_assert_int_eq(first + INT64_C(292194) * 86400, expect_integer(&stamp, "2400-01-01"));
    arena_free(&arena);
}
END_TEST

START_TEST(the_echo_is_yaml)
{
    static const char expected[] = "name: day\n"
                                   "description: \"two\\nlines: \\\"x\\\" # \\u2028\\x85\"\n"
                                   "seed: 1\n"
                                   "horizon: 24 h\n"
                                   "drain: true\n"
                                   "role: unified\n"
                                   "router:\n"
                                   "  policy: round_robin\n"
                                   "pools:\n"
                                   "  - name: \"true\"\n"
                                   "    max_queue: unlimited\n"
                                   "    engine:\n"
                                   "      block_size: 16\n"
                                   "      memory_share: 0.9\n"
                                   "      prefix_caching: false\n"
                                   "    autoscaler:\n"
                                   "      policy: none\n"
                                   "    price: $3/h\n"
                                   "stages: []\n"
                                   "matrix:\n"
                                   "  - [1, unlimited]\n"
                                   "  - []\n"
                                   "fallback_engine:\n"
                                   "  block_size: 16\n"
                                   "  memory_share: 0.9\n"
                                   "  prefix_caching: false\n"
                                   "rate: 10 /s\n";
    struct arena arena;
    struct table_root root;
    struct table_pool pool;
    int64_t row[] = {1, FIELD_INT_UNLIMITED};
    struct field_list rows[] = {{row, 2}, {row, 0}};
    arena_init(&arena);
    field_defaults(table_root_fields, &root, &arena);
    field_defaults(table_pool_fields, &pool, &arena);
    root.name = "day";
    root.description = "two\nlines: \"x\" # \xe2\x80\xa8\xc2\x85";
    pool.name = "true";
    root.pools = (struct field_list){&pool, 1};
    root.matrix = (struct field_list){rows, 2};
    ck_assert_str_eq(field_yaml(table_root_fields, &root, &arena), expected);
    arena_free(&arena);
}
END_TEST

static void defaults_broken(void *context)
{
    struct arena arena;
    int64_t value;
    arena_init(&arena);
    field_defaults(context, &value, &arena);
}

START_TEST(broken_tables_stop_the_program)
{
    const struct field wrong[] = {
        {.name = "wrong", .kind = FIELD_INT, .fallback = "0", .min = 1, .max = 2}, {0}};
    const struct field none[] = {{.name = "none", .kind = FIELD_INT}, {0}};
    char message[512];
    ck_assert(suite_aborts(defaults_broken, (void *)wrong, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "default of wrong: must be at least 1"));
    ck_assert(suite_aborts(defaults_broken, (void *)none, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "none has no default"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_time_that_needs_its_unit,
                                  defaults_fill_every_kind,
                                  inline_fields_are_found_at_their_offset,
                                  ranges_bind_where_they_are_stated,
                                  numbers_say_what_they_are_not,
                                  words_are_checked,
                                  reasons_fit_any_buffer,
                                  stamps_are_utc_seconds,
                                  stamps_read_back,
                                  the_echo_is_yaml,
                                  broken_tables_stop_the_program,
                                  NULL};
    return suite_run("field", tests, 60);
}
