/* Mooncake and BurstGPT traces, hash_ids, clocks; and what a replay may do to a trace: repeat, thin
 * and spread. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/time.h"
#include "sim/workload/trace_reader.h"
#include "tests/unit/support_traffic.h"

static struct arena arena;
static struct errors errors;

static void setup(void)
{
    arena_init(&arena);
    errors_init(&errors);
}

static void teardown(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

static struct trace_reader *open_text(const char *text, struct trace_reader_options options)
{
    return trace_reader_open_memory("trace", text, strlen(text), &options, &errors);
}

static struct trace_row next_row(struct trace_reader *reader)
{
    struct trace_row row;
    ck_assert_int_eq(trace_reader_next(reader, &row), TRACE_ROW);
    return row;
}

START_TEST(mooncake_rows)
{
    struct trace_reader *reader = open_text(
        "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, "
        "47,48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2353, 18446744073709551615]}\n"
        "{\"hash_ids\":[],\"type\":\"text\",\"extra\":{\"a\":[1,{\"b\":null}],\"c\":\"}]\\\"\"},"
        "\"output_length\":0,\"input_length\":1,\"timestamp\":27482.000000001}\r\n"
        "{\"timestamp\":27483,\"input_length\":1024,\"output_length\":9,\"hash_ids\":[46,99]}",
        (struct trace_reader_options){0});
    ck_assert_ptr_nonnull(reader);
    ck_assert_int_eq(trace_reader_hash_block_size(reader), 512);
    struct trace_row row = next_row(reader);
    ck_assert_int_eq(row.arrival_ps, INT64_C(27482000000000));
    ck_assert_uint_eq(row.prompt_tokens, 6955);
    ck_assert_uint_eq(row.output_tokens, 52);
    ck_assert_uint_eq(row.hash_count, 14);
    ck_assert_uint_eq(row.hash_ids[1], 47);
    ck_assert_uint_eq(row.hash_ids[13], UINT64_MAX);
    row = next_row(reader);
    ck_assert_int_eq(row.arrival_ps, INT64_C(27482000000001));
    ck_assert_uint_eq(row.hash_count, 0);
    row = next_row(reader);
    ck_assert_uint_eq(row.hash_count, 2);
    ck_assert_int_eq(trace_reader_next(reader, &row), TRACE_END);
    ck_assert_uint_eq(errors.error_count, 0);
    trace_reader_close(reader);
}
END_TEST

#define ROW(stamp, hashes)                                                                         \
    "{\"timestamp\":" stamp ",\"input_length\":1030,\"output_length\":5,\"hash_ids\":" hashes "}"

START_TEST(mooncake_bad_rows)
{
    static const struct {
        const char *row;
        uint32_t column;
        const char *message;
    } cases[] = {
        {"{\"timestamp\":abc,\"input_length\":1,\"output_length\":1}", 14, "not a whole number"},
        {"{\"timestamp\":-1,\"input_length\":1,\"output_length\":1}", 14, "timestamp is negative"},
        {"{\"timestamp\":,\"input_length\":1,\"output_length\":1}", 14, "timestamp is empty"},
        {"{\"timestamp\":1e3,\"input_length\":1,\"output_length\":1}", 14, "not a whole number"},
        {"{\"timestamp\":1.,\"input_length\":1,\"output_length\":1}", 16, "ends in its decimal"},
        {"{\"timestamp\":1.0000000001,\"input_length\":1,\"output_length\":1}", 16,
         "more than 9 decimals"},
        {"{\"timestamp\":9,\"input_length\":1,\"output_length\":1}", 1, "earlier than that"},
        {"{\"timestamp\":1700000000000,\"input_length\":1,\"output_length\":1}", 1, "mixed clocks"},
        {"{\"timestamp\":11,\"input_length\":0,\"output_length\":1}", 32, "must be at least 1"},
        {"{\"timestamp\":11,\"input_length\":\"7\",\"output_length\":1}", 32, "is empty"},
        {"{\"timestamp\":11,\"input_length\":7}", 1, "output_length is missing"},
        {"{\"timestamp\":11,\"timestamp\":12}", 18, "timestamp is there twice"},
        {ROW("11", "[1,2,2]"), 71, "hash_ids must rise"},
        {ROW("11", "[5,4,6]"), 69, "hash_ids must rise"},
        {ROW("11", "[1,2,18446744073709551616]"), 71, "above the limit"},
        {ROW("11", "[1,2,-3]"), 71, "not a whole number"},
        {ROW("11", "[1]"), 1, "1 hash_ids, but the prompt of 1030 tokens has 3 blocks of 512"},
        {ROW("11", "[1,2,3,4]"), 1, "4 hash_ids, but"},
        {ROW("11", "[1,2,3"), 72, "',' is expected"},
        {ROW("11", "7"), 66, "'[' is expected"},
        {"{\"timestamp\":11", 16, "'}' is expected"},
        {"[1]", 1, "'{' is expected"},
        {"{\"timestamp", 2, "the string does not end"},
        {"{\"x\":[1,[2}", 12, "the value does not end"},
        {"{\"x\":}", 6, "a value is expected"},
        {ROW("11", "[1,2,3]") " x", 75, "something follows"},
        {"", 1, "the line is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = arena_printf(&arena, "%s\n%s\n%s\n", ROW("10", "[1,2,3]"), cases[i].row,
                                  ROW("12", "[1,2]"));
        for (int skip = 0; skip < 2; skip++) {
            errors_free(&errors);
            errors_init(&errors);
            struct trace_reader *reader =
                open_text(text, (struct trace_reader_options){.skip_bad = skip});
            next_row(reader);
            ck_assert_uint_eq(next_row(reader).hash_count, 2);
            ck_assert_msg(trace_reader_bad_rows(reader) == 1, "%s", cases[i].row);
            ck_assert_uint_eq(errors.error_count, skip ? 0 : 1);
            if (!skip)
                traffic_expect_error(&errors, 2, cases[i].column, cases[i].message);
            trace_reader_close(reader);
        }
    }
}
END_TEST

START_TEST(own_hash_ids)
{
    static const char text[] = "arrival_s,prompt_tokens,output_tokens,hash_ids\n"
                               "0,40,1,9 3 18446744073709551615\n"
                               "1,32,1,9\n"
                               "1,32,32,9 3 5 4\n"
                               "2,32,1,9 9\n"
                               "3,32,1,9  3\n"
                               "4,32,1,9 3 \n"
                               "5,32,1,9 3 4\n"
                               "6,32,1,9 x\n";
    ck_assert_ptr_null(open_text(text, (struct trace_reader_options){0}));
    traffic_expect_error(&errors, 1, 39, "hash_ids need hash_block_size");
    struct trace_reader *reader =
        open_text(text, (struct trace_reader_options){.hash_block_size = 16});
    struct trace_row row = next_row(reader);
    ck_assert_uint_eq(row.hash_count, 3);
    ck_assert_uint_eq(row.hash_ids[2], UINT64_MAX);
    ck_assert_uint_eq(row.hash_full, 2); /* the third goes on into an answer of one token */
    row = next_row(reader);
    ck_assert_uint_eq(row.hash_count, 1); /* what is behind is not known */
    ck_assert_uint_eq(row.hash_full, 1);
    ck_assert_uint_eq(next_row(reader).hash_full, 4);
    ck_assert_int_eq(trace_reader_next(reader, &row), TRACE_END);
    ck_assert_uint_eq(trace_reader_bad_rows(reader), 5);
    traffic_expect_error(&errors, 5, 1, "the hash_id 9 is there twice");
    traffic_expect_error(&errors, 6, 10, "hash_ids is empty");
    traffic_expect_error(&errors, 7, 11, "hash_ids end in a space");
    traffic_expect_error(&errors, 8, 1, "3 hash_ids, but the prompt of 32 tokens has 2 blocks");
    traffic_expect_error(&errors, 9, 10, "hash_ids is not a whole number");
    trace_reader_close(reader);
}
END_TEST

