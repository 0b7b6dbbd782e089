/* Classes side by side: merge order, extents, exact counts of traces, export and replay. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/base/time.h"
#include "sim/workload/workload_export.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

static struct arena arena;
static struct errors errors;

static void begin(void)
{
    arena_init(&arena);
    errors_init(&errors);
}

static void finish(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

#define FIXED                                                                                      \
    "; prompt_tokens=constant; prompt_tokens.value=10; output_tokens=constant; "                   \
    "output_tokens.value=5"

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    ck_assert_int_eq(fclose(f), 0);
}

/* Three classes that tick together: ties go by class, ids by order. */
START_TEST(ties_go_by_class)
{
    begin();
    const struct traffic_config *classes[] = {
        traffic_make(&arena, "name=b; arrivals=constant; arrivals.rate=2 /s" FIXED),
        traffic_make(&arena, "name=a; arrivals=constant; arrivals.rate=1 /s" FIXED),
        traffic_make(&arena, "name=c; arrivals=constant; arrivals.rate=4 /s" FIXED)};
    struct workload *w = traffic_open(classes, 3, 10 * PS_PER_SECOND, &errors);
    static const uint32_t order[] = {0, 1, 2, 2, 0, 2, 2};
    struct request r;
    uint64_t id = 0;
    int64_t last_ps = 0;
    for (; workload_next(w, &r, &errors) == WORKLOAD_OK; id++) {
        ck_assert_uint_eq(r.id, id);
        ck_assert_uint_eq(r.class_index, order[id % 7]);
        ck_assert_int_ge(r.arrival_ps, last_ps);
        last_ps = r.arrival_ps;
    }
    ck_assert_uint_eq(id, 70);
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_END);
    workload_close(w);
    finish();
}
END_TEST

/* A class's requests do not hang on the classes beside it (only on its own place). */
START_TEST(classes_are_independent)
{
    begin();
    const struct traffic_config *classes[] = {
        traffic_make(&arena, "name=a; arrivals=poisson; arrivals.rate=3 /s; "
                             "prompt_tokens=geometric; prompt_tokens.mean=50; "
                             "output_tokens=lognormal; output_tokens.mean=80; "
                             "output_tokens.cv=1"),
        traffic_make(&arena, "name=b; arrivals=poisson; arrivals.rate=40 /s" FIXED)};
    struct workload *alone = traffic_open(classes, 1, PS_PER_HOUR, &errors);
    struct workload *both = traffic_open(classes, 2, PS_PER_HOUR, &errors);
    struct request x, y;
    uint64_t others = 0;
    while (workload_next(alone, &x, &errors) == WORKLOAD_OK) {
        do {
            ck_assert(workload_next(both, &y, &errors) == WORKLOAD_OK);
            others += y.class_index;
        } while (y.class_index != 0);
        ck_assert_uint_eq(y.id, x.id + others);
        x.id = y.id;
        ck_assert_mem_eq(&x, &y, sizeof x);
    }
    ck_assert_uint_gt(others, 100000);
    workload_close(alone);
    workload_close(both);
    finish();
}
END_TEST

START_TEST(trace_questions)
{
    begin();
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("q.csv"));
    write_text(path, "arrival_s,prompt_tokens,output_tokens\n"
                     "0,10,1\n1800,20,2\n3599.999999999999,30,3\n3600,40,4\n3600,50,5\n"
                     "9000,60,6\n");
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena, "name=t; arrivals=trace; arrivals.file=%s", path));
    struct workload *w = traffic_open(&class, 1, TIME_NONE, &errors);
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(workload_horizon(w), 9000 * PS_PER_SECOND + 1);
    ck_assert_double_eq(workload_mean_prompt(w, 0), 35);
    ck_assert_double_eq(workload_mean_output(w, 0), 3.5);
    ck_assert_double_eq(workload_rate(w, 0, 0), 3.0 / 3600);
    ck_assert_double_eq(workload_rate(w, 0, PS_PER_HOUR), 2.0 / 3600);
    ck_assert_double_eq(workload_rate(w, 0, 50 * PS_PER_HOUR), 0);
    static const struct {
        int64_t from_s, to_s;
        double count;
    } asked[] = {{0, 3600, 3},    {0, 9000, 5},    {0, 9001, 6},     {0, 8000000, 6},
                 {1, 3600, 2},    {1800, 1801, 1}, {1800, 1800, 0},  {3000, 4000, 3},
                 {3601, 9000, 0}, {3601, 9001, 1}, {7200, 10800, 1}, {20000, 30000, 0}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        ck_assert_msg(workload_expected(w, 0, asked[i].from_s * PS_PER_SECOND,
                                        asked[i].to_s * PS_PER_SECOND) == asked[i].count,
                      "case %zu", i);
    struct request r;
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
        ck_assert_uint_eq(r.output_tokens, i + 1);
    }
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_END);
    workload_close(w);

    /* A horizon cuts the rows, and the means with them. */
    w = traffic_open(&class, 1, PS_PER_HOUR, &errors);
    ck_assert_double_eq(workload_mean_prompt(w, 0), 20);
    ck_assert_double_eq(workload_expected(w, 0, 0, 2 * PS_PER_HOUR), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_END);
    workload_close(w);
    remove(path);
    finish();
}
END_TEST

