/* Trace files: exact stamps, every kind of bad row, gzip, and the public hours row for row. */
#include <check.h>
#include <string.h>
#include <zlib.h>

#include "sim/base/time.h"
#include "sim/workload/trace_reader.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

enum { ROWS_MAX = 16 };

struct reading {
    struct errors errors;
    struct trace_row rows[ROWS_MAX];
    size_t count;
    uint64_t bad;
    enum trace_status status;
    bool opened;
};

static void read_text(struct reading *got, const char *text, size_t size,
                      struct trace_reader_options options)
{
    memset(got, 0, sizeof *got);
    errors_init(&got->errors);
    struct trace_reader *reader =
        trace_reader_open_memory("trace.csv", text, size, &options, &got->errors);
    got->opened = reader != NULL;
    if (!reader)
        return;
    while (got->count < ROWS_MAX &&
           (got->status = trace_reader_next(reader, &got->rows[got->count])) == TRACE_ROW)
        got->count++;
    got->bad = trace_reader_bad_rows(reader);
    trace_reader_close(reader);
}

static void read_plain(struct reading *got, const char *text)
{
    read_text(got, text, strlen(text), (struct trace_reader_options){0});
}

#define OWN "arrival_s,prompt_tokens,output_tokens\n"

START_TEST(own_stamps_are_exact)
{
    struct reading got;
    read_plain(&got, OWN "0.25,10,5\n0.250000000001,1,0\n17,1073741824,7");
    ck_assert_uint_eq(got.count, 3);
    ck_assert_int_eq(got.rows[0].arrival_ps, PS_PER_SECOND / 4);
    ck_assert_int_eq(got.rows[1].arrival_ps, PS_PER_SECOND / 4 + 1);
    ck_assert_int_eq(got.rows[2].arrival_ps, 17 * PS_PER_SECOND);
    ck_assert_uint_eq(got.rows[2].prompt_tokens, 1073741824);
    ck_assert_uint_eq(got.rows[1].output_tokens, 0);
    ck_assert_int_eq(got.rows[0].session, -1);
    ck_assert_uint_eq(got.errors.error_count, 0);
    errors_free(&got.errors);
}
END_TEST

/* Unix times: the first row is time zero. */
START_TEST(unix_stamps_start_at_zero)
{
    struct reading got;
    read_plain(&got, OWN "1700000000.000,1,1\n1700000000.500,1,1\n1700000001.000,1,1\n");
    ck_assert_uint_eq(got.count, 3);
    ck_assert_int_eq(got.rows[0].arrival_ps, 0);
    ck_assert_int_eq(got.rows[1].arrival_ps, PS_PER_SECOND / 2);
    ck_assert_int_eq(got.rows[2].arrival_ps, PS_PER_SECOND);
    errors_free(&got.errors);
}
END_TEST

START_TEST(azure_stamps)
{
    struct reading got;
    read_plain(&got, "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                     "2023-12-31 23:59:59.9799600,374,44\r\n"
                     "2024-01-01 00:00:00.0000001+00:00,1,0\r\n"
                     "2024-01-01T00:00:01Z,1,2\r\n"
                     "2024-02-29 00:00:00.000000000001,5,6");
    ck_assert_uint_eq(got.errors.error_count, 0);
    ck_assert_uint_eq(got.count, 4);
    ck_assert_int_eq(got.rows[0].arrival_ps, 0);
    ck_assert_int_eq(got.rows[1].arrival_ps, INT64_C(20040100000));
    ck_assert_int_eq(got.rows[2].arrival_ps, INT64_C(1020040000000));
    ck_assert_int_eq(got.rows[3].arrival_ps, 59 * 86400 * PS_PER_SECOND + INT64_C(20040000001));
    ck_assert_uint_eq(got.rows[0].prompt_tokens, 374);
    ck_assert_uint_eq(got.rows[3].output_tokens, 6);
    errors_free(&got.errors);
}
END_TEST

