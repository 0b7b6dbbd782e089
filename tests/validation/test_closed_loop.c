/* Time to first token under load: the engine in closed loop at the concurrency of every measured
 * serving point above 4, against what was measured. Prints every table of docs/validation.md's
 * section on it. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/time.h"
#include "tests/validation/support_loop.h"
#include "tests/validation/support_score.h"
#include "tests/validation/support_waves.h"

enum { SKIPPED = 77, POINTS_MAX = 1000, GROUPS_MAX = 64, QUIET = 4 };

/* Of TTFT, dense and MoE together, with requests per user that the row itself did not choose. */
static const double TTFT_MEDIAN_MAX = 0.25;
/* Of the engine's TPOT. The targets of the closed form are 10 % dense and 14 % MoE for steady
 * state; a run of ten waves is not quite that, so both classes get the wider. */
static const double TPOT_MEDIAN_MAX = 0.14;
/* Of the engine's TPOT from the closed form's, median. */
static const double AGREEMENT_MAX = 0.10;

enum figure { FIGURE_TTFT, FIGURE_TTFT_MEDIAN, FIGURE_TPOT, FIGURE_AGREEMENT };
enum family { BOTH, DENSE, MOE };

/* Requests per user: an index of waves_counts for all points, or, from HELD_OUT on, inferred for
 * each point in one of the ways below. */
enum { WAYS = 4, HELD_OUT = WAVES_COUNTS, AT_END = HELD_OUT + WAYS };

/* The first counts; the others say how firm it is. */
static const struct way {
    const char *name;
    enum figure figure;  /* whose error chooses */
    bool lengths_apart;  /* rows with equally long prompts do not choose for each other */
    bool inferencex_too; /* else ten, as its scripts say */
} ways[WAYS] = {
    {"inferred, held out", FIGURE_TTFT, false, false},
    {"the same, all rows of a prompt length held out", FIGURE_TTFT, true, false},
    {"inferred from TPOT, held out", FIGURE_TPOT, false, false},
    {"inferred for InferenceX too, held out", FIGURE_TTFT, false, true},
};

struct outcome {
    const struct point *point;
    struct loop_result runs[WAVES_COUNTS];
    size_t inferred[WAYS]; /* indices of runs */
};

/* A figure of some of the outcomes. */
struct query {
    enum figure figure;
    size_t at; /* requests per user */
    enum family family;
    bool excluded_too;
    const char *(*key)(const struct point *);
    const char *name; /* only points whose key it is; NULL: all */
};

static const struct {
    const char *name;
    enum family family;
    bool excluded_too;
} classes[] = {
    {"dense", DENSE, false},
    {"MoE", MOE, false},
    {"both", BOTH, false},
    {"dense, with the excluded", DENSE, true},
    {"MoE, with the excluded", MOE, true},
    {"both, with the excluded", BOTH, true},
};

static struct arena arena;
static struct points points;
static struct outcome outcomes[POINTS_MAX];
static size_t outcome_count;

static bool moe_of(const struct point *p)
{
    return p->llm->moe.experts > 0;
}

/* With sanitizers every iteration costs tens of times as much: every eighth point is run. */
static size_t stride(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 8;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return 8;
#else
    return 1;
#endif
#else
    return 1;
#endif
}

static size_t run_index(const struct outcome *o, size_t at)
{
    return at < WAVES_COUNTS ? at : o->inferred[at - HELD_OUT];
}

static double error_of(const struct outcome *o, enum figure figure, size_t at)
{
    const struct point *p = o->point;
    const struct loop_result *run = &o->runs[run_index(o, at)];
    switch (figure) {
    case FIGURE_TTFT:
        return run->ttft_mean_s / p->ttft_s - 1;
    case FIGURE_TTFT_MEDIAN:
        return run->ttft_median_s / p->ttft_s - 1;
    case FIGURE_TPOT:
        return run->tpot_mean_s / p->tpot_s - 1;
    case FIGURE_AGREEMENT:
        return run->tpot_mean_s / p->estimate.tpot_s - 1;
    }
    return NAN;
}

/* Rows of InferenceX are named by date or by its name for DeepSeek-R1; the others by the model. */
static bool inferencex_of(const struct point *p)
{
    return strncmp(p->id, "20", 2) == 0 || strncmp(p->id, "dsr1", 4) == 0;
}

/* Collection and engine version. */
static const char *group_key(const struct point *p)
{
    static char text[96];
    snprintf(text, sizeof text, "%s, %s, %s %s", inferencex_of(p) ? "InferenceX" : "other",
             p->llm->name, p->engine, p->version[0] ? p->version : "(no version)");
    return text;
}

