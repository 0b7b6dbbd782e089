/* The HDF5 file: bytes, names, refusals. What Python readers see of it is checked by
 * tests/cli/check_trace_file.py on a run's file. */
#include <check.h>
#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/time.h"
#include "sim/trace/trace.h"

enum { SERIES = 2, TIMES = 24, BIG_TEXT = 70000 };

struct sample_row {
    int64_t start_ps, end_ps, wait_ps, blocks;
    double load;
    uint64_t count;
    int32_t rank;
    uint32_t pool;
    const char *reason;
};

static const struct column sample_columns[] = {
    {"wait", COLUMN_TIME, offsetof(struct sample_row, wait_ps), "s", "wait", "A duration."},
    {"blocks", COLUMN_INT64, offsetof(struct sample_row, blocks), "1", "blocks",
     "May be undefined."},
    {"load", COLUMN_DOUBLE, offsetof(struct sample_row, load), "1", "load", "May be NaN."},
    {"count", COLUMN_UINT64, offsetof(struct sample_row, count), "1", "count", "A count."},
    {"rank", COLUMN_INT32, offsetof(struct sample_row, rank), "1", "rank", "May be undefined."},
    {"pool_index", COLUMN_UINT32, offsetof(struct sample_row, pool), "1", "pool", "An index."},
    {0},
};
static const struct column event_columns[] = {
    {"time", COLUMN_TIME, offsetof(struct sample_row, start_ps), TRACE_UNIT_STAMP, "time", "When."},
    {"reason", COLUMN_TEXT, offsetof(struct sample_row, reason), "1", "reason", "Why."},
    {0},
};

/* A run's worth of tables, in memory of the test. */
struct sample {
    struct sample_row rows[TIMES * SERIES];
    struct trace_table tables[4];
    struct trace_text texts[2];
    struct trace_meta meta[2];
    struct trace_run run;
    char big[BIG_TEXT + 1];
};

static const char *const pool_names[SERIES] = {"main", "zweites"};

static void rows_fill(struct sample *s)
{
    for (size_t i = 0; i < TIMES * SERIES; i++) {
        int64_t hour = (int64_t)(i / SERIES);
        s->rows[i] = (struct sample_row){
            .start_ps = hour * PS_PER_HOUR,
            .end_ps = (hour + 1) * PS_PER_HOUR,
            .wait_ps = i == 3 ? TIME_NONE : (int64_t)i * 250000000000,
            .blocks = i == 4 ? COLUMN_INT_NONE : (int64_t)i,
            .load = i == 5 ? NAN : (double)i / 7,
            .count = i * i,
            .rank = i == 6 ? -1 : (int32_t)i,
            .pool = (uint32_t)(i % SERIES),
            .reason = i % 3 == 0 ? "up" : NULL,
        };
    }
}

static void sample_init(struct sample *s)
{
    memset(s, 0, sizeof *s);
    rows_fill(s);
    for (size_t i = 0; i < BIG_TEXT; i++) {
        s->big[i] = "name: a\n"[i % 8];
    }
    s->tables[0] = (struct trace_table){.group = "hourly",
                                        .doc = "By hour.",
                                        .shape = TRACE_SERIES,
                                        .columns = sample_columns,
                                        .rows = s->rows,
                                        .row_count = TIMES,
                                        .row_size = sizeof s->rows[0],
                                        .start_offset = offsetof(struct sample_row, start_ps),
                                        .end_offset = offsetof(struct sample_row, end_ps),
                                        .dimension = "pool",
                                        .labels = pool_names,
                                        .series_count = SERIES};
    s->tables[1] = (struct trace_table){.group = "scaling",
                                        .doc = "Events.",
                                        .shape = TRACE_LIST,
                                        .columns = event_columns,
                                        .rows = s->rows,
                                        .row_count = TIMES,
                                        .row_size = sizeof s->rows[0],
                                        .dimension = "event"};
    s->tables[2] = (struct trace_table){.group = "summary",
                                        .doc = "By pool.",
                                        .shape = TRACE_LABELS,
                                        .columns = sample_columns,
                                        .rows = s->rows,
                                        .row_count = SERIES,
                                        .row_size = sizeof s->rows[0],
                                        .dimension = "pool",
                                        .labels = pool_names};
    s->tables[3] = (struct trace_table){.group = "meta",
                                        .doc = "Single values.",
                                        .shape = TRACE_SCALARS,
                                        .columns = sample_columns,
                                        .rows = s->rows,
                                        .row_count = 1,
                                        .row_size = sizeof s->rows[0]};
    s->texts[0] = (struct trace_text){"scenario", "given", s->big, "As given."};
    s->texts[1] = (struct trace_text){"scenario", "resolved", "", "As resolved."};
    s->meta[0] = (struct trace_meta){"version", "0.1.0", 0, "Version of the program."};
    s->meta[1] = (struct trace_meta){"seed", NULL, 18446744073709551615u, "Seed."};
    s->run = (struct trace_run){.title = "a test",
                                .start_unix_s = 1772409600,
                                .tables = s->tables,
                                .table_count = 4,
                                .texts = s->texts,
                                .text_count = 2,
                                .meta = s->meta,
                                .meta_count = 2,
                                .complete = true};
}

