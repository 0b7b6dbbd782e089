/* What prompts hold in common: out of a trace's hash_ids into requests, and out of requests into an
 * exported trace's hash_ids and back. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/time.h"
#include "sim/workload/workload_export.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

static struct arena arena;
static struct errors errors;
static char path[256], copy_path[264];

static void begin(const char *name)
{
    arena_init(&arena);
    errors_init(&errors);
    snprintf(path, sizeof path, "%s", traffic_temp(name));
    snprintf(copy_path, sizeof copy_path, "copy-%s", path);
}

static void finish(void)
{
    errors_print(&errors, stderr);
    ck_assert_uint_eq(errors.error_count, 0);
    errors_free(&errors);
    arena_free(&arena);
    remove(path);
    remove(copy_path);
}

static void write_text(const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    ck_assert_int_eq(fclose(f), 0);
}

static struct workload *open_with(const struct traffic_config *const *classes, size_t count,
                                  int64_t horizon_ps, bool contents)
{
    struct workload_config config = {.classes = classes,
                                     .class_count = count,
                                     .seed = 1,
                                     .horizon_ps = horizon_ps,
                                     .want_contents = contents};
    struct workload *w = workload_open(&config, NULL, &errors);
    errors_print(&errors, stderr);
    ck_assert_ptr_nonnull(w);
    return w;
}

static struct workload *open_trace(const char *file, const char *more, bool contents)
{
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena, "name=t; arrivals=trace; arrivals.file=%s; %s", file, more));
    return open_with(&class, 1, TIME_NONE, contents);
}

static struct request next(struct workload *w)
{
    struct request r;
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
    return r;
}

static void expect_hashes(const struct request *r, uint32_t block, uint32_t count,
                          const uint64_t *ids)
{
    ck_assert_ptr_nonnull(r->hashes);
    ck_assert_uint_eq(r->hashes->block_tokens, block);
    ck_assert_uint_eq(r->hashes->count, count);
    ck_assert_mem_eq(r->hashes->ids, ids, count * sizeof *ids);
    ck_assert_uint_eq(r->stream, 0);
    ck_assert_uint_eq(r->shared_tokens, 0);
}

/* The partial block at the end of a prompt is nobody's. */
START_TEST(mooncake_full_blocks)
{
    begin("m.jsonl");
    write_text("{\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 900, "
               "\"hash_ids\": [3, 8, 9]}\n"
               "{\"timestamp\": 5, \"input_length\": 1024, \"output_length\": 9, "
               "\"hash_ids\": [3, 18446744073709551615]}\n"
               "{\"timestamp\": 6, \"input_length\": 500, \"output_length\": 1, "
               "\"hash_ids\": [77]}\n");
    struct workload *w = open_trace(path, "", true);
    ck_assert_uint_eq(workload_hash_block(w, 0), 512);
    ck_assert(workload_has_contents(w, 0));
    struct request r = next(w);
    expect_hashes(&r, 512, 2, (const uint64_t[]){3, 8});
    token_hashes_release(r.hashes);
    r = next(w);
    expect_hashes(&r, 512, 2, (const uint64_t[]){3, UINT64_MAX});
    token_hashes_release(r.hashes);
    r = next(w);
    ck_assert_ptr_null(r.hashes);
    workload_close(w);

    /* Who does not ask has nothing to give back. */
    w = open_trace(path, "", false);
    r = next(w);
    ck_assert_ptr_null(r.hashes);
    workload_close(w);

    /* What was not taken is given back at close. */
    w = open_trace(path, "arrivals.spread=true; arrivals.rate_scale=3", true);
    r = next(w);
    token_hashes_release(r.hashes);
    workload_close(w);
    finish();
}
END_TEST

