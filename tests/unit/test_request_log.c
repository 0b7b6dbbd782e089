/* Per-request rows: in order of id whatever the order of ends, in memory that follows the spread,
 * and as CSV. */
#include "sim/base/rng.h"
#include "sim/run/request_log.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

struct reader {
    uint64_t next;
    bool in_order;
};

static void reader_row(void *self, const struct request_record *record)
{
    struct reader *r = self;
    r->in_order &= record->request.id == r->next && record->end_ps == (int64_t)(3 * r->next);
    r->next++;
}

static void emit_end(const struct obs_sink *sink, uint64_t id)
{
    struct request_record record = {.request.id = id, .end_ps = (int64_t)(3 * id)};
    obs_emit(sink, &(struct obs){.kind = OBS_END, .u.record = &record});
}

/* Blocks of ids shuffled within themselves; blocks of every size up to beyond the first ring. */
START_TEST(ends_in_any_order_are_rows_in_order)
{
    struct reader reader = {.in_order = true};
    struct request_log log;
    request_log_init(&log, reader_row, &reader);
    struct obs_sink sink = request_log_sink(&log);
    uint64_t key = rng_key(5, 0, RNG_TEST, 0), done = 0;
    static uint64_t ids[5000];
    for (uint64_t size = 1; size <= 5000; size = size * 3 / 2 + 1) {
        for (uint64_t i = 0; i < size; i++) {
            uint64_t j = rng_draw(key, size, i).a % (i + 1);
            ids[i] = ids[j];
            ids[j] = done + i;
        }
        for (uint64_t i = 0; i < size; i++) {
            emit_end(&sink, ids[i]);
        }
        done += size;
        ck_assert_uint_eq(reader.next, done);
    }
    ck_assert(reader.in_order);
    ck_assert_uint_le(log.capacity, 8192); /* the widest spread, not the number of requests */
    request_log_free(&log);
}
END_TEST

/* One request that stays while 100,000 others end behind it: nothing is lost or out of order. */
START_TEST(a_straggler_holds_back_and_releases)
{
    struct reader reader = {.in_order = true};
    struct request_log log;
    request_log_init(&log, reader_row, &reader);
    struct obs_sink sink = request_log_sink(&log);
    for (uint64_t id = 1; id <= 100000; id++) {
        emit_end(&sink, id);
    }
    ck_assert_uint_eq(reader.next, 0);
    emit_end(&sink, 0);
    ck_assert_uint_eq(reader.next, 100001);
    ck_assert(reader.in_order);
    request_log_free(&log);
}
END_TEST

static char *row_text(const struct request_record *record, const char *class, const char *pool)
{
    static char text[512];
    FILE *f = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(f);
    request_log_csv_row(f, record, class, pool);
    fclose(f);
    return text;
}

/* Exact decimals; what is undefined is empty. */
START_TEST(rows_as_text)
{
    struct request_record done = {.request = {.id = 7,
                                              .arrival_ps = 1,
                                              .prompt_tokens = 100,
                                              .output_tokens = 20,
                                              .session = 12,
                                              .turn = 3},
                                  .admitted_ps = PS_PER_SECOND / 2,
                                  .first_token_ps = PS_PER_SECOND,
                                  .end_ps = 86400 * PS_PER_SECOND + 1,
                                  .cached_tokens = 48,
                                  .recomputed_tokens = 5,
                                  .preemptions = 1,
                                  .replica = 2,
                                  .outcome = OUTCOME_COMPLETED};
    ck_assert_str_eq(row_text(&done, "chat", "main"),
                     "7,chat,12,3,0.000000000001,0.5,1,86400.000000000001,100,20,48,5,1,main,2,"
                     "completed\n");
    struct request_record refused = {.request = {.id = 8, .session = -1, .prompt_tokens = 1},
                                     .admitted_ps = TIME_NONE,
                                     .first_token_ps = TIME_NONE,
                                     .pool = UINT32_MAX,
                                     .replica = UINT32_MAX,
                                     .outcome = OUTCOME_REFUSED};
    ck_assert_str_eq(row_text(&refused, "chat", ""), "8,chat,,,0,,,0,1,0,0,0,0,,,refused\n");
}
END_TEST

/* A name must not make another column: classes with commas or quotes in their names are refused
 * (their names are in traces too); so must pools be, or their names be quoted. */
START_TEST(names_make_no_columns)
{
    static const char *const names[] = {"plain", "a, b", "say \\\"hi\\\""};
    for (size_t i = 0; i < 3; i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
                 "name: names\nhorizon: 10 s\n"
                 "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
                 "fleet:\n  pools:\n"
                 "    - {name: \"%s\", step_time: {model: constant, step: 1 s}, "
                 "autoscaler: {policy: static, replicas: 1}}\n",
                 names[i]);
        struct run_text r;
        if (run_text_open(&r, yaml, "0,1,1\n", NULL, 0)) {
            run_text_simulate(&r, false);
            size_t columns = 1;
            bool quoted = false;
            for (const char *c = strchr(r.csv, '\n') + 1; *c != '\n'; c++) {
                quoted ^= *c == '"';
                columns += *c == ',' && !quoted;
            }
            ck_assert_msg(columns == 16 && strstr(r.csv, "say \"hi\"") == NULL, "%s", r.csv);
        } else {
            ck_assert_uint_gt(i, 0);
            ck_assert_uint_eq(r.errors.error_count, 1);
        }
        run_text_free(&r);
    }
}
END_TEST

/* Rows of a run: every request once, ids from 0, whatever became of it. */
START_TEST(every_outcome_has_its_row)
{
    struct run_text r =
        run_text_do("name: rows\nhorizon: 10 s\ndrain: false\n"
                    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
                    "fleet:\n"
                    "  pools:\n"
                    "    - name: main\n"
                    "      engine: {max_num_seqs: 1, max_model_len: 100}\n"
                    "      step_time: {model: constant, step: 1 s}\n"
                    "      max_queue: 1\n"
                    "      autoscaler: {policy: static, replicas: 1}\n",
                    "0,1,3\n0,1,90\n0,1,1\n1,60,60\n4,1,1\n");
    static const char *const outcomes[] = {"completed", "in_flight", "refused", "unservable",
                                           "in_flight"};
    ck_assert_uint_eq(r.row_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(r.rows[i].id, (int64_t)i);
        ck_assert_str_eq(r.rows[i].outcome, outcomes[i]);
    }
    ck_assert_int_eq(r.rows[1].end_ps, SECONDS(10));
    ck_assert_int_eq(r.rows[1].first_token_ps, SECONDS(4));
    ck_assert_int_eq(r.rows[2].end_ps, 0);
    ck_assert_int_eq(r.rows[2].admitted_ps, TIME_NONE);
    ck_assert_int_eq(r.rows[3].end_ps, SECONDS(1));
    ck_assert_int_eq(r.rows[4].admitted_ps, TIME_NONE);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ends_in_any_order_are_rows_in_order,
                                  a_straggler_holds_back_and_releases,
                                  rows_as_text,
                                  names_make_no_columns,
                                  every_outcome_has_its_row,
                                  NULL};
    return suite_run("request log", tests, 60);
}