static struct sample sample;
static struct errors errors;
static char folder[64], path[96];

static void setup(void)
{
    sample_init(&sample);
    errors_init(&errors);
    snprintf(folder, sizeof folder, "test-trace-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.h5", folder);
}

static void teardown(void)
{
    char command[96];
    errors_free(&errors);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The whole file; the caller frees. */
static char *bytes_read(const char *name, size_t *size)
{
    FILE *in = fopen(name, "rb");
    ck_assert_ptr_nonnull(in);
    fseek(in, 0, SEEK_END);
    *size = (size_t)ftell(in);
    rewind(in);
    char *bytes = memory_alloc(*size + 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, in), *size);
    fclose(in);
    return bytes;
}

static int files_in_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *in = popen(command, "r");
    int count = -1;
    ck_assert_int_eq(fscanf(in, "%d", &count), 1);
    pclose(in);
    return count;
}

static void text_read(const char *name, char **text)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text), 0);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
}

static size_t doubles_read(const char *name, double *values, size_t max)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    hid_t space = H5Dget_space(set);
    size_t count = (size_t)H5Sget_simple_extent_npoints(space);
    ck_assert_uint_le(count, max);
    ck_assert_int_ge(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return count;
}

/* Dirty freed memory, so that padding left uninitialised would differ between two writes. */
static void heap_dirty(int value)
{
    void *blocks[64];
    for (size_t i = 0; i < 64; i++) {
        blocks[i] = memory_alloc((i + 1) * 97);
        memset(blocks[i], value, (i + 1) * 97);
    }
    for (size_t i = 0; i < 64; i++) {
        free(blocks[i]);
    }
}

START_TEST(same_run_same_bytes)
{
    char other[96];
    snprintf(other, sizeof other, "%s/other-name.h5", folder);
    heap_dirty(0x5A);
    ck_assert(trace_write(&sample.run, path, false, &errors));
    heap_dirty(0xC3);
    sleep(1); /* a stamp of the time of writing would show */
    ck_assert(trace_write(&sample.run, other, false, &errors));
    size_t a, b;
    char *first = bytes_read(path, &a), *second = bytes_read(other, &b);
    ck_assert_uint_eq(a, b);
    ck_assert_int_eq(memcmp(first, second, a), 0);
    free(first);
    free(second);
    ck_assert_int_eq(files_in_folder(), 2);
}
END_TEST

START_TEST(values_read_back)
{
    double values[TIMES * SERIES];
    ck_assert(trace_write(&sample.run, path, false, &errors));
    ck_assert_uint_eq(doubles_read("hourly/wait", values, TIMES * SERIES), TIMES * SERIES);
    ck_assert_double_eq(values[10], 2.5);
    ck_assert(isnan(values[3]));
    ck_assert_uint_eq(doubles_read("hourly/load", values, TIMES * SERIES), TIMES * SERIES);
    ck_assert(isnan(values[5]));
    ck_assert_uint_eq(doubles_read("hourly/blocks", values, TIMES * SERIES), TIMES * SERIES);
    ck_assert_double_eq(values[4], -9223372036854775808.0);
    ck_assert_uint_eq(doubles_read("hourly/time", values, TIMES), TIMES);
    ck_assert_double_eq(values[23], 23 * 3600.0);
    ck_assert_uint_eq(doubles_read("hourly/time_bnds", values, 2 * TIMES), 2 * TIMES);
    ck_assert_double_eq(values[47], 24 * 3600.0);
    ck_assert_uint_eq(doubles_read("meta/complete", values, 1), 1);
    ck_assert_double_eq(values[0], 1);
}
END_TEST