/* Every copy of a row has its own, over batches and groups of one stamp. */
START_TEST(copies_have_their_own)
{
    begin("c.csv");
    FILE *f = fopen(path, "wb");
    fputs("arrival_s,prompt_tokens,output_tokens,hash_ids\n", f);
    for (int i = 0; i < 2000; i++)
        fprintf(f, "%d,40,8,%d %d %d\n", i / 50, i % 7, 1000 + i, 5000 + i);
    fclose(f);
    struct workload *w = open_trace(path,
                                    "arrivals.hash_block_size=16; arrivals.rate_scale=2.5; "
                                    "arrivals.spread=true",
                                    true);
    enum { KEPT = 1000 };
    struct token_hashes *kept[KEPT];
    uint64_t count = 0;
    struct request r;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        ck_assert_uint_eq(r.hashes->count, 3); /* of 48 tokens */
        ck_assert_uint_eq(r.hashes->ids[2], r.hashes->ids[1] + 4000);
        ck_assert_uint_eq(r.hashes->ids[0], (r.hashes->ids[1] - 1000) % 7);
        if (count < KEPT)
            kept[count] = r.hashes;
        else
            token_hashes_release(r.hashes);
        count++;
    }
    ck_assert(count > 4800 && count < 5200);
    for (size_t i = 0; i < KEPT; i++) {
        ck_assert_uint_eq(kept[i]->ids[2], kept[i]->ids[1] + 4000);
        token_hashes_release(kept[i]);
    }
    workload_close(w);
    finish();
}
END_TEST

