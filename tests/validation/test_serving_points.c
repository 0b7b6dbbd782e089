/* Predicted against measured TPOT and TTFT for 844 public serving points. Prints every table;
 * fails when the figures of docs/validation.md no longer hold. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/validation/support_points.h"
#include "tests/validation/support_score.h"

enum { SKIPPED = 77, GROUPS_MAX = 64, WORST = 10 };

static double error_of(const struct point *p)
{
    return p->estimate.tpot_s / p->tpot_s - 1;
}

static bool moe_of(const struct point *p)
{
    return p->llm->moe.experts > 0;
}

/* Score of the points for which key(point) equals name (NULL: all). */
static struct score score_where(const struct points *points, int moe, bool excluded_too,
                                const char *(*key)(const struct point *), const char *name)
{
    double *errors = malloc(points->count * sizeof *errors);
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *p = &points->items[i];
        if ((moe >= 0 && moe_of(p) != moe) || (!excluded_too && p->exclusion != POINT_KEPT) ||
            (name && strcmp(key(p), name) != 0))
            continue;
        errors[count++] = error_of(p);
    }
    struct score s = score_of(errors, count);
    free(errors);
    return s;
}

static const char *model_key(const struct point *p)
{
    return p->llm->name;
}

static const char *gpu_key(const struct point *p)
{
    return p->gpu->name;
}

static const char *engine_key(const struct point *p)
{
    static char text[64];
    snprintf(text, sizeof text, "%s, %s", p->engine, moe_of(p) ? "MoE" : "dense");
    return text;
}

static const char *batch_key(const struct point *p)
{
    return p->concurrency <= 4     ? "concurrency 1-4"
           : p->concurrency <= 16  ? "concurrency 5-16"
           : p->concurrency <= 64  ? "concurrency 17-64"
           : p->concurrency <= 128 ? "concurrency 65-128"
                                   : "concurrency above 128";
}

static void print_groups(const struct points *points, const char *title,
                         const char *(*key)(const struct point *))
{
    static char names[GROUPS_MAX][64];
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const char *name = key(&points->items[i]);
        size_t at = 0;
        while (at < count && strcmp(names[at], name) != 0)
            at++;
        if (at == count && count < GROUPS_MAX)
            snprintf(names[count++], sizeof names[0], "%s", name);
    }
    score_print_head(title);
    for (size_t i = 0; i < count; i++)
        score_print(names[i], score_where(points, -1, false, key, names[i]));
}

static void print_worst(const struct points *points)
{
    bool *shown = calloc(points->count, sizeof *shown);
    printf("\nThe ten worst kept points:\n\n");
    for (int n = 0; n < WORST; n++) {
        size_t worst = points->count;
        for (size_t i = 0; i < points->count; i++) {
            const struct point *p = &points->items[i];
            if (p->exclusion == POINT_KEPT && !shown[i] &&
                (worst == points->count ||
                 fabs(log1p(error_of(p))) > fabs(log1p(error_of(&points->items[worst])))))
                worst = i;
        }
        shown[worst] = true;
        const struct point *p = &points->items[worst];
        printf("- `%s`: measured %.1f ms, predicted %.1f (%+.0f %%)\n", p->id, p->tpot_s * 1e3,
               p->estimate.tpot_s * 1e3, 100 * error_of(p));
    }
    free(shown);
}

static struct score print_ttft(const struct points *points, int moe)
{
    double errors[2000];
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *p = &points->items[i];
        if (p->exclusion == POINT_KEPT && moe_of(p) == moe && p->concurrency <= 4)
            errors[count++] = p->estimate.ttft_s / p->ttft_s - 1;
    }
    struct score s = score_of(errors, count);
    score_print(moe ? "MoE" : "dense", s);
    return s;
}

static void write_csv(const struct points *points, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "id,model,gpu,engine,moe,concurrency,excluded,measured_tpot_ms,"
                  "predicted_tpot_ms,measured_ttft_ms,predicted_ttft_ms\n");
    for (size_t i = 0; i < points->count; i++) {
        const struct point *p = &points->items[i];
        fprintf(file, "%s,%s,\"%s\",%s,%d,%.0f,%d,%.4f,%.4f,%.3f,%.3f\n", p->id, p->llm->name,
                p->gpu->name, p->engine, moe_of(p), p->concurrency, (int)p->exclusion,
                p->tpot_s * 1e3, p->estimate.tpot_s * 1e3, p->ttft_s * 1e3,
                p->estimate.ttft_s * 1e3);
    }
    fclose(file);
}

static size_t print_exclusions(const struct points *points)
{
    size_t excluded = 0;
    printf("%zu points. Excluded:\n", points->count);
    for (int why = POINT_KEPT + 1; why < POINT_EXCLUSIONS; why++) {
        size_t count = 0;
        for (size_t i = 0; i < points->count; i++)
            count += (int)points->items[i].exclusion == why;
        printf("- %s: %zu\n", points_exclusion_names[why], count);
        excluded += count;
    }
    return excluded;
}

static struct arena arena;
static struct points points;

START_TEST(test_points)
{
    size_t excluded = print_exclusions(&points);
    score_print_head("TPOT");
    struct score dense = score_where(&points, 0, false, NULL, NULL);
    struct score moe = score_where(&points, 1, false, NULL, NULL);
    score_print("dense", dense);
    score_print("MoE", moe);
    score_print("dense, with the excluded", score_where(&points, 0, true, NULL, NULL));
    score_print("MoE, with the excluded", score_where(&points, 1, true, NULL, NULL));
    print_groups(&points, "by model", model_key);
    print_groups(&points, "by GPU", gpu_key);
    print_groups(&points, "by engine", engine_key);
    print_groups(&points, "by concurrency", batch_key);
    score_print_head("TTFT at concurrency <= 4");
    print_ttft(&points, 0);
    print_ttft(&points, 1);
    print_worst(&points);
    fflush(stdout);
    ck_assert_uint_eq(points.count, 844);
    ck_assert_double_le((double)excluded, 0.05 * (double)points.count);
    ck_assert_double_le(dense.median, 0.10);
    ck_assert_double_ge(dense.within20, 0.80);
    ck_assert_double_le(moe.median, 0.14);
    ck_assert_double_ge(moe.within20, 0.66);
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
    const char *csv = getenv("FLEETSIM_VALIDATION_CSV");
    if (csv)
        write_csv(&points, csv);
    Suite *suite = suite_create("serving_points");
    TCase *tcase = tcase_create("844 points");
    tcase_add_test(tcase, test_points);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    arena_free(&arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