/* The library's own dimension scales find both directions of what was written without them, and can
 * undo it: the lists are theirs to change. */
START_TEST(scales_are_the_librarys)
{
    static const char *const names[] = {"wait", "blocks", "load", "count", "rank", "pool_index"};
    ck_assert(trace_write(&sample.run, path, false, &errors));
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t time = H5Dopen2(file, "hourly/time", H5P_DEFAULT);
    hid_t pool = H5Dopen2(file, "hourly/pool", H5P_DEFAULT);
    ck_assert_int_gt(H5DSis_scale(time), 0);
    ck_assert_int_gt(H5DSis_scale(pool), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hid_t group = H5Gopen2(file, "hourly", H5P_DEFAULT);
        hid_t set = H5Dopen2(group, names[i], H5P_DEFAULT);
        ck_assert_int_eq(H5DSget_num_scales(set, 0), 1);
        ck_assert_int_eq(H5DSget_num_scales(set, 1), 1);
        ck_assert_int_gt(H5DSis_attached(set, time, 0), 0);
        ck_assert_int_gt(H5DSis_attached(set, pool, 1), 0);
        ck_assert_int_eq(H5DSis_attached(set, pool, 0), 0);
        ck_assert_int_ge(H5DSdetach_scale(set, time, 0), 0);
        ck_assert_int_eq(H5DSis_attached(set, time, 0), 0);
        ck_assert_int_ge(H5DSattach_scale(set, time, 0), 0);
        ck_assert_int_gt(H5DSis_attached(set, time, 0), 0);
        H5Dclose(set);
        H5Gclose(group);
    }
    H5Dclose(time);
    H5Dclose(pool);
    ck_assert_int_ge(H5Fclose(file), 0);
}
END_TEST

START_TEST(long_text_reads_back)
{
    char *text = NULL;
    ck_assert(trace_write(&sample.run, path, false, &errors));
    text_read("scenario/given", &text);
    ck_assert_uint_eq(strlen(text), BIG_TEXT);
    ck_assert_str_eq(text, sample.big);
    H5free_memory(text);
    text_read("scenario/resolved", &text);
    ck_assert_str_eq(text, "");
    H5free_memory(text);
    text_read("meta/start", &text);
    ck_assert_str_eq(text, "2026-03-02T00:00:00Z");
    H5free_memory(text);
}
END_TEST

/* How a column is stored hangs on its bytes: every length around a limit reads back. */
START_TEST(columns_of_any_length)
{
    enum { ROWS_MAX = 16385 };
    static const size_t limits[] = {512, 1024, 2048, 4096, 5461, 8192, 16384};
    struct sample_row *rows = calloc(ROWS_MAX, sizeof *rows);
    double *times = calloc(ROWS_MAX, sizeof *times);
    char **reasons = calloc(ROWS_MAX, sizeof *reasons);
    static const char *const words[] = {"up", "", "down"};
    for (size_t i = 0; i < ROWS_MAX; i++) {
        rows[i].start_ps = (int64_t)i * PS_PER_SECOND;
        rows[i].reason = words[i % 3];
    }
    sample.tables[1].rows = rows;
    for (size_t k = 0; k < 3 * sizeof limits / sizeof limits[0]; k++) {
        size_t count = limits[k / 3] - 1 + k % 3;
        sample.tables[1].row_count = count;
        ck_assert_msg(trace_write(&sample.run, path, true, &errors), "%zu rows", count);
        hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1);
        hid_t time = H5Dopen2(file, "scaling/time", H5P_DEFAULT);
        hid_t reason = H5Dopen2(file, "scaling/reason", H5P_DEFAULT);
        hid_t space = H5Dget_space(reason);
        H5Tset_size(text, H5T_VARIABLE);
        H5Tset_cset(text, H5T_CSET_UTF8);
        ck_assert_uint_eq((size_t)H5Sget_simple_extent_npoints(space), count);
        ck_assert(H5Dread(time, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, times) >= 0);
        ck_assert(H5Dread(reason, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, reasons) >= 0);
        for (size_t i = 0; i < count; i++) {
            ck_assert(times[i] == (double)i);
            ck_assert_str_eq(reasons[i], words[i % 3]);
        }
        H5Dvlen_reclaim(text, space, H5P_DEFAULT, reasons);
        H5Sclose(space);
        H5Dclose(reason);
        H5Dclose(time);
        H5Tclose(text);
        ck_assert_int_ge(H5Fclose(file), 0);
    }
    free(rows);
    free(times);
    free(reasons);
}
END_TEST