START_TEST(trace_scaled_and_skipped)
{
    begin();
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("s.csv"));
    write_text(path, "arrival_s,prompt_tokens,output_tokens\n"
                     "1700000000.5,10,1\n1700000000.500000000001,20,2\nx,1,1\n"
                     "1700000001.500000000003,30,3\n");
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena,
                             "name=t; arrivals=trace; arrivals.file=%s; arrivals.time_scale=0.5; "
                             "arrivals.on_bad_row=skip; output_tokens=constant; "
                             "output_tokens.value=9",
                             path));
    struct workload_config config = {.classes = &class,
                                     .class_count = 1,
                                     .seed = 1,
                                     .start_unix_s = FIELD_INT_UNSET,
                                     .horizon_ps = TIME_NONE};
    struct workload *w = workload_open(&config, NULL, &errors);
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(workload_start(w), 1700000000);
    ck_assert_uint_eq(workload_skipped_rows(w), 1);
    static const int64_t stamps[] = {0, 1, PS_PER_SECOND / 2 + 2}; /* 0, ½ up, 1.5 s up */
    struct request r;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
        ck_assert_int_eq(r.arrival_ps, stamps[i]);
        ck_assert_uint_eq(r.prompt_tokens, 10 * (uint32_t)(i + 1));
        ck_assert_uint_eq(r.output_tokens, 9);
    }
    ck_assert_double_eq(workload_mean_output(w, 0), 9);
    workload_close(w);

    class = traffic_make(&arena, arena_printf(&arena,
                                              "name=t; arrivals=trace; arrivals.file=%s; "
                                              "arrivals.hash_block_size=16",
                                              path));
    ck_assert_ptr_null(traffic_open(&class, 1, TIME_NONE, &errors));
    traffic_expect_error(&errors, 0, 0, "the trace has no hash_ids");
    class = traffic_make(&arena,
                         arena_printf(&arena, "name=t; arrivals=trace; arrivals.file=%s", path));
    ck_assert_ptr_null(traffic_open(&class, 1, TIME_NONE, &errors));
    traffic_expect_error(&errors, 4, 1, "arrival_s is not a decimal");
    remove(path);
    finish();
}
END_TEST

/* The first pass found the file sound, then someone wrote into it: the run fails, and says so in
 * the errors of the call that met it. */
START_TEST(trace_changed_underneath)
{
    begin();
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("u.csv"));
    FILE *f = fopen(path, "wb");
    fputs("arrival_s,prompt_tokens,output_tokens\n", f);
    for (int i = 0; i < 100000; i++)
        fprintf(f, "%d,10,1\n", i);
    fclose(f);
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena, "name=t; arrivals=trace; arrivals.file=%s", path));
    struct workload *w = traffic_open(&class, 1, TIME_NONE, &errors);
    ck_assert_ptr_nonnull(w);
    f = fopen(path, "r+b");
    fseek(f, 900000, SEEK_SET);
    fputs("garbage", f);
    fclose(f);
    errors_free(&errors);
    struct errors later;
    errors_init(&later);
    struct request r;
    uint64_t rows = 0;
    enum workload_status status;
    while ((status = workload_next(w, &r, &later)) == WORKLOAD_OK)
        rows++;
    ck_assert_int_eq(status, WORKLOAD_FAILED);
    ck_assert_int_eq(workload_next(w, &r, &later), WORKLOAD_FAILED);
    ck_assert(rows > 50000 && rows < 100000);
    ck_assert_uint_ge(later.error_count, 1);
    traffic_expect_error(&later, 0, 0, "changed while the run was reading it");
    errors_free(&later);
    workload_close(w);
    remove(path);
    errors_init(&errors);
    finish();
}
END_TEST

/* A short trace is not read again: its file may be gone. Copies of rows and questions about parts
 * of an hour are as those of a long one, of which these are the first rows. */