START_TEST(clocks_do_not_mix)
{
    struct trace_reader *reader = open_text("arrival_s,prompt_tokens,output_tokens\n"
                                            "1700000000.000,1,1\n1700000000.500,1,1\n"
                                            "1700000001.000,1,1\n2,1,1\n",
                                            (struct trace_reader_options){0});
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(next_row(reader).arrival_ps, i * PS_PER_SECOND / 2);
    struct trace_row row;
    ck_assert_int_eq(trace_reader_next(reader, &row), TRACE_END);
    traffic_expect_error(&errors, 5, 1,
                         "mixed clocks: this stamp is counted from the start, the first row's is a "
                         "Unix time");
    trace_reader_close(reader);
}
END_TEST

/* Both layouts; failed calls are counted apart from bad rows. */
START_TEST(burstgpt_layouts)
{
    static const char *const texts[] = {
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n"
        "45.5,GPT-4,1087,0,1087,API log\n"
        "118,GPT-4,417,276,693,API log\n"
        "119,GPT-4,0,276,276,API log\n"
        "119,GPT-4,0,0,0,API log\n",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
        "Type\n"
        "5,17,1.25,ChatGPT,472,18,490,Conversation log\n"
        "45.5,word,0,GPT-4,1087,0,1087,API log\n"
        "118,word,2.5,GPT-4,417,276,693,API log\n"
        "119,,2.5,GPT-4,0,276,276,API log\n"
        "119,,0,GPT-4,0,0,0,API log\n"};
    for (size_t i = 0; i < 2; i++) {
        struct trace_reader *reader = open_text(texts[i], (struct trace_reader_options){0});
        ck_assert_ptr_nonnull(reader);
        struct trace_row row = next_row(reader);
        ck_assert_int_eq(row.arrival_ps, 5 * PS_PER_SECOND);
        ck_assert_uint_eq(row.prompt_tokens, 472);
        ck_assert_int_eq(row.session, i ? 17 : -1);
        row = next_row(reader);
        ck_assert_int_eq(row.arrival_ps, 118 * PS_PER_SECOND);
        ck_assert_uint_eq(row.output_tokens, 276);
        ck_assert(i ? row.session > 0 : row.session == -1);
        ck_assert_int_eq(trace_reader_next(reader, &row), TRACE_END);
        ck_assert_uint_eq(trace_reader_failed_calls(reader), 2);
        ck_assert_uint_eq(trace_reader_bad_rows(reader), 1);
        traffic_expect_error(&errors, 5, 0, "Request tokens must be at least 1");
        int64_t start;
        ck_assert(!trace_reader_start(reader, &start));
        trace_reader_close(reader);
    }
    ck_assert_ptr_null(
        open_text("Timestamp,Model,Request tokens\n", (struct trace_reader_options){0}));
    traffic_expect_error(&errors, 1, 1, "the column Response tokens is missing");
}
END_TEST