START_TEST(existing_file_is_refused)
{
    ck_assert(trace_write(&sample.run, path, false, &errors));
    size_t before, after;
    char *old = bytes_read(path, &before);
    ck_assert(!trace_write(&sample.run, path, false, &errors));
    ck_assert_uint_eq(errors.error_count, 1);
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, "exists already"));
    char *kept = bytes_read(path, &after);
    ck_assert_uint_eq(before, after);
    free(old);
    free(kept);
    sample.run.title = "another title, and a longer one";
    ck_assert(trace_write(&sample.run, path, true, &errors));
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

START_TEST(bad_places_are_named)
{
    char bad[160];
    snprintf(bad, sizeof bad, "%s/no/such/folder.h5", folder);
    ck_assert(!trace_write(&sample.run, bad, false, &errors));
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, strerror(ENOENT)));
    ck_assert(!trace_write(&sample.run, folder, true, &errors));
    ck_assert_ptr_nonnull(strstr(errors.items[1].message, "it is a folder"));
    ck_assert(trace_write(&sample.run, path, false, &errors));
    snprintf(bad, sizeof bad, "%s/under-a-file.h5", path);
    ck_assert(!trace_write(&sample.run, bad, false, &errors));
    ck_assert_ptr_nonnull(strstr(errors.items[2].message, strerror(ENOTDIR)));
    if (geteuid() != 0) { /* root may write anywhere */
        ck_assert_int_eq(chmod(folder, 0555), 0);
        snprintf(bad, sizeof bad, "%s/new.h5", folder);
        ck_assert(!trace_write(&sample.run, bad, false, &errors));
        ck_assert_int_eq(chmod(folder, 0755), 0);
    }
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

static void limit_set(rlim_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static const struct trace_stream_config stream_config = {.group = "requests",
                                                         .doc = "One row per request.",
                                                         .dimension = "request",
                                                         .columns = sample_columns,
                                                         .row_size = sizeof(struct sample_row),
                                                         .start_unix_s = 1772409600};

/* A disk that is full: neither way of writing leaves a file, and both say why. */
START_TEST(full_disk_leaves_nothing)
{
    limit_set(4096);
    ck_assert(!trace_write(&sample.run, path, false, &errors));
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, strerror(EFBIG)));
    ck_assert_ptr_nonnull(strstr(errors.items[0].message, path));
    limit_set(65536);
    struct trace_stream *stream = trace_stream_open(path, false, &stream_config, &errors);
    ck_assert_ptr_nonnull(stream);
    for (uint64_t i = 0; i < 100000; i++) {
        struct sample_row row = sample.rows[i % (TIMES * SERIES)];
        row.count = i * 0x9E3779B97F4A7C15u;
        trace_stream_append(stream, &row);
    }
    ck_assert(!trace_stream_close(stream, &sample.run, &errors));
    ck_assert_ptr_nonnull(strstr(errors.items[1].message, strerror(EFBIG)));
    ck_assert_int_eq(files_in_folder(), 0);
    limit_set(RLIM_INFINITY);
    ck_assert(trace_write(&sample.run, path, false, &errors)); /* and works again afterwards */
}
END_TEST