static const struct bad_case {
    const char *row;
    uint32_t column;
    const char *message;
} own_bad[] = {
    {"abc,1,1", 1, "arrival_s is not a decimal"},
    {"-1,1,1", 1, "arrival_s is negative"},
    {"5,abc,1", 3, "prompt_tokens is not a whole number"},
    {"5,-1,1", 3, "prompt_tokens is not a whole number"},
    {"5,1,", 5, "output_tokens is empty"},
    {"5,,1", 3, "prompt_tokens is empty"},
    {",1,1", 1, "arrival_s is empty"},
    {"5,1", 4, "the row has 2 fields, the header 3"},
    {"5,1,1,1", 6, "the row has 4 fields, the header 3"},
    {"3.9,1,1", 1, "earlier than that of the row before"},
    {"5,0,1", 3, "prompt_tokens must be at least 1"},
    {"5,4294967297,1", 3, "prompt_tokens is above the limit of 1073741824"},
    {"5,99999999999999999999999,1", 3, "above the limit"},
    {"5,1,1073741825", 5, "output_tokens is above the limit"},
    {"5.,1,1", 3, "ends in its decimal point"},
    {"5.0000000000001,1,1", 3, "more than 12 decimals"},
    {"5.1e3,1,1", 4, "arrival_s is not a number"},
    {"1e3,1,1", 1, "arrival_s is not a decimal"},
    {"5, 1,1", 3, "prompt_tokens is not a whole number"},
    {"5,1.0,1", 3, "prompt_tokens is not a whole number"},
    {"8640001,1,1", 1, "more than 100 days"},
    {"99999999999999999999,1,1", 1, "mixed clocks: this stamp is a Unix time"},
    {"999999999,1,1", 1, "more than 100 days"},
    {"", 1, "the line is empty"},
};

static const struct bad_case azure_bad[] = {
    {"2023-11-16,1,1", 1, "TIMESTAMP is not a time"},
    {"2023-02-29 00:00:00,1,1", 1, "TIMESTAMP is not a time"},
    {"2023-13-01 00:00:00,1,1", 1, "TIMESTAMP is not a time"},
    {"2023-11-16 24:00:00,1,1", 1, "TIMESTAMP is not a time"},
    {"2023-11-16 23:59:60,1,1", 1, "TIMESTAMP is not a time"},
    {"2023-11-16 23:59:50+01:00,1,1", 20, "must be in UTC"},
    {"2023-11-16 23:59:50 PST,1,1", 20, "TIMESTAMP is not a time"},
    {",1,1", 1, "TIMESTAMP is empty"},
    {"2023-11-16 23:59:50,0,1", 21, "ContextTokens must be at least 1"},
    {"2023-11-16 23:59:50,1,x", 23, "GeneratedTokens is not a whole number"},
    {"2023-11-16 00:00:00,1,1", 1, "earlier"},
};

/* Each bad row between two good ones: reported once, with its place and its text, or counted. */
static void check_bad(const char *header, const char *first, const char *last,
                      const struct bad_case *c)
{
    char text[600];
    snprintf(text, sizeof text, "%s%s\n%s\n%s\n", header, first, c->row, last);
    struct reading got;
    read_plain(&got, text);
    ck_assert_uint_eq(got.errors.error_count, 1);
    traffic_expect_error(&got.errors, 3, c->column, c->message);
    ck_assert_str_eq(got.errors.items[0].pos.file, "trace.csv");
    ck_assert_int_eq(strncmp(got.errors.items[0].pos.text, c->row, strlen(c->row)), 0);
    ck_assert_uint_eq(got.count, 2);
    ck_assert_int_eq(got.status, TRACE_END);
    errors_free(&got.errors);

    read_text(&got, text, strlen(text), (struct trace_reader_options){.skip_bad = true});
    ck_assert_uint_eq(got.errors.error_count, 0);
    ck_assert_uint_eq(got.count, 2);
    ck_assert_uint_eq(got.bad, 1);
    errors_free(&got.errors);
}

