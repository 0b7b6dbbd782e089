/* sweep.yaml as axes, points and --set texts: worked by hand. */
#include <math.h>
#include <string.h>

#include "sim/run/sweep_points.h"
#include "tests/unit/suite_run.h"

/* A sweep from a text, in a file of the working folder. */
struct sheet {
    struct arena arena;
    struct errors errors;
    struct sweep_file *file;
    struct sweep_plan plan;
    bool ok;
};

static void sheet_make(struct sheet *s, const char *axes, bool one_at_a_time)
{
    char path[] = "test_sweep_points.XXXXXX";
    arena_init(&s->arena);
    errors_init(&s->errors);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    dprintf(fd, "name: t\nbase: none.yaml\n%s", axes);
    close(fd);
    s->file = sweep_file_load(path, NULL, &s->arena, &s->errors);
    unlink(path);
    s->ok = s->file && sweep_points_plan(&s->plan, s->file, one_at_a_time, &s->arena, &s->errors);
}

static void sheet_free(struct sheet *s)
{
    errors_free(&s->errors);
    arena_free(&s->arena);
}

/* The --set texts of a point, each followed by ';'. */
static const char *sets_of(struct sheet *s, size_t point)
{
    size_t count;
    const char *text = "";
    const struct sweep_set *sets = sweep_points_sets(&s->plan, point, &count, &s->arena);
    for (size_t i = 0; i < count; i++)
        text = arena_printf(&s->arena, "%s%s;", text, sets[i].text);
    return text;
}

START_TEST(every_axis_is_crossed_the_last_fastest)
{
    struct sheet s;
    sheet_make(&s,
               "replications: 3\n"
               "axes:\n"
               "  - {name: a, key: x.a, list: [1 s, 2 min, 'a b']}\n"
               "  - {name: b, key: ['x[0].b', y], zip: [[1, {p: q, r: [1, 2]}], [2, ~]]}\n",
               false);
    ck_assert(s.ok);
    ck_assert_uint_eq(s.plan.points, 6);
    ck_assert_uint_eq(s.plan.runs, 18);
    ck_assert_str_eq(sets_of(&s, 0), "x.a=1 s;x[0].b=1;y={p: q, r: [1, 2]};");
    ck_assert_str_eq(sets_of(&s, 1), "x.a=1 s;x[0].b=2;y=~;");
    ck_assert_str_eq(sets_of(&s, 4), "x.a=\"a b\";x[0].b=1;y={p: q, r: [1, 2]};");
    ck_assert_uint_eq(sweep_points_value(&s.plan, 5, 0), 2);
    ck_assert_uint_eq(sweep_points_value(&s.plan, 5, 1), 1);
    ck_assert_str_eq(sweep_points_label(&s.plan, 3, &s.arena), "a=2 min, b=2/~");
    char id[SWEEP_POINTS_ID_MAX];
    ck_assert_str_eq(sweep_points_id(&s.plan, 17, id), "p00005-r002");
    ck_assert_uint_eq(sweep_points_find(&s.plan.inputs[0], "2 min", 0), 1);
    ck_assert_uint_eq(sweep_points_find(&s.plan.inputs[0], "3 min", 0), SIZE_MAX);
    sheet_free(&s);
}
END_TEST