static char *write_ticks(const char *suffix, int stamps, int at_each)
{
    char *path = arena_copy(&arena, traffic_temp(suffix));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("arrival_s,prompt_tokens,output_tokens,session\n", file);
    for (int s = 0; s < stamps; s++)
        for (int i = 0; i < at_each; i++)
            fprintf(file, "%d,%d,%d,%s\n", 3 * s + (s > 5 ? 3 : 0), 1 + s * at_each + i, i + 1,
                    i == 0 ? "7" : "");
    fclose(file);
    return path;
}

static struct workload *replay(const char *path, const char *more)
{
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena, "name=t; arrivals=trace; arrivals.file=%s%s", path, more));
    return traffic_open(&class, 1, TIME_NONE, &errors);
}

/* Ten requests at one stamp, every 3 s and once after 6: spread over 3 s, in order. */
START_TEST(ticks_are_spread)
{
    enum { STAMPS = 400, EACH = 10 };
    char *path = write_ticks("ticks.csv", STAMPS, EACH);
    struct workload *w = replay(path, "; arrivals.spread=true; arrivals.time_scale=2");
    ck_assert_ptr_nonnull(w);
    struct request r;
    double sum = 0;
    int64_t last_ps = -1;
    for (int n = 0; n < STAMPS * EACH; n++) {
        ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
        if (r.prompt_tokens != (uint32_t)n + 1 || r.arrival_ps <= last_ps)
            ck_abort_msg("request %d: %u at %ld", n, r.prompt_tokens, (long)r.arrival_ps);
        last_ps = r.arrival_ps;
        int64_t stamp = 3 * (n / EACH) + (n / EACH > 5 ? 3 : 0);
        double offset = time_seconds(r.arrival_ps) - 2.0 * (double)stamp;
        if (!(offset >= 0 && offset < 6))
            ck_abort_msg("request %d is %g s off", n, offset);
        sum += offset;
    }
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_END);
    double mean = sum / (STAMPS * EACH);
    ck_assert_double_eq_tol(mean, 3, 4 * 6 / sqrt(12.0 * STAMPS * EACH));
    ck_assert_double_eq(workload_expected(w, 0, 0, workload_horizon(w)), STAMPS * EACH);
    workload_close(w);

    char *one = write_ticks("one.csv", 1, 3);
    ck_assert_ptr_null(replay(one, "; arrivals.spread=true"));
    traffic_expect_error(&errors, 0, 0, "spread needs two different stamps");
    remove(one);
    remove(path);
}
END_TEST