START_TEST(bad_rows)
{
    for (size_t i = 0; i < sizeof own_bad / sizeof *own_bad; i++)
        check_bad(OWN, "4,1,1", "8.5,2,2", &own_bad[i]);
    for (size_t i = 0; i < sizeof azure_bad / sizeof *azure_bad; i++)
        check_bad("TIMESTAMP,ContextTokens,GeneratedTokens\r\n", "2023-11-16 18:00:00.5,1,1",
                  "2023-11-17 18:00:00,2,2", &azure_bad[i]);
}
END_TEST

/* Five bad rows: five errors, each with its line. */
START_TEST(five_errors)
{
    struct reading got;
    read_plain(&got, OWN "1,abc,1\n2,-1,1\n3,,1\n4,1\n5,1,1\n4.5,1,1\n");
    ck_assert_uint_eq(got.errors.error_count, 5);
    static const uint32_t lines[] = {2, 3, 4, 5, 7};
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(got.errors.items[i].pos.line, lines[i]);
    errors_free(&got.errors);
}
END_TEST

START_TEST(nul_bytes_and_long_lines)
{
    struct reading got;
    static const char nul[] = OWN "1,1\0,1\n2,1,1\n";
    read_text(&got, nul, sizeof nul - 1, (struct trace_reader_options){0});
    traffic_expect_error(&got.errors, 2, 3, "not a whole number");
    ck_assert_uint_eq(got.count, 1);
    errors_free(&got.errors);

    enum { LONG = TRACE_READER_LINE_MAX + TRACE_READER_BUFFER };
    static char text[LONG + 1000];
    size_t size = (size_t)snprintf(text, sizeof text, OWN "1,1,1\n");
    memset(text + size, '7', LONG);
    size += LONG;
    size += (size_t)snprintf(text + size, sizeof text - size, "\n2,1,1\n");
    read_text(&got, text, size, (struct trace_reader_options){0});
    ck_assert_uint_eq(got.errors.error_count, 1);
    traffic_expect_error(&got.errors, 3, 0, "longer than 4194304 bytes");
    ck_assert_uint_eq(got.count, 2);
    ck_assert_int_eq(got.rows[1].arrival_ps, 2 * PS_PER_SECOND);
    errors_free(&got.errors);
}
END_TEST