static void run_all(void)
{
    for (size_t i = 0; i < points.count; i += stride()) {
        const struct point *p = &points.items[i];
        if (p->concurrency <= QUIET)
            continue;
        ck_assert_uint_lt(outcome_count, POINTS_MAX);
        struct outcome *o = &outcomes[outcome_count++];
        o->point = p;
        for (size_t at = 0; at < WAVES_COUNTS; at++)
            o->runs[at] = loop_run(p, waves_counts[at]);
    }
}

static void infer(size_t at)
{
    static struct waves_row rows[POINTS_MAX];
    const struct way *way = &ways[at - HELD_OUT];
    for (size_t i = 0; i < outcome_count; i++) {
        const struct point *p = outcomes[i].point;
        rows[i].group = arena_printf(&arena, "%s", group_key(p));
        rows[i].kept = p->exclusion == POINT_KEPT;
        rows[i].fold = way->lengths_apart ? p->prompt : (double)i;
        for (size_t count = 0; count < WAVES_COUNTS; count++)
            rows[i].errors[count] = error_of(&outcomes[i], way->figure, count);
    }
    for (size_t i = 0; i < outcome_count; i++) {
        bool stated = inferencex_of(outcomes[i].point) && !way->inferencex_too;
        outcomes[i].inferred[at - HELD_OUT] =
            stated ? WAVES_TEN : waves_held_out(rows, outcome_count, i);
    }
}

static bool selected(const struct point *p, const struct query *q)
{
    return (q->family == BOTH || moe_of(p) == (q->family == MOE)) &&
           (q->excluded_too || p->exclusion == POINT_KEPT) &&
           (!q->name || strcmp(q->key(p), q->name) == 0);
}

static struct score score_where(struct query q)
{
    double errors[POINTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < outcome_count; i++)
        if (selected(outcomes[i].point, &q))
            errors[count++] = error_of(&outcomes[i], q.figure, q.at);
    return score_of(errors, count);
}

static double median_where(struct query q)
{
    return score_where(q).median;
}

static void print_score(const char *label, struct query q)
{
    score_print(label, score_where(q));
}

static void print_classes(const char *title, enum figure figure, size_t at)
{
    score_print_head(title);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        print_score(classes[i].name, (struct query){figure, at, classes[i].family,
                                                    classes[i].excluded_too, NULL, NULL});
}

static const char *model_key(const struct point *p)
{
    return p->llm->name;
}

static const char *engine_key(const struct point *p)
{
    static char text[64];
    snprintf(text, sizeof text, "%s, %s", p->engine, moe_of(p) ? "MoE" : "dense");
    return text;
}

static const char *concurrency_key(const struct point *p)
{
    return p->concurrency <= 16    ? "concurrency 5-16"
           : p->concurrency <= 64  ? "concurrency 17-64"
           : p->concurrency <= 128 ? "concurrency 65-128"
                                   : "concurrency above 128";
}

/* Calls print once for every key that a kept outcome has, in the order of the data. */
static void for_keys(struct query q, void (*print)(const char *label, struct query q))
{
    static char names[GROUPS_MAX][96];
    size_t count = 0;
    for (size_t i = 0; i < outcome_count; i++) {
        const char *name = q.key(outcomes[i].point);
        size_t at = 0;
        while (at < count && strcmp(names[at], name) != 0)
            at++;
        if (at < count || outcomes[i].point->exclusion != POINT_KEPT)
            continue;
        ck_assert_uint_lt(count, GROUPS_MAX);
        snprintf(names[count++], sizeof names[0], "%s", name);
        q.name = names[at];
        print(q.name, q);
    }
}

static void print_groups(const char *title, const char *(*key)(const struct point *))
{
    score_print_head(title);
    for_keys((struct query){.figure = FIGURE_TTFT, .at = HELD_OUT, .key = key}, print_score);
}

static void print_percent(struct query q, size_t at)
{
    q.at = at;
    printf(" %5.1f %% |", 100 * median_where(q));
}

static void print_way(const char *name, size_t at)
{
    printf("| %-46s |", name);
    for (size_t i = 0; i < 3; i++)
        print_percent((struct query){.figure = FIGURE_TTFT, .family = classes[i].family}, at);
    printf("\n");
}