/* Counts, means and the rows of both passes agree; sessions stay whole. */
START_TEST(rate_is_scaled)
{
    enum { STAMPS = 1000, EACH = 4 };
    static const double scales[] = {0.25, 1, 2, 2.5};
    char *path = write_ticks("scale.csv", STAMPS, EACH);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        struct workload *w =
            replay(path, arena_printf(&arena, "; arrivals.rate_scale=%g", scales[i]));
        ck_assert_ptr_nonnull(w);
        struct request r;
        uint64_t count = 0, in_session = 0;
        double tokens = 0;
        int64_t last_ps = 0;
        while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
            if (r.arrival_ps < last_ps || r.arrival_ps % (3 * PS_PER_SECOND) != 0)
                ck_abort_msg("at %ld", (long)r.arrival_ps);
            last_ps = r.arrival_ps;
            in_session += r.session >= 0;
            tokens += r.prompt_tokens;
            count++;
        }
        double expected = scales[i] * STAMPS * EACH;
        bool whole = scales[i] == floor(scales[i]);
        /* The one session is 1,000 rows that come or do not come together. */
        double alone = (double)(count - in_session);
        ck_assert_double_eq_tol(alone, expected * 3 / 4, whole ? 0.5 : 4 * sqrt(0.25 * 3000));
        ck_assert_uint_eq(in_session % STAMPS, 0);
        ck_assert_double_eq(workload_expected(w, 0, 0, workload_horizon(w)), (double)count);
        ck_assert_double_eq_tol(workload_mean_prompt(w, 0), tokens / (double)count, 1e-9);
        workload_close(w);
    }
    remove(path);
}
END_TEST

START_TEST(public_mooncake)
{
    static const struct {
        const char *file;
        uint64_t rows, input, output;
    } cases[] = {{"data/mooncake/conversation_trace.jsonl.gz", 12031, 144793823, 4122048},
                 {"data/mooncake/synthetic_trace.jsonl.gz", 3993, 61194628, 0}};
    for (size_t i = 0; i < 2; i++) {
        const char *path = traffic_shared(cases[i].file);
        if (!path)
            return;
        struct trace_reader_options options = {0};
        struct trace_reader *reader = trace_reader_open(path, &options, &errors);
        ck_assert_ptr_nonnull(reader);
        struct trace_row row;
        uint64_t rows = 0, input = 0, output = 0;
        while (trace_reader_next(reader, &row) == TRACE_ROW) {
            rows++;
            input += row.prompt_tokens;
            output += row.output_tokens;
        }
        ck_assert_uint_eq(rows, cases[i].rows);
        ck_assert_uint_eq(input, cases[i].input);
        if (cases[i].output)
            ck_assert_uint_eq(output, cases[i].output);
        ck_assert_uint_eq(trace_reader_bad_rows(reader), 0);
        trace_reader_close(reader);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_formats");
    TCase *c = tcase_create("trace_formats");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, mooncake_rows);
    tcase_add_test(c, mooncake_bad_rows);
    tcase_add_test(c, own_hash_ids);
    tcase_add_test(c, clocks_do_not_mix);
    tcase_add_test(c, burstgpt_layouts);
    tcase_add_test(c, ticks_are_spread);
    tcase_add_test(c, rate_is_scaled);
    tcase_add_test(c, public_mooncake);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
