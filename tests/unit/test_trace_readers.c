/* A file as other programs read it: h5py, netCDF4, xarray and ncdump through
 * tests/cli/check_trace_file.py, and the plots of analysis/. Skipped, visibly, where a Python
 * package is missing.
 *
 * FLEETSIM_DAY=FILE.h5 (and FLEETSIM_DAY_RATE, requests per second) keeps the made-up day. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/errors.h"
#include "tests/unit/support_day.h"

enum { SKIPPED = 77 };

static char folder[64], path[96];

static bool day_write(struct day *d, const char *target, bool with_requests,
                      const char *dropped_unit)
{
    struct trace_table tables[5];
    struct column columns[256];
    struct errors errors;
    errors_init(&errors);
    size_t count = day_tables(d, tables);
    if (dropped_unit) { /* spoils the first column */
        memcpy(columns, metrics_class_columns,
               (column_count(metrics_class_columns) + 1) * sizeof columns[0]);
        columns[0].unit = dropped_unit;
        tables[4].columns = columns;
    }
    struct trace_text texts[] = {{"scenario", "given", "name: day\n", "As given."},
                                 {"scenario", "resolved", "name: day\nseed: 1\n", "As applied."}};
    struct trace_meta meta[] = {{"name", "a made-up day", 0, "Name of the scenario."},
                                {"version", "0", 0, "Version of the program."},
                                {"seed", NULL, 1, "Seed of the run."}};
    struct trace_run run = {.title = "A made-up day",
                            .start_unix_s = 1772409600,
                            .tables = tables,
                            .table_count = count,
                            .texts = texts,
                            .text_count = 2,
                            .meta = meta,
                            .meta_count = 3,
                            .complete = true};
    bool ok;
    if (with_requests) {
        struct trace_stream_config config = {.group = "requests",
                                             .doc = "One row per request.",
                                             .dimension = "request",
                                             .columns = metrics_request_columns,
                                             .row_size = sizeof(struct request_record),
                                             .start_unix_s = run.start_unix_s};
        struct trace_stream *stream = trace_stream_open(target, true, &config, &errors);
        for (size_t i = 0; stream && i < d->record_count; i++) {
            trace_stream_append(stream, &d->records[i]);
        }
        ok = stream && trace_stream_close(stream, &run, &errors);
    } else {
        ok = trace_write(&run, target, true, &errors);
    }
    errors_print(&errors, stderr);
    errors_free(&errors);
    return ok;
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "test-readers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/day.h5", folder);
}

static void teardown(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Exit code of a script of the tree, given one argument and a tail of options. */
static int python_run(const char *script, const char *options)
{
    char command[512];
    snprintf(command, sizeof command, "/usr/bin/python3 %s/%s %s %s 2>&1", FLEETSIM_SOURCE_DIR,
             script, path, options);
    fflush(stdout);
    int status = system(command);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED) {
        printf("SKIP: %s: a Python package is absent\n", script);
    }
    return WEXITSTATUS(status);
}

START_TEST(other_programs_read_it)
{
    struct day day;
    day_open(&day, 0.5);
    for (int with_requests = 0; with_requests < 2; with_requests++) {
        ck_assert(day_write(&day, path, with_requests, NULL));
        int code = python_run("tests/cli/check_trace_file.py", "");
        ck_assert(code == 0 || code == SKIPPED);
    }
    day_close(&day);
}
END_TEST

/* The checker is not blind: a missing unit is found. */
START_TEST(a_missing_unit_is_found)
{
    struct day day;
    day_open(&day, 0.05);
    ck_assert(day_write(&day, path, false, ""));
    int code = python_run("tests/cli/check_trace_file.py", ">/dev/null");
    ck_assert(code == 1 || code == SKIPPED);
    day_close(&day);
}
END_TEST

START_TEST(a_day_is_drawn)
{
    struct day day;
    char options[160], picture[128];
    struct stat status;
    day_open(&day, 0.5);
    ck_assert(day_write(&day, path, false, NULL));
    static const char *const suffixes[] = {"png", "svg", "pdf"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(picture, sizeof picture, "%s/day.%s", folder, suffixes[i]);
        snprintf(options, sizeof options, "-o %s", picture);
        int code = python_run("analysis/plot_day.py", options);
        ck_assert(code == 0 || code == SKIPPED);
        ck_assert(code == SKIPPED || (stat(picture, &status) == 0 && status.st_size > 10000));
    }
    day_close(&day);
}
END_TEST

static int day_keep(const char *target)
{
    struct day day;
    const char *rate = getenv("FLEETSIM_DAY_RATE");
    day_open(&day, rate ? strtod(rate, NULL) : 0.5);
    bool ok = day_write(&day, target, false, NULL);
    day_close(&day);
    return ok ? 0 : 1;
}

int main(void)
{
    if (getenv("FLEETSIM_DAY")) {
        return day_keep(getenv("FLEETSIM_DAY"));
    }
    Suite *suite = suite_create("trace readers");
    TCase *tcase = tcase_create("readers");
    tcase_set_timeout(tcase, 180);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, other_programs_read_it);
    tcase_add_test(tcase, a_missing_unit_is_found);
    tcase_add_test(tcase, a_day_is_drawn);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