START_TEST(headers)
{
    static const struct {
        const char *text;
        uint32_t column;
        const char *message;
    } cases[] = {
        {"", 0, "the file is empty"},
        {"\n1,2,3\n", 1, "not the header of a known trace format"},
        {"1,2,3\n", 1, "not the header of a known trace format"},
        {"arrival_s,output_tokens,prompt_tokens\n", 11, "column 2 of a trace is prompt_tokens"},
        {"arrival_s,prompt_tokens\n", 11, "the column output_tokens is missing"},
        {"arrival_s,prompt_tokens,output_tokens,sesion\n", 39, "did you mean 'session'?"},
        {"arrival_s,prompt_tokens,output_tokens,turn,turn\n", 44, "there twice"},
        {"arrival_s,prompt_tokens,output_tokens,hash_ids\n", 39, "hash_ids need hash_block_size"},
        {"TIMESTAMP,ContextTokens\n", 1, "an Azure trace has 3 columns, not 2"},
        {"TIMESTAMP,GeneratedTokens,ContextTokens\n", 11, "column 2 of an Azure trace"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s\n", 1, "not the header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading got;
        read_text(&got, cases[i].text, strlen(cases[i].text),
                  (struct trace_reader_options){.skip_bad = true});
        ck_assert(!got.opened);
        ck_assert_uint_eq(got.errors.error_count, 1);
        traffic_expect_error(&got.errors, 0, cases[i].column, cases[i].message);
        errors_free(&got.errors);
    }
    struct reading got;
    read_text(&got, OWN "1,1,1\n", sizeof OWN "1,1,1\n" - 1,
              (struct trace_reader_options){.format = &trace_azure_format});
    traffic_expect_error(&got.errors, 1, 1, "column 1 of an Azure trace is TIMESTAMP");
    errors_free(&got.errors);
    read_plain(&got, "\xEF\xBB\xBF" OWN "1,1,1\n");
    ck_assert_uint_eq(got.count, 1);
    errors_free(&got.errors);
}
END_TEST

/* A stated format does not make a header fit that has more columns than are read. */
START_TEST(too_many_columns_of_any_format)
{
    static const char wide[] = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s\n1,1,1\n";
    for (size_t i = 0; trace_reader_formats[i]; i++) {
        if (trace_reader_formats[i]->lines)
            continue;
        struct reading got;
        read_text(&got, wide, sizeof wide - 1,
                  (struct trace_reader_options){.format = trace_reader_formats[i]});
        ck_assert(!got.opened);
        traffic_expect_error(&got.errors, 1, 1, "the header has 19 columns, at most 16 are read");
        errors_free(&got.errors);
    }
}
END_TEST

START_TEST(optional_columns)
{
    static const char text[] = "arrival_s,prompt_tokens,output_tokens,turn,class,session\n"
                               "0,1,1,3,chat,9223372036854775807\n"
                               "1,2,2,,,\n"
                               "2,3,3,0,code,7\n"
                               "3,4,4,0,chat,8\n"
                               "4,5,5,0,cha,8\n"
                               "5,5,5,0,chat,9223372036854775808\n"
                               "5,5,5,4294967296,chat,1\n";
    static const char *const others[] = {"code", NULL};
    struct reading got;
    read_text(&got, text, sizeof text - 1,
              (struct trace_reader_options){.class_name = "chat", .other_classes = others});
    ck_assert_uint_eq(got.count, 3);
    ck_assert_int_eq(got.rows[0].session, INT64_MAX);
    ck_assert_uint_eq(got.rows[0].turn, 3);
    ck_assert_int_eq(got.rows[1].session, -1);
    ck_assert_uint_eq(got.rows[1].turn, 0);
    ck_assert_uint_eq(got.rows[2].prompt_tokens, 4);
    ck_assert_uint_eq(got.errors.error_count, 3);
    traffic_expect_error(&got.errors, 6, 9, "class 'cha' is no workload that reads this file");
    traffic_expect_error(&got.errors, 7, 14, "session is above the limit");
    traffic_expect_error(&got.errors, 8, 7, "turn is above the limit");
    errors_free(&got.errors);
}
END_TEST

/* More bad rows than are kept: all are counted. */
START_TEST(errors_are_capped)
{
    static char text[40000] = OWN;
    size_t size = strlen(text);
    for (int i = 0; i < 1000; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "x,1,1\n");
    struct reading got;
    read_text(&got, text, size, (struct trace_reader_options){0});
    ck_assert_uint_eq(got.errors.count, ERRORS_KEPT_MAX);
    ck_assert_uint_eq(got.errors.error_count, 1000);
    ck_assert_uint_eq(got.bad, 1000);
    errors_free(&got.errors);
}
END_TEST

/* ---- files ---- */

/* Rows from first on; mode "ab" makes them a gzip file of their own behind those before. */
static void add_gzip(const char *path, const char *mode, const char *text, int first, int rows)
{
    gzFile out = gzopen(path, mode);
    ck_assert_ptr_nonnull(out);
    gzputs(out, text);
    for (int i = first; i < first + rows; i++)
        gzprintf(out, "%d.%03d,%d,%d\n", i, i % 1000, (int)(1 + (int64_t)i * 7919 % 5000),
                 (int)((int64_t)i * 31 % 1000));
    ck_assert_int_eq(gzclose(out), Z_OK);
}

static void write_gzip(const char *path, const char *text, int rows)
{
    add_gzip(path, "wb", text, 0, rows);
}

static size_t file_bytes(const char *path, char *bytes, size_t size)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t got = fread(bytes, 1, size, f);
    ck_assert(fclose(f) == 0 && got < size);
    return got;
}