START_TEST(short_trace_is_read_once)
{
    enum { ROWS = 1000, LONG_ROWS = 40000 };
    begin();
    struct workload *w[2];
    char path[2][256];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s", traffic_temp(i == 0 ? "short.csv" : "long.csv"));
        FILE *f = fopen(path[i], "wb");
        fputs("arrival_s,prompt_tokens,output_tokens,session,turn\n", f);
        for (int row = 0; row < (i == 0 ? ROWS : LONG_ROWS); row++)
            fprintf(f, "%d.25,%d,%d,%d,%d\n", row, row + 1, row % 7, row / 3, row % 3);
        fclose(f);
        const struct traffic_config *class =
            traffic_make(&arena, arena_printf(&arena,
                                              "name=t; arrivals=trace; arrivals.file=%s; "
                                              "arrivals.rate_scale=1.5; arrivals.time_scale=2",
                                              path[i]));
        w[i] = traffic_open(&class, 1, TIME_NONE, &errors);
        ck_assert_ptr_nonnull(w[i]);
    }
    remove(path[0]);
    ck_assert(workload_expected(w[0], 0, 100 * PS_PER_SECOND, 900 * PS_PER_SECOND) ==
              workload_expected(w[1], 0, 100 * PS_PER_SECOND, 900 * PS_PER_SECOND));
    struct request a, b;
    uint64_t requests = 0;
    for (; workload_next(w[0], &a, &errors) == WORKLOAD_OK; requests++) {
        ck_assert_int_eq(workload_next(w[1], &b, &errors), WORKLOAD_OK);
        ck_assert_int_eq(a.arrival_ps, b.arrival_ps);
        ck_assert_uint_eq(a.prompt_tokens, b.prompt_tokens);
        ck_assert_uint_eq(a.output_tokens, b.output_tokens);
        ck_assert_int_eq(a.session, b.session);
        ck_assert_uint_eq(a.turn, b.turn);
    }
    ck_assert(requests > ROWS * 4 / 3 && requests < ROWS * 5 / 3);
    ck_assert_uint_eq(a.prompt_tokens, ROWS);
    workload_close(w[0]);
    workload_close(w[1]);
    remove(path[1]);
    finish();
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        const char *first, *second, *message;
        int64_t horizon_ps;
    } cases[] = {
        {"name=a; arrivals=poisson; arrivals.rate=1 /s", NULL, "prompt_tokens is missing", 1},
        {"name=a; arrivals=poisson; arrivals.rate=1 /s", NULL, "output_tokens is missing", 1},
        {"name=a; arrivals=poisson; arrivals.rate=1 /s" FIXED, NULL, "horizon is missing",
         TIME_NONE},
        {"name=a; arrivals=poisson; arrivals.rate=1 /s" FIXED, NULL, "at most 100 days",
         HORIZON_MAX_PS + 1},
        {"name=a; arrivals=poisson; arrivals.rate=1 /s" FIXED,
         "name=a; arrivals=poisson; arrivals.rate=1 /s" FIXED, "workload[0] has the name 'a'", 1},
        {"name=a,b; arrivals=poisson; arrivals.rate=1 /s" FIXED, NULL, "no commas", 1},
        {"name=a; arrivals=trace; arrivals.file=no/such.csv", NULL,
         "cannot open 'no/such.csv': No such file", TIME_NONE},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct traffic_config *classes[2] = {traffic_make(&arena, cases[i].first)};
        if (cases[i].second)
            classes[1] = traffic_make(&arena, cases[i].second);
        ck_assert_ptr_null(
            traffic_open(classes, cases[i].second ? 2 : 1, cases[i].horizon_ps, &errors));
        traffic_expect_error(&errors, 0, 0, cases[i].message);
    }
    ck_assert_ptr_null(traffic_open(NULL, 0, 1, &errors));
    traffic_expect_error(&errors, 0, 0, "workload has 0 entries");
    finish();
}
END_TEST

