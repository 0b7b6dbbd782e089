/* A run from a scenario's text, for tests: the text and a trace go to a folder of their own, the
 * run is opened and simulated as the command line does it, and the per-request rows are read back
 * from the CSV that users get. */
#ifndef FLEETSIM_TESTS_RUN_TEXT_H
#define FLEETSIM_TESTS_RUN_TEXT_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/run/run.h"

#define SECONDS(s) ((int64_t)(s)*PS_PER_SECOND)
#define MILLIS(ms) ((int64_t)(ms) * (PS_PER_SECOND / 1000))

/* One row of --requests. Times are TIME_NONE where the cell is empty, replica -1. */
struct run_text_row {
    int64_t id, arrival_ps, admitted_ps, first_token_ps, end_ps;
    int64_t prompt, output, cached, recomputed, preemptions, replica;
    char class[32], pool[32], outcome[32];
};

struct run_text {
    char folder[64];
    struct run *run;
    struct errors errors;
    struct run_text_row *rows; /* owned */
    size_t row_count;
    char *csv; /* owned: the rows as written */
    struct run_totals totals;
    bool audit_ok;
};

static inline void run_text_path(const struct run_text *r, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", r->folder, name);
}

static inline void run_text_write(const struct run_text *r, const char *name, const char *text)
{
    char path[128];
    run_text_path(r, name, path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* "12.345" as picoseconds; TIME_NONE when empty. */
static inline int64_t run_text_time(const char *cell)
{
    if (*cell == '\0') {
        return TIME_NONE;
    }
    char *end;
    int64_t ps = strtoll(cell, &end, 10) * PS_PER_SECOND;
    int64_t unit = PS_PER_SECOND;
    if (*end == '.') {
        for (end++; *end != '\0'; end++) {
            unit /= 10;
            ps += (*end - '0') * unit;
        }
    }
    ck_assert_msg(*end == '\0', "not a time: %s", cell);
    return ps;
}

static inline int64_t run_text_int(const char *cell)
{
    return *cell == '\0' ? -1 : strtoll(cell, NULL, 10);
}

static inline struct run_text_row run_text_parse(char *line)
{
    char *cell[16];
    int count = 0;
    cell[count++] = line;
    for (char *c = line; *c != '\0'; c++) {
        if (*c == ',' && count < 16) {
            *c = '\0';
            cell[count++] = c + 1;
        }
    }
    ck_assert_int_eq(count, 16);
    struct run_text_row row = {
        .id = run_text_int(cell[0]),
        .arrival_ps = run_text_time(cell[4]),
        .admitted_ps = run_text_time(cell[5]),
        .first_token_ps = run_text_time(cell[6]),
        .end_ps = run_text_time(cell[7]),
        .prompt = run_text_int(cell[8]),
        .output = run_text_int(cell[9]),
        .cached = run_text_int(cell[10]),
        .recomputed = run_text_int(cell[11]),
        .preemptions = run_text_int(cell[12]),
        .replica = run_text_int(cell[14]),
    };
    snprintf(row.class, sizeof row.class, "%s", cell[1]);
    snprintf(row.pool, sizeof row.pool, "%s", cell[13]);
    snprintf(row.outcome, sizeof row.outcome, "%s", cell[15]);
    return row;
}

static inline void run_text_read(struct run_text *r)
{
    char path[128];
    run_text_path(r, "requests.csv", path);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    rewind(f);
    r->csv = memory_alloc((size_t)size + 1);
    ck_assert_uint_eq(fread(r->csv, 1, (size_t)size, f), (size_t)size);
    r->csv[size] = '\0';
    fclose(f);
    char *copy = memory_alloc((size_t)size + 1);
    memcpy(copy, r->csv, (size_t)size + 1);
    size_t lines = 0;
    for (const char *c = copy; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    r->rows = memory_zero(lines + 1, sizeof *r->rows);
    char *save = NULL;
    char *line = strtok_r(copy, "\n", &save); /* the header */
    while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
        r->rows[r->row_count++] = run_text_parse(line);
    }
    free(copy);
}

/* Opens the scenario; trace (may be NULL) becomes trace.csv beside it, with our format's header
 * added. Returns whether it opened; errors stay in r. */
static inline bool run_text_open(struct run_text *r, const char *yaml, const char *trace,
                                 const char *const *sets, size_t set_count)
{
    *r = (struct run_text){.folder = "run-text-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(r->folder));
    errors_init(&r->errors);
    run_text_write(r, "scenario.yaml", yaml);
    if (trace != NULL) {
        static const char header[] = "arrival_s,prompt_tokens,output_tokens\n";
        char *text = memory_alloc(sizeof header + strlen(trace));
        memcpy(text, header, sizeof header - 1);
        memcpy(text + sizeof header - 1, trace, strlen(trace) + 1);
        run_text_write(r, "trace.csv", text);
        free(text);
    }
    char path[128];
    run_text_path(r, "scenario.yaml", path);
    struct run_request request = {.scenario = path, .sets = sets, .set_count = set_count};
    r->run = run_open(&request, &r->errors);
    return r->run != NULL;
}

static inline void run_text_simulate(struct run_text *r, bool step_by_step)
{
    char path[128];
    run_text_path(r, "requests.csv", path);
    struct run_options options = {.step_by_step = step_by_step, .requests_path = path};
    ck_assert(run_simulate(r->run, &options, &r->errors));
    r->totals = run_totals(r->run);
    size_t count;
    const struct metrics_check *checks = run_audit(r->run, &count, &r->audit_ok);
    for (size_t i = 0; i < count; i++) {
        if (!checks[i].ok) {
            fprintf(stderr, "audit: %s: %s\n", checks[i].name, checks[i].detail);
        }
    }
    run_text_read(r);
}

static inline void run_text_free(struct run_text *r)
{
    static const char *const names[] = {"scenario.yaml", "trace.csv", "requests.csv"};
    run_free(r->run);
    errors_free(&r->errors);
    free(r->rows);
    free(r->csv);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        run_text_path(r, names[i], path);
        unlink(path);
    }
    rmdir(r->folder);
}

/* All at once: must open, and its audit must hold. */
static inline struct run_text run_text_set(const char *yaml, const char *trace,
                                           const char *const *sets, size_t set_count, bool step)
{
    struct run_text r;
    if (!run_text_open(&r, yaml, trace, sets, set_count)) {
        errors_print(&r.errors, stderr);
        ck_abort_msg("the scenario does not open:\n%s", yaml);
    }
    run_text_simulate(&r, step);
    ck_assert_msg(r.audit_ok, "the audit fails:\n%s", yaml);
    return r;
}

static inline struct run_text run_text_do(const char *yaml, const char *trace)
{
    return run_text_set(yaml, trace, NULL, 0, false);
}

/* The whole fleet's summary, and row k of the interval table. */
static inline const struct metrics_summary *run_text_summary(const struct run_text *r)
{
    return &metrics_summaries(run_metrics(r->run))[0];
}
static inline const struct metrics_hour *run_text_hour(const struct run_text *r, size_t k)
{
    ck_assert_uint_lt(k, metrics_hour_count(run_metrics(r->run)));
    return &metrics_hours_all(run_metrics(r->run))[k];
}

#endif