/* What the figure hangs on: how the number of requests per user is come by. */
static void print_ways(void)
{
    printf("\n| %-46s | dense   | MoE     | both    |\n| --- | --- | --- | --- |\n",
           "TTFT by requests per user");
    print_way("ten for all", WAVES_TEN);
    for (size_t at = HELD_OUT; at < AT_END; at++)
        print_way(ways[at - HELD_OUT].name, at);
}

/* The rows of one group may get different numbers: each is chosen by the others. */
static void print_inferred(const struct query *q)
{
    long long low = INT64_MAX, high = 0;
    for (size_t i = 0; i < outcome_count; i++)
        if (selected(outcomes[i].point, q)) {
            long long waves = waves_counts[run_index(&outcomes[i], HELD_OUT)];
            low = waves < low ? waves : low;
            high = waves > high ? waves : high;
        }
    if (low < high)
        printf(" %5lld-%-2lld |", low, high);
    else
        printf(" %8lld |", low);
}

static const size_t shown_counts[] = {0, 1, 3, WAVES_TEN, 7, 8};

/* TPOT, which chose nothing, tells whether a number is more than a correction of TTFT. */
static void print_counts(const char *label, struct query q)
{
    printf("| %-46s | %4zu |", label, score_where(q).count);
    for (size_t i = 0; i < sizeof shown_counts / sizeof *shown_counts; i++)
        print_percent(q, shown_counts[i]);
    print_inferred(&q);
    print_percent(q, HELD_OUT);
    q.figure = FIGURE_TPOT;
    print_percent(q, WAVES_TEN);
    print_percent(q, HELD_OUT);
    printf("\n");
}

static void print_collections(void)
{
    printf("\n| %-46s | rows |", "TTFT by requests per user");
    for (size_t i = 0; i < sizeof shown_counts / sizeof *shown_counts; i++)
        printf(" %7lld |", (long long)waves_counts[shown_counts[i]]);
    printf(" inferred | held out | TPOT, ten | TPOT, held out |\n|");
    for (size_t i = 0; i < 6 + sizeof shown_counts / sizeof *shown_counts; i++)
        printf(" --- |");
    printf("\n");
    for_keys((struct query){.figure = FIGURE_TTFT, .key = group_key}, print_counts);
    for (size_t i = 0; i < 3; i++)
        print_counts(classes[i].name,
                     (struct query){.figure = FIGURE_TTFT, .family = classes[i].family});
}

static bool same_configuration(const struct point *a, const struct point *b)
{
    return a->llm->layers == b->llm->layers && a->llm->hidden == b->llm->hidden &&
           strcmp(a->system, b->system) == 0 &&
           memcmp(&a->parallel, &b->parallel, sizeof a->parallel) == 0 &&
           strcmp(a->precision, b->precision) == 0 && a->prompt == b->prompt &&
           a->output == b->output && a->concurrency == b->concurrency;
}

/* How far two engines or versions are apart where everything the prediction sees is equal. */
static void print_spread(void)
{
    static double ratios[POINTS_MAX * GROUPS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < outcome_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct point *a = outcomes[i].point, *b = outcomes[k].point;
            bool other = strcmp(a->engine, b->engine) != 0 || strcmp(a->version, b->version) != 0;
            if (other && a->exclusion == POINT_KEPT && b->exclusion == POINT_KEPT &&
                same_configuration(a, b) && count < sizeof ratios / sizeof *ratios)
                ratios[count++] = fmax(a->ttft_s, b->ttft_s) / fmin(a->ttft_s, b->ttft_s) - 1;
        }
    printf(
        "\n%zu pairs of kept points differ in engine or version only: the slower TTFT is %.0f %% "
        "longer at the median\n",
        count, 100 * score_of(ratios, count).median);
}