START_TEST(partial_is_replaced_and_removed)
{
    char part[112];
    snprintf(part, sizeof part, "%s.part", path);
    sample.run.complete = false;
    sample.tables[0].row_count = 0; /* before the first hour ended */
    sample.tables[1].row_count = 0;
    ck_assert(trace_partial_write(&sample.run, path, &errors));
    ck_assert_int_gt(H5Fis_hdf5(part), 0);
    sample.tables[0].row_count = 10;
    ck_assert(trace_partial_write(&sample.run, path, &errors));
    ck_assert_int_eq(access(path, F_OK), -1);
    hid_t file = H5Fopen(part, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    hid_t set = H5Dopen2(file, "hourly/count", H5P_DEFAULT), space = H5Dget_space(set);
    ck_assert_int_eq(H5Sget_simple_extent_npoints(space), 10 * SERIES);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    sample.run.complete = true;
    ck_assert(trace_write(&sample.run, path, false, &errors));
    ck_assert_int_eq(files_in_folder(), 1);
}
END_TEST

static double seconds_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Appends rows of random numbers, which no compression shrinks. Returns CPU seconds. */
static double stream_write(size_t rows, bool abort)
{
    double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    struct trace_stream *stream = trace_stream_open(path, true, &stream_config, &errors);
    ck_assert_ptr_nonnull(stream);
    uint64_t x = 1;
    for (size_t i = 0; i < rows; i++) {
        struct sample_row row = {0};
        x = x * 6364136223846793005u + 1442695040888963407u;
        row.wait_ps = (int64_t)(x >> 8);
        row.blocks = (int64_t)(x * 0x9E3779B97F4A7C15u >> 1);
        row.load = (double)x * 1.1;
        row.count = i;
        row.rank = (int32_t)(x >> 40);
        row.pool = (uint32_t)(x >> 33);
        trace_stream_append(stream, &row);
    }
    if (abort) {
        trace_stream_abort(stream);
    } else {
        ck_assert(trace_stream_close(stream, &sample.run, &errors));
    }
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* A million rows of 40 bytes: at most 1.2 times their size, and time linear in rows. */
START_TEST(stream_is_linear_and_lean)
{
    double quarter = stream_write(250000, false), whole = stream_write(1000000, false);
    printf("stream: 250,000 rows %.2f s, 1,000,000 rows %.2f s\n", quarter, whole);
    ck_assert_double_lt(whole, 4 * quarter * 1.6 + 0.2);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    printf("stream: %.1f MB for 40.0 MB\n", (double)status.st_size / 1e6);
    ck_assert_double_lt((double)status.st_size, 1.2 * 40e6);
    double *values = memory_alloc(1000000 * sizeof *values);
    ck_assert_uint_eq(doubles_read("requests/count", values, 1000000), 1000000);
    for (size_t i = 0; i < 1000000; i++) {
        ck_assert_msg(values[i] == (double)i, "row %zu", i);
    }
    free(values);
    double hours[TIMES * SERIES];
    ck_assert_uint_eq(doubles_read("hourly/count", hours, TIMES * SERIES), TIMES * SERIES);
}
END_TEST

START_TEST(stream_same_rows_same_bytes)
{
    size_t a, b;
    stream_write(10000, false); /* one whole chunk and a part */
    char *first = bytes_read(path, &a);
    heap_dirty(0x77);
    stream_write(10000, false);
    char *second = bytes_read(path, &b);
    ck_assert_uint_eq(a, b);
    ck_assert_int_eq(memcmp(first, second, a), 0);
    free(first);
    free(second);
    stream_write(0, false);
    unlink(path);
    stream_write(9000, true);
    ck_assert_int_eq(files_in_folder(), 0);
}
END_TEST

START_TEST(iso_times)
{
    char text[TRACE_ISO_MAX];
    ck_assert_str_eq(trace_iso_time(0, text), "1970-01-01T00:00:00Z");
    ck_assert_str_eq(trace_iso_time(951782399, text), "2000-02-28T23:59:59Z");
    ck_assert_str_eq(trace_iso_time(951868800, text), "2000-03-01T00:00:00Z");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tcase = tcase_create("trace");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, same_run_same_bytes);
    tcase_add_test(tcase, values_read_back);
    tcase_add_test(tcase, scales_are_the_librarys);
    tcase_add_test(tcase, long_text_reads_back);
    tcase_add_test(tcase, columns_of_any_length);
    tcase_add_test(tcase, existing_file_is_refused);
    tcase_add_test(tcase, bad_places_are_named);
    tcase_add_test(tcase, full_disk_leaves_nothing);
    tcase_add_test(tcase, partial_is_replaced_and_removed);
    tcase_add_test(tcase, stream_is_linear_and_lean);
    tcase_add_test(tcase, stream_same_rows_same_bytes);
    tcase_add_test(tcase, iso_times);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