static void file_write(const char *path, const char *mode, const void *bytes, size_t size)
{
    FILE *f = fopen(path, mode);
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

struct totals {
    uint64_t rows, prompt, output;
    int64_t last_ps, gap_ps; /* smallest gap */
    enum trace_status status;
};

static struct totals read_file(const char *path, struct errors *errors)
{
    struct totals t = {.gap_ps = INT64_MAX, .status = TRACE_FAILED};
    struct trace_reader *reader =
        trace_reader_open(path, &(struct trace_reader_options){0}, errors);
    struct trace_row row;
    while (reader && (t.status = trace_reader_next(reader, &row)) == TRACE_ROW) {
        if (t.rows && row.arrival_ps - t.last_ps < t.gap_ps)
            t.gap_ps = row.arrival_ps - t.last_ps;
        t.rows++;
        t.prompt += row.prompt_tokens;
        t.output += row.output_tokens;
        t.last_ps = row.arrival_ps;
    }
    trace_reader_close(reader);
    return t;
}

/* A device never ends; a file without line ends is read to its end and no further. */
START_TEST(without_line_ends)
{
    struct errors errors;
    errors_init(&errors);
    struct totals t = read_file("/dev/zero", &errors);
    ck_assert_int_eq(t.status, TRACE_FAILED);
    ck_assert_uint_eq(t.rows, 0);
    ck_assert_uint_ge(errors.error_count, 1);
    errors_free(&errors);
}
END_TEST

START_TEST(gzip_whole_cut_and_damaged)
{
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("a.csv.gz"));
    write_gzip(path, OWN, 50000);
    struct errors errors;
    errors_init(&errors);
    struct totals t = read_file(path, &errors);
    ck_assert_uint_eq(t.rows, 50000);
    ck_assert_int_eq(t.status, TRACE_END);
    ck_assert_uint_eq(errors.error_count, 0);

    static char bytes[1 << 20];
    size_t size = file_bytes(path, bytes, sizeof bytes);
    ck_assert(size > 1000);
    /* Cut anywhere, in the trailer too: always an error, never fewer rows in silence. */
    size_t cuts[] = {size - 1, size - 8, size - 9, size / 2, 20, 11};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        file_write(path, "wb", bytes, cuts[i]);
        errors_free(&errors);
        errors_init(&errors);
        t = read_file(path, &errors);
        ck_assert_int_eq(t.status, TRACE_FAILED);
        traffic_expect_error(&errors, 0, 0, "cut off before its end");
    }
    /* One bit anywhere, the checksum and the length in the trailer too. */
    size_t places[] = {size / 2, size - 8, size - 5, size - 4, size - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bytes[places[i]] ^= 0x10;
        file_write(path, "wb", bytes, size);
        bytes[places[i]] ^= 0x10;
        errors_free(&errors);
        errors_init(&errors);
        t = read_file(path, &errors);
        ck_assert_int_eq(t.status, TRACE_FAILED);
        ck_assert_uint_ge(errors.error_count, 1);
    }
    remove(path);
    errors_free(&errors);
}
END_TEST

static void expect_rows(const char *path, uint64_t rows, uint64_t prompt, uint64_t output)
{
    struct errors errors;
    errors_init(&errors);
    struct totals t = read_file(path, &errors);
    ck_assert_int_eq(t.status, TRACE_END);
    ck_assert_uint_eq(t.rows, rows);
    ck_assert_uint_eq(t.prompt, prompt);
    ck_assert_uint_eq(t.output, output);
    ck_assert_uint_eq(errors.error_count, 0);
    errors_free(&errors);
}

/* Small files are inflated at one go, others as a stream: the rows are the same, also of several
 * gzip files in one, and where something that is no gzip follows. */
START_TEST(gzip_at_one_go_and_streamed)
{
    static const int counts[] = {0, 1, 1000, 50000, 400000};
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("b.csv.gz"));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int rows = counts[i];
        uint64_t prompt = 0, output = 0;
        for (int k = 0; k < rows; k++) {
            prompt += (uint64_t)(1 + (int64_t)k * 7919 % 5000);
            output += (uint64_t)((int64_t)k * 31 % 1000);
        }
        write_gzip(path, OWN, rows);
        expect_rows(path, (uint64_t)rows, prompt, output);
        file_write(path, "ab", "junk", 4);
        expect_rows(path, (uint64_t)rows, prompt, output);
        write_gzip(path, OWN, rows / 3);
        add_gzip(path, "ab", "", rows / 3, rows - rows / 3);
        expect_rows(path, (uint64_t)rows, prompt, output);
    }
    remove(path);
}
END_TEST