START_TEST(test_loop)
{
    run_all();
    for (size_t at = HELD_OUT; at < AT_END; at++)
        infer(at);
    print_ways();
    print_classes("TTFT, ten requests per user for all", FIGURE_TTFT, WAVES_TEN);
    print_classes("TTFT, inferred, held out", FIGURE_TTFT, HELD_OUT);
    print_classes("TTFT, median of the run, ten for all", FIGURE_TTFT_MEDIAN, WAVES_TEN);
    print_classes("TPOT, ten for all", FIGURE_TPOT, WAVES_TEN);
    print_classes("TPOT, ten for all, engine against closed form", FIGURE_AGREEMENT, WAVES_TEN);
    print_collections();
    print_groups("TTFT by engine, held out", engine_key);
    print_groups("TTFT by model, held out", model_key);
    print_groups("TTFT by concurrency, held out", concurrency_key);
    print_spread();
    double ttft = median_where((struct query){.figure = FIGURE_TTFT, .at = HELD_OUT});
    printf("\nTTFT: median error %.1f %% held out; the target of 25 %% is %s\n", 100 * ttft,
           ttft <= TTFT_MEDIAN_MAX ? "met" : "missed");
    fflush(stdout);
    if (stride() > 1) {
        printf("SKIP: figures are not judged on every %zuth point\n", stride());
        return;
    }
    ck_assert_double_le(ttft, TTFT_MEDIAN_MAX);
    for (int family = DENSE; family <= MOE; family++) {
        struct query q = {.figure = FIGURE_TPOT, .at = WAVES_TEN, .family = (enum family)family};
        ck_assert_double_le(median_where(q), TPOT_MEDIAN_MAX);
        q.figure = FIGURE_AGREEMENT;
        ck_assert_double_le(median_where(q), AGREEMENT_MAX);
    }
}
END_TEST

/* Errors that grow with the distance from a best count. */
static struct waves_row row_of(const char *group, double fold, size_t best)
{
    struct waves_row row = {.group = group, .kept = true, .fold = fold};
    for (size_t at = 0; at < WAVES_COUNTS; at++)
        row.errors[at] = 0.1 * ((double)at - (double)best);
    return row;
}

/* A row's own errors choose nothing for it, whatever they are; those of the others do. */
START_TEST(test_held_out)
{
    const struct waves_row rows[] = {row_of("a", 0, 2), row_of("a", 1, 4), row_of("a", 2, 4),
                                     row_of("a", 3, 2), row_of("b", 4, 0)};
    enum { COUNT = sizeof rows / sizeof *rows };
    static const size_t expected[COUNT] = {4, 2, 2, 4, WAVES_TEN}; /* b is alone */
    ck_assert_int_eq(waves_counts[WAVES_TEN], 10);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t best = 0; best < WAVES_COUNTS; best++) {
            struct waves_row changed[COUNT];
            memcpy(changed, rows, sizeof rows);
            changed[i] = row_of(rows[i].group, rows[i].fold, best);
            ck_assert_uint_eq(waves_held_out(changed, COUNT, i), expected[i]);
        }
}
END_TEST

START_TEST(test_held_out_rules)
{
    struct waves_row rows[] = {row_of("a", 0, 0), row_of("a", 0, 1), row_of("a", 1, 7),
                               row_of("b", 2, 8)};
    const size_t count = sizeof rows / sizeof *rows;
    ck_assert_uint_eq(waves_held_out(rows, count, 0), 7); /* not its fold, nor b */
    rows[2].errors[3] = -rows[2].errors[7];
    ck_assert_uint_eq(waves_held_out(rows, count, 0), 3); /* of two equal, the smaller */
    rows[1].kept = false;
    ck_assert_uint_eq(waves_held_out(rows, count, 2), 0); /* the excluded do not choose */
    ck_assert_uint_eq(waves_held_out(rows, count, 1), 3); /* but get a number */
    rows[2].kept = false;
    ck_assert_uint_eq(waves_held_out(rows, count, 0), WAVES_TEN); /* nobody is left */
}
END_TEST

/* A lone user never waits: the engine must give what the closed form says of one prompt, but for
 * lengths that vary by 11 % about their mean. */
START_TEST(test_alone)
{
    for (size_t i = 0; i < points.count; i += 8 * stride()) {
        struct point p = points.items[i];
        p.concurrency = 1;
        struct roofline_factors factors = roofline_default_factors(p.llm);
        double expected = p.estimate.prefill_s + time_seconds(factors.first_token_ps);
        double ttft = loop_run(&p, 100).ttft_mean_s;
        ck_assert_msg(fabs(ttft / expected - 1) <= 0.05, "%s: %g s, closed form %g s", p.id, ttft,
                      expected);
    }
}
END_TEST

int main(void)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    arena_init(&arena);
    const char *path = points_path(&arena);
    if (!path) {
        printf("SKIP: data/serving_points is absent (set FLEETSIM_SHARED)\n");
        arena_free(&arena);
        return SKIPPED;
    }
    points = points_load(path, &arena);
    points_predict(&points, NULL);
    points_exclude(&points);
    Suite *suite = suite_create("closed_loop");
    TCase *tcase = tcase_create("points above concurrency 4");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, test_held_out);
    tcase_add_test(tcase, test_held_out_rules);
    tcase_add_test(tcase, test_loop);
    tcase_add_test(tcase, test_alone);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    arena_free(&arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