START_TEST(texts_that_need_quotes_get_them)
{
    struct sheet s;
    sheet_make(&s,
               "axes:\n  - {name: a, key: k, list: ['x, y', \"q\\\"t\\\\\", '', 'a: b', '[1]', "
               "'null', -3, 1e-3, 70 %, -x]}\n",
               false);
    ck_assert(s.ok);
    static const char *const texts[] = {
        "k=\"x, y\";", "k=\"q\\\"t\\\\\";", "k=\"\";", "k=\"a: b\";", "k=\"[1]\";", "k=\"null\";",
        "k=-3;",       "k=1e-3;",           "k=70 %;", "k=-x;"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_str_eq(sets_of(&s, i), texts[i]);
    sheet_free(&s);
}
END_TEST

START_TEST(ranges_step_count_log_and_round)
{
    struct sheet s;
    sheet_make(&s,
               "axes:\n"
               "  - {name: a, key: a, range: {from: 10 s, to: 50 s, step: 20}}\n"
               "  - {name: b, key: b, range: {from: 1, to: 1000, count: 4, scale: log}}\n"
               "  - {name: c, key: c, range: {from: 1, to: 2, count: 5, round: true}}\n"
               "  - {name: d, key: d, range: {from: 2, to: 20, step: 3, scale: log}}\n"
               "  - {name: e, key: e, range: {from: 1, to: 0, step: -0.1}}\n",
               false);
    ck_assert(s.ok);
    static const size_t counts[] = {3, 4, 2, 3, 11};
    static const char *const lasts[] = {"50 s", "1000", "2", "18", "0"};
    for (size_t i = 0; i < 5; i++) {
        const struct sweep_input *input = &s.plan.inputs[i];
        ck_assert_uint_eq(input->axis.count, counts[i]);
        ck_assert_str_eq(input->values[counts[i] - 1].text, lasts[i]);
    }
    ck_assert_str_eq(s.plan.inputs[1].values[2].text, "100");
    ck_assert_str_eq(s.plan.inputs[4].values[3].text, "0.7");
    sheet_free(&s);
}
END_TEST

START_TEST(whole_numbers_keep_every_digit)
{
    struct sheet s;
    sheet_make(
        &s,
        "axes:\n"
        "  - {name: a, key: seed, range: {from: 1234567890123, to: 1234567890130, step: 1}}\n"
        "  - {name: b, key: b, samples: {count: 2, from: [9007199254740990 s], "
        "to: [9007199254740990 s]}}\n",
        false);
    ck_assert(s.ok);
    ck_assert_uint_eq(s.plan.inputs[0].axis.count, 8);
    ck_assert_str_eq(s.plan.inputs[0].values[7].text, "1234567890130");
    ck_assert_str_eq(s.plan.inputs[1].values[0].text, "9007199254740990 s");
    sheet_free(&s);
}
END_TEST

START_TEST(keys_that_go_together)
{
    struct sheet s;
    /* A whole mapping, and then one of its values; another item; another name with the same
     * beginning. */
    sheet_make(&s,
               "axes:\n"
               "  - {name: a, key: p, list: [{q: 1}]}\n"
               "  - {name: b, key: p.q, list: [2]}\n"
               "  - {name: c, key: ['x[1]', 'x[10]', 'x[100].y'], list: [3]}\n"
               "  - {name: d, key: pq, list: [4]}\n",
               false);
    ck_assert(s.ok);
    ck_assert(sweep_points_covers("a[1]", "a[01].b"));
    ck_assert(!sweep_points_covers("a[1]", "a[10]"));
    ck_assert(!sweep_points_covers("a.b", "a"));
    sheet_free(&s);
}
END_TEST

START_TEST(samples_are_the_sobol_sequence)
{
    struct sheet s;
    sheet_make(&s,
               "axes:\n"
               "  - name: s\n"
               "    key: [a, b]\n"
               "    samples: {count: 3, skip: 1, from: [0, 1 s], to: [8, 10000 s], scale: [linear, "
               "log]}\n",
               false);
    ck_assert(s.ok);
    /* 0.5 0.5 is skipped; then (0.75, 0.25), (0.25, 0.75), (0.375, 0.375). */
    ck_assert_str_eq(sets_of(&s, 0), "a=6;b=10 s;");
    ck_assert_str_eq(sets_of(&s, 1), "a=2;b=1000 s;");
    ck_assert_str_eq(sets_of(&s, 2), "a=3;b=31.6227766017 s;");
    const struct sweep_axis *axis = &s.plan.axes[0];
    ck_assert_uint_eq(axis->column_count, 3);
    ck_assert_double_eq(axis->columns[0].numbers[2], 2);
    ck_assert_str_eq(axis->columns[2].name, "s_b");
    ck_assert_double_eq(axis->columns[2].numbers[1], 1000);
    ck_assert_str_eq(axis->columns[2].unit, "s");
    sheet_free(&s);
}
END_TEST

START_TEST(coordinates_have_numbers_and_units)
{
    struct sheet s;
    sheet_make(&s,
               "axes:\n"
               "  - {name: a, key: k, list: [30, 2 min], unit: min}\n"
               "  - {name: b, key: l, list: [1, 2], unit: GPUs}\n"
               "  - {name: c, key: m, list: [0.5, 70 %]}\n"
               "  - {name: d, key: n, list: [2 s, x]}\n"
               "  - {name: e, key: o, list: [1, 2], labels: [one, two]}\n"
               "  - {key: 'p[0].max_queue', list: [3]}\n",
               false);
    ck_assert(s.ok);
    const struct sweep_axis *axes = s.plan.axes;
    ck_assert_double_eq(axes[0].columns[0].numbers[0], 0.5);
    ck_assert_double_eq(axes[0].columns[0].numbers[1], 2);
    ck_assert_str_eq(axes[0].columns[0].unit, "min");
    ck_assert_str_eq(axes[1].columns[0].unit, "GPUs");
    ck_assert_double_eq(axes[2].columns[0].numbers[1], 0.7);
    ck_assert_ptr_null(axes[3].columns[0].numbers);
    ck_assert_str_eq(axes[3].columns[0].labels[1], "x");
    ck_assert_ptr_null(axes[4].columns[0].numbers);
    ck_assert_str_eq(axes[4].columns[0].labels[1], "two");
    ck_assert_str_eq(axes[5].name, "max_queue");
    sheet_free(&s);
}
END_TEST

START_TEST(one_at_a_time_has_the_base_first)
{
    struct sheet s;
    sheet_make(&s,
               "axes:\n"
               "  - {name: a, key: a, list: [1, 2]}\n"
               "  - {name: b, key: b, list: [3, 4, 5]}\n",
               true);
    ck_assert(s.ok);
    ck_assert_uint_eq(s.plan.points, 6);
    ck_assert_str_eq(sets_of(&s, 0), "");
    ck_assert_str_eq(sets_of(&s, 2), "a=2;");
    ck_assert_str_eq(sets_of(&s, 3), "b=3;");
    ck_assert_str_eq(sweep_points_label(&s.plan, 0, &s.arena), "base");
    ck_assert_str_eq(s.plan.axes[0].columns[0].labels[5], "b=5");
    ck_assert_str_eq(s.plan.axes[0].columns[1].labels[5], "b");
    ck_assert_uint_eq(s.plan.axis_count, 1);
    sheet_free(&s);
}
END_TEST

START_TEST(no_axes_are_one_point)
{
    struct sheet s;
    sheet_make(&s, "replications: 4\n", false);
    ck_assert(s.ok);
    ck_assert_uint_eq(s.plan.points, 1);
    ck_assert_uint_eq(s.plan.runs, 4);
    ck_assert_str_eq(sets_of(&s, 0), "");
    sheet_free(&s);
}
END_TEST

START_TEST(what_is_no_axis_is_refused)
{
    static const struct {
        const char *axes, *message;
    } cases[] = {
        {"axes:\n  - {name: a, key: a, range: {from: x, to: 2, count: 3}}\n",
         "'x' is not a number such as 10 or 10 s"},
        {"axes:\n  - {name: a, key: a, range: {from: 1 s, to: 2 min, count: 3}}\n",
         "'1 s' and '2 min' are not in the same unit"},
        {"axes:\n  - {name: a, key: a, range: {from: 0, to: 2, count: 3, scale: log}}\n",
         "a log scale goes between numbers above 0, not from 0 to 2"},
        {"axes:\n  - {name: a, key: a, range: {from: 1, to: 2, step: -1}}\n",
         "a step of -1 does not lead from 1 to 2 in 1 to 100000 values"},
        {"axes:\n  - {name: a, key: a, range: {from: 1, to: 2, step: 0}}\n",
         "a step of 0 does not lead from 1 to 2 in 1 to 100000 values"},
        {"axes:\n  - {name: a, key: [a, b], samples: {count: 2, from: [1], to: [2, 3]}}\n",
         "'samples': from, to and scale need one item for each of the 2 keys"},
        {"axes:\n  - {name: a, key: a, list: [1, 2], labels: [x]}\n",
         "'labels' has 1 items for 2 values"},
        {"axes:\n  - {name: 1a, key: a, list: [1]}\n",
         "the axis name '1a' is not a letter followed by letters, digits and _ (at most 64)"},
        {"axes:\n  - {name: a, key: [a, a], list: [1]}\n", "'key': 'a' is there twice"},
        {"axes:\n  - {name: a, key: a, range: {from: 1 s, to: 20 s, step: 1 min}}\n",
         "a step of 1 min is not in the unit of from and to"},
        {"axes:\n  - {name: a, key: a, range: {from: 1 s, to: 20 s, step: 2 s, scale: log}}\n",
         "a step of 2 s: what `scale: log` multiplies by has no unit"},
        {"axes:\n  - {name: a, key: a, range: {from: 2, to: 2, count: 3}}\n",
         "a range from 2 to 2 has the value 2 twice"},
        {"axes:\n  - {name: a, key: a, list: [1, 2, 1]}\n", "the axis 'a' has the value '1' twice"},
        {"axes:\n  - {name: a, key: a, list: [1, 2], labels: [x, x]}\n",
         "the axis 'a' has the value 'x' twice"},
        {"axes:\n  - {name: a, key: 'p[1].q', list: [1]}\n  - {name: b, key: 'p[01].q', list: "
         "[2]}\n",
         "'p[01].q' sets again what 'p[1].q' of the axis 'a' has set"},
        {"axes:\n  - {name: a, key: p.q, list: [1]}\n  - {name: b, key: p, list: [{q: 2}]}\n",
         "'p' sets again what 'p.q' of the axis 'a' has set"},
        {"axes:\n  - {name: a, key: ['p[0]', p], list: [1]}\n",
         "'p' sets again what 'p[0]' of the axis 'a' has set"},
        {"replications: 2\naxes:\n  - {name: a, key: replication, list: [1]}\n",
         "'replication' is an axis already, with 2 replications"},
        {"replications: 1000\naxes:\n  - {name: a, key: a, range: {from: 1, to: 2000, step: 1}}\n",
         "2000000 runs are more than 1000000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sheet s;
        sheet_make(&s, cases[i].axes, false);
        ck_assert(!s.ok);
        ck_assert_uint_eq(s.errors.count, 1);
        ck_assert_str_eq(s.errors.items[0].message, cases[i].message);
        ck_assert_uint_gt(s.errors.items[0].pos.line, 0);
        sheet_free(&s);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_axis_is_crossed_the_last_fastest,
                                  texts_that_need_quotes_get_them,
                                  ranges_step_count_log_and_round,
                                  whole_numbers_keep_every_digit,
                                  keys_that_go_together,
                                  samples_are_the_sobol_sequence,
                                  coordinates_have_numbers_and_units,
                                  one_at_a_time_has_the_base_first,
                                  no_axes_are_one_point,
                                  what_is_no_axis_is_refused,
                                  NULL};
    return suite_run("sweep points", tests, 60);
}