/* A header's own checksum is looked at whatever the size of the file. */
START_TEST(gzip_header_checksum)
{
    static const int sizes[] = {100, 5 << 20};
    char path[256];
    snprintf(path, sizeof path, "%s", traffic_temp("h.csv.gz"));
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(OWN) + (size_t)sizes[i], room = size + 1000;
        char *text = malloc(size), *packed = malloc(room);
        memcpy(text, OWN, strlen(OWN));
        for (size_t k = strlen(OWN); k < size; k++)
            text[k] = "1.5,10,3\n"[(k - strlen(OWN)) % 9];
        z_stream z = {.next_in = (unsigned char *)text,
                      .avail_in = (uInt)(size - (size_t)sizes[i] % 9),
                      .next_out = (unsigned char *)packed,
                      .avail_out = (uInt)room};
        gz_header header = {.hcrc = 1};
        ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ck_assert_int_eq(deflateSetHeader(&z, &header), Z_OK);
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        file_write(path, "wb", packed, z.total_out);
        struct errors errors;
        errors_init(&errors);
        ck_assert_int_eq(read_file(path, &errors).status, TRACE_END);
        ck_assert_uint_eq(errors.error_count, 0);
        packed[10] ^= 1;
        file_write(path, "wb", packed, z.total_out);
        ck_assert_int_eq(read_file(path, &errors).status, TRACE_FAILED);
        traffic_expect_error(&errors, 0, 0, "damaged");
        errors_free(&errors);
        deflateEnd(&z);
        free(text);
        free(packed);
    }
    remove(path);
}
END_TEST

START_TEST(files_that_are_none)
{
    struct errors errors;
    errors_init(&errors);
    ck_assert_int_eq(read_file("no/such/file.csv", &errors).status, TRACE_FAILED);
    traffic_expect_error(&errors, 0, 0, "cannot be opened: No such file");
    ck_assert_int_eq(read_file(".", &errors).status, TRACE_FAILED);
    traffic_expect_error(&errors, 0, 0, "directory");
    errors_free(&errors);
}
END_TEST

static void check_public(const char *name, uint64_t rows, uint64_t prompt, uint64_t output,
                         int64_t span_us, int64_t gap_us)
{
    char relative[200];
    snprintf(relative, sizeof relative, "data/azure_llm_2023/AzureLLMInferenceTrace_%s.csv.gz",
             name);
    const char *path = traffic_shared(relative);
    if (!path)
        return;
    struct errors errors;
    errors_init(&errors);
    struct totals t = read_file(path, &errors);
    ck_assert_uint_eq(errors.error_count, 0);
    ck_assert_uint_eq(t.rows, rows);
    ck_assert_uint_eq(t.prompt, prompt);
    ck_assert_uint_eq(t.output, output);
    ck_assert_int_eq(t.last_ps, span_us * 1000000);
    ck_assert_int_ge(t.gap_ps, gap_us * 1000000);
    ck_assert_int_lt(t.gap_ps, (gap_us + 1) * 1000000);
    errors_free(&errors);
}

START_TEST(azure_public_hours)
{
    check_public("code", 8819, 18059974, 245896, INT64_C(3435948056), 6);
    check_public("conv", 19366, 22361870, 4088665, INT64_C(3501721937), 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {own_stamps_are_exact,
                                  unix_stamps_start_at_zero,
                                  azure_stamps,
                                  bad_rows,
                                  five_errors,
                                  nul_bytes_and_long_lines,
                                  headers,
                                  optional_columns,
                                  errors_are_capped,
                                  without_line_ends,
                                  too_many_columns_of_any_format,
                                  gzip_whole_cut_and_damaged,
                                  gzip_at_one_go_and_streamed,
                                  gzip_header_checksum,
                                  files_that_are_none,
                                  azure_public_hours,
                                  NULL};
    return suite_run("trace_reader", tests, 60);
}