/* Lengths that are drawn anew keep of the contents what they have tokens for. */
START_TEST(drawn_lengths_cut_names)
{
    begin("d.csv");
    write_text("arrival_s,prompt_tokens,output_tokens,hash_ids\n0,64,32,1 2 3 4 5 6\n");
    static const struct {
        const char *lengths;
        uint32_t count;
    } cases[] = {{"", 6},
                 {"output_tokens=constant; output_tokens.value=17", 5},
                 {"output_tokens=constant; output_tokens.value=500", 6},
                 {"prompt_tokens=constant; prompt_tokens.value=47", 2},
                 {"prompt_tokens=constant; prompt_tokens.value=470", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload *w = open_trace(
            path, arena_printf(&arena, "arrivals.hash_block_size=16; %s", cases[i].lengths), true);
        struct request r = next(w);
        expect_hashes(&r, 16, cases[i].count, (const uint64_t[]){1, 2, 3, 4, 5, 6});
        token_hashes_release(r.hashes);
        workload_close(w);
    }
    finish();
}
END_TEST

/* Every request of one is that of the other, with the same names. Ends both. */
static uint64_t expect_same(struct workload *first, struct workload *again)
{
    struct request x, y;
    uint64_t count = 0;
    for (; workload_next(first, &x, &errors) == WORKLOAD_OK; count++) {
        ck_assert_int_eq(workload_next(again, &y, &errors), WORKLOAD_OK);
        ck_assert_int_eq(x.hashes != NULL, y.hashes != NULL);
        if (x.hashes)
            expect_hashes(&y, x.hashes->block_tokens, x.hashes->count, x.hashes->ids);
        token_hashes_release(x.hashes);
        token_hashes_release(y.hashes);
        x.hashes = y.hashes = NULL;
        ck_assert_mem_eq(&x, &y, sizeof x);
    }
    ck_assert_int_eq(workload_next(again, &y, &errors), WORKLOAD_END);
    workload_close(first);
    workload_close(again);
    return count;
}

START_TEST(a_traces_names_replay)
{
    begin("r.csv");
    FILE *f = fopen(path, "wb");
    fputs("arrival_s,prompt_tokens,output_tokens,session,turn,hash_ids\n", f);
    for (int i = 0; i < 3000; i++) {
        fprintf(f, "%d.%d,%d,%d,%d,%d,", i / 10, i % 10, 33 + i % 100, i % 50, i % 11, i / 11);
        for (int j = 0; j < (i % 4 ? (33 + i % 100 + i % 50) / 16 : i % 3); j++)
            fprintf(f, "%s%d", j ? " " : "", j * (i % 5) + 100000 * j + 17);
        fputs("\n", f);
    }
    fclose(f);
    struct workload *w = open_trace(path, "arrivals.hash_block_size=16", true);
    const char *names[] = {"t"};
    const struct workload_export_setup setup = {names, (const uint32_t[]){16}, 1,
                                                workload_content_key(w)};
    ck_assert_int_eq(workload_export(w, &setup, copy_path, &errors), 3000);
    workload_close(w);
    uint64_t count = expect_same(open_trace(path, "arrivals.hash_block_size=16", true),
                                 open_trace(copy_path, "arrivals.hash_block_size=16", true));
    ck_assert_uint_eq(count, 3000);
    finish();
}
END_TEST

/* Two classes in one trace, with blocks of their own sizes. */
START_TEST(classes_have_their_blocks)
{
    begin("b.csv");
    write_text("arrival_s,prompt_tokens,output_tokens,class,session,turn,hash_ids\n"
               "0,64,32,a,,0,1 2 3 4 5 6\n"
               "1,64,32,b,,0,1 2 3\n"
               "2,64,32,a,,0,1 2 3 4 5 8\n"
               "3,64,32,b,,0,7 2 3\n");
    const char *form = "name=%s; arrivals=trace; arrivals.file=%s; arrivals.hash_block_size=%d";
    const struct traffic_config *classes[] = {
        traffic_make(&arena, arena_printf(&arena, form, "a", path, 16)),
        traffic_make(&arena, arena_printf(&arena, form, "b", path, 32))};
    struct workload *w = open_with(classes, 2, TIME_NONE, true);
    const char *names[] = {"a", "b"};
    const uint32_t blocks[] = {workload_hash_block(w, 0), workload_hash_block(w, 1)};
    ck_assert(blocks[0] == 16 && blocks[1] == 32);
    const struct workload_export_setup setup = {names, blocks, 2, workload_content_key(w)};
    ck_assert_int_eq(workload_export(w, &setup, copy_path, &errors), 4);
    workload_close(w);
    const struct traffic_config *copies[] = {
        traffic_make(&arena, arena_printf(&arena, form, "a", copy_path, 16)),
        traffic_make(&arena, arena_printf(&arena, form, "b", copy_path, 32))};
    ck_assert_uint_eq(
        expect_same(open_with(classes, 2, TIME_NONE, true), open_with(copies, 2, TIME_NONE, true)),
        4);
    finish();
}
END_TEST

/* Of a shared prompt the full blocks have names, the same for all that share it. */
START_TEST(shared_prompts_have_names)
{
    begin("s.csv");
    const struct traffic_config *class = traffic_make(
        &arena, "name=t; arrivals=poisson; arrivals.rate=5 /s; prompt_tokens=geometric; "
                "prompt_tokens.mean=50; output_tokens=geometric; output_tokens.mean=50; "
                "shared_prompt.tokens=100; shared_prompt.count=3");
    struct workload *w = open_with(&class, 1, 600 * PS_PER_SECOND, true);
    ck_assert(workload_has_contents(w, 0));
    const char *names[] = {"t"};
    const struct workload_export_setup setup = {names, (const uint32_t[]){16}, 1,
                                                workload_content_key(w)};
    int64_t rows = workload_export(w, &setup, copy_path, &errors);
    ck_assert_int_gt(rows, 2500);
    workload_close(w);
    w = open_with(&class, 1, 600 * PS_PER_SECOND, true);
    struct workload *again = open_trace(copy_path, "arrivals.hash_block_size=16", true);
    uint64_t seen[3][6] = {{0}};
    for (int64_t i = 0; i < rows; i++) {
        struct request x = next(w), y = next(again);
        ck_assert_int_eq(x.arrival_ps, y.arrival_ps);
        ck_assert_uint_eq(x.prompt_tokens, y.prompt_tokens);
        ck_assert_uint_eq(y.hashes->count, 6);
        uint64_t *ids = seen[x.shared_prompt];
        if (ids[0] == 0)
            memcpy(ids, y.hashes->ids, sizeof seen[0]);
        ck_assert_mem_eq(ids, y.hashes->ids, sizeof seen[0]);
        token_hashes_release(y.hashes);
    }
    for (int i = 0; i < 18; i++) /* all are different */
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(seen[i / 6][i % 6], seen[j / 6][j % 6]);
    workload_close(w);
    workload_close(again);
    finish();
}
END_TEST

/* Exported as it runs: turn n + 1 begins with the names of turn n, and shares nothing behind the
 * shared prompt with other sessions. */
START_TEST(sessions_have_names)
{
    begin("t.csv");
    const struct traffic_config *class = traffic_make(
        &arena, "name=t; arrivals=poisson; arrivals.rate=1 /s; prompt_tokens=geometric; "
                "prompt_tokens.mean=50; output_tokens=geometric; output_tokens.mean=50; "
                "shared_prompt.tokens=40; sessions.turns=constant; sessions.turns.value=6; "
                "sessions.think_time=exponential; sessions.think_time.mean=10 s; "
                "sessions.max_history_tokens=300");
    struct workload *w = open_with(&class, 1, 600 * PS_PER_SECOND, true);
    const char *names[] = {"t"};
    const struct workload_export_setup setup = {names, (const uint32_t[]){16}, 1,
                                                workload_content_key(w)};
    struct workload_export *export = workload_export_open(copy_path, &setup, &errors);
    enum { ROWS = 8000 };
    struct request *made = arena_alloc(&arena, ROWS * sizeof *made);
    int64_t rows = 0;
    while (workload_next(w, &made[rows], &errors) == WORKLOAD_OK) {
        workload_export_add(export, &made[rows]);
        struct request_record record = {.request = made[rows],
                                        .end_ps = made[rows].arrival_ps + PS_PER_SECOND};
        workload_complete(w, &record);
        ck_assert_int_lt(++rows, ROWS);
    }
    ck_assert_int_eq(workload_export_close(export, true, &errors), rows);
    workload_close(w);

    struct workload *again = open_trace(copy_path, "arrivals.hash_block_size=16", true);
    struct token_hashes *last[1000] = {NULL};
    uint64_t stream[1000] = {0}, shared[2] = {0}, fresh = 0;
    for (int64_t i = 0; i < rows; i++) {
        const struct request *x = &made[i];
        struct request y = next(again);
        ck_assert_int_eq(y.arrival_ps, x->arrival_ps);
        ck_assert_int_eq(y.session, x->session);
        ck_assert_uint_eq(y.turn, x->turn);
        ck_assert_uint_eq(y.hashes->count, (x->prompt_tokens + x->output_tokens) / 16);
        ck_assert_int_lt(x->session, 1000);
        if (i == 0)
            memcpy(shared, y.hashes->ids, sizeof shared);
        ck_assert_mem_eq(shared, y.hashes->ids, sizeof shared); /* the full blocks of 40 tokens */
        struct token_hashes *before = last[x->session];
        if (before && stream[x->session] == x->stream) {
            ck_assert_uint_ge(y.hashes->count, before->count);
            ck_assert_mem_eq(before->ids, y.hashes->ids, before->count * sizeof *before->ids);
        } else if (before && before->count > 2 && y.hashes->count > 2) {
            ck_assert_uint_ne(before->ids[2], y.hashes->ids[2]);
            fresh++;
        }
        token_hashes_release(before);
        last[x->session] = y.hashes;
        stream[x->session] = x->stream;
    }
    ck_assert_uint_gt(fresh, 100);
    for (int i = 0; i < 1000; i++) {
        if (i > 0 && last[i] && last[i - 1] && last[i]->count > 2 && last[i - 1]->count > 2)
            ck_assert_uint_ne(last[i]->ids[2], last[i - 1]->ids[2]);
    }
    for (int i = 0; i < 1000; i++)
        token_hashes_release(last[i]);
    workload_close(again);
    finish();
}
END_TEST

/* A row no trace can hold fails the export and leaves nothing. */
START_TEST(too_many_names)
{
    begin("n.csv");
    const struct traffic_config *class =
        traffic_make(&arena, "name=t; arrivals=constant; arrivals.rate=1 /s; "
                             "prompt_tokens=constant; prompt_tokens.value=10; "
                             "output_tokens=constant; output_tokens.value=10; "
                             "shared_prompt.tokens=1000000");
    struct workload *w = open_with(&class, 1, 10 * PS_PER_SECOND, true);
    const char *names[] = {"t"};
    struct workload_export_setup setup = {names, (const uint32_t[]){1}, 1, 0};
    ck_assert_int_eq(workload_export(w, &setup, copy_path, &errors), -1);
    traffic_expect_error(&errors, 0, 0, "request 1 has too many hash_ids for a line");
    ck_assert_ptr_null(fopen(copy_path, "rb"));
    workload_close(w);
    errors_free(&errors);
    errors_init(&errors);

    /* A long one is fine. */
    w = open_with(&class, 1, 10 * PS_PER_SECOND, true);
    setup.block_tokens = (const uint32_t[]){8};
    ck_assert_int_eq(workload_export(w, &setup, copy_path, &errors), 10);
    workload_close(w);
    w = open_trace(copy_path, "arrivals.hash_block_size=8", true);
    for (int i = 0; i < 10; i++) {
        struct request r = next(w);
        ck_assert_uint_eq(r.hashes->count, 125000);
        token_hashes_release(r.hashes);
    }
    workload_close(w);
    finish();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {mooncake_full_blocks,
                                  copies_have_their_own,
                                  drawn_lengths_cut_names,
                                  a_traces_names_replay,
                                  classes_have_their_blocks,
                                  shared_prompts_have_names,
                                  sessions_have_names,
                                  too_many_names,
                                  NULL};
    return suite_run("trace_contents", tests, 60);
}