/* Two classes exported to one file; both replay from it to the identical requests. */
static void export_and_replay(const char *suffix)
{
    begin();
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp(suffix));
    const struct traffic_config *classes[] = {
        traffic_make(&arena, "name=chat; arrivals=poisson; arrivals.rate=20 /s; "
                             "arrivals.curve=evening_peak; prompt_tokens=lognormal; "
                             "prompt_tokens.mean=1000; prompt_tokens.sigma=1; "
                             "output_tokens=geometric; output_tokens.mean=300"),
        traffic_make(&arena, "name=the batch; arrivals=constant; arrivals.rate=3 /s; "
                             "prompt_tokens=exponential; prompt_tokens.mean=70; "
                             "output_tokens=constant; output_tokens.value=0")};
    const char *names[] = {"chat", "the batch"};
    struct workload *w = traffic_open(classes, 2, PS_PER_HOUR, &errors);
    const struct workload_export_setup setup = {names, (const uint32_t[2]){0}, 2, 0};
    int64_t rows = workload_export(w, &setup, path, &errors);
    ck_assert_uint_eq(errors.error_count, 0);
    ck_assert_int_gt(rows, 3 * 3600);
    workload_close(w);

    const struct traffic_config *replays[2];
    for (int i = 0; i < 2; i++)
        replays[i] =
            traffic_make(&arena, arena_printf(&arena, "name=%s; arrivals=trace; arrivals.file=%s",
                                              names[i], path));
    struct workload *first = traffic_open(classes, 2, PS_PER_HOUR, &errors);
    struct workload *again = traffic_open(replays, 2, PS_PER_HOUR, &errors);
    ck_assert_ptr_nonnull(again);
    struct request x, y;
    int64_t count = 0;
    for (; workload_next(first, &x, &errors) == WORKLOAD_OK; count++) {
        if (workload_next(again, &y, &errors) != WORKLOAD_OK || memcmp(&x, &y, sizeof x) != 0)
            ck_abort_msg("request %ld differs", (long)count);
    }
    ck_assert_int_eq(workload_next(again, &y, &errors), WORKLOAD_END);
    ck_assert_int_eq(count, rows);
    workload_close(first);
    workload_close(again);

    /* A trace that holds a class which no workload takes is refused, not half read. */
    ck_assert_ptr_null(traffic_open(replays, 1, PS_PER_HOUR, &errors));
    traffic_expect_error(&errors, 0, 0, "class 'the batch' is no workload");
    remove(path);
    finish();
}

START_TEST(export_plain)
{
    export_and_replay("e.csv");
}
END_TEST

START_TEST(export_gzip)
{
    export_and_replay("e.csv.gz");
}
END_TEST

START_TEST(export_fails_cleanly)
{
    begin();
    const struct traffic_config *class =
        traffic_make(&arena, "name=a; arrivals=constant; arrivals.rate=1000 /s" FIXED);
    const char *names[] = {"a"};
    struct workload *w = traffic_open(&class, 1, PS_PER_HOUR, &errors);
    const struct workload_export_setup setup = {names, (const uint32_t[1]){0}, 1, 0};
    ck_assert_int_eq(workload_export(w, &setup, "no/such/folder/x.csv", &errors), -1);
    traffic_expect_error(&errors, 0, 0, "cannot be created: No such file");
    workload_close(w);
    finish();
}
END_TEST

/* Public hours side by side: exact counts and tokens through the whole path. */
START_TEST(azure_side_by_side)
{
    char code[512];
    const char *path = traffic_shared("data/azure_llm_2023/AzureLLMInferenceTrace_code.csv.gz");
    if (!path)
        return;
    snprintf(code, sizeof code, "%s", path);
    path = traffic_shared("data/azure_llm_2023/AzureLLMInferenceTrace_conv.csv.gz");
    if (!path)
        return;
    begin();
    const struct traffic_config *classes[] = {
        traffic_make(&arena,
                     arena_printf(&arena, "name=code; arrivals=trace; arrivals.file=%s", code)),
        traffic_make(&arena,
                     arena_printf(&arena, "name=conv; arrivals=trace; arrivals.file=%s", path))};
    struct workload_config config = {.classes = classes,
                                     .class_count = 2,
                                     .start_unix_s = FIELD_INT_UNSET,
                                     .horizon_ps = TIME_NONE};
    struct workload *w = workload_open(&config, NULL, &errors);
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(workload_start(w), 1700158623); /* 2023-11-16T18:17:03Z */
    ck_assert_int_eq(workload_horizon(w), INT64_C(3501721937) * 1000000 + 1);
    ck_assert_double_eq(workload_mean_prompt(w, 0), 18059974.0 / 8819);
    uint64_t rows[2] = {0}, prompt[2] = {0}, output[2] = {0};
    struct request r;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        rows[r.class_index]++;
        prompt[r.class_index] += r.prompt_tokens;
        output[r.class_index] += r.output_tokens;
    }
    ck_assert_uint_eq(rows[0], 8819);
    ck_assert_uint_eq(rows[1], 19366);
    ck_assert_uint_eq(prompt[0], 18059974);
    ck_assert_uint_eq(prompt[1], 22361870);
    ck_assert_uint_eq(output[0], 245896);
    ck_assert_uint_eq(output[1], 4088665);
    workload_close(w);
    finish();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ties_go_by_class,
                                  classes_are_independent,
                                  trace_questions,
                                  trace_scaled_and_skipped,
                                  trace_changed_underneath,
                                  short_trace_is_read_once,
                                  refusals,
                                  export_plain,
                                  export_gzip,
                                  export_fails_cleanly,
                                  azure_side_by_side,
                                  NULL};
    return suite_run("workload", tests, 60);
}
