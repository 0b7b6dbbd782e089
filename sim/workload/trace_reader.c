#include "sim/workload/trace_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/time.h"
#include "sim/workload/gzip_whole.h"
#include "sim/workload/lengths.h"

enum { HASHES_MIN = 64, DIGITS_SAFE = 19 /* so many fit 64 bits whatever they are */ };

/* zlib's own buffer: far smaller than what is asked of it at a time, so that it writes right into
 * ours. */
enum { GZIP_BUFFER = 1 << 15 };

struct seen {
    uint64_t id;
    uint32_t row; /* 0: none */
};

struct trace_reader {
    struct trace_reader_options options; /* pointers borrowed */
    const struct trace_format *format;
    struct errors *errors; /* borrowed */
    char *name;            /* owned; as the user wrote it */
    gzFile file;           /* owned; NULL in memory */
    const char *memory;    /* borrowed; what is left of it */
    size_t memory_size;

    char *buffer; /* owned; [capacity + 1] */
    size_t capacity;
    char *at, *end; /* unread bytes in it */
    char *line;     /* the line in hand, … */
    size_t length;  /* … without its end-of-line bytes */
    uint64_t line_number;
    bool at_end; /* of the file: nothing more to read into the buffer */
    bool held;   /* the line in hand comes again as the next one */
    bool failed;

    size_t column_count;
    struct trace_memory format_memory;

    bool has_zero, is_unix;
    int64_t zero_s, zero_ps; /* stamp that is time zero */
    int64_t last_ps;         /* arrival of the row before */
    uint64_t bad_rows, failed_calls;
    uint64_t *hashes; /* owned; of the row in hand, [hash_capacity] */
    size_t hash_count, hash_capacity;
    struct seen *seen; /* owned; which of them were met, [2 · hash_capacity] by their last bits */
    uint32_t seen_row; /* … in this row */
    int64_t hash_block_size; /* 0: no hash_ids */
};

const struct trace_format *const trace_reader_formats[] = {
    &trace_azure_format, &trace_fleetsim_format, &trace_mooncake_format, &trace_burstgpt_format,
    NULL};

static const struct trace_cell no_cell = {NULL, 0};

bool trace_reader_cell_is(struct trace_cell cell, const char *text)
{
    return strlen(text) == cell.length && memcmp(text, cell.text, cell.length) == 0;
}

struct trace_memory *trace_reader_memory(struct trace_reader *reader)
{
    return &reader->format_memory;
}

const struct trace_reader_options *trace_reader_options_of(const struct trace_reader *reader)
{
    return &reader->options;
}

/* ---- errors ---- */

static void report(struct trace_reader *r, const char *at, const char *message)
{
    bool shown = at && r->length <= TRACE_READER_SHOWN_LINE_MAX;
    struct source_pos pos = {
        .file = r->name,
        .line = r->line_number < UINT32_MAX ? (uint32_t)r->line_number : UINT32_MAX,
        .column = at ? (uint32_t)(at - r->line) + 1 : 0,
        .text = shown ? r->line : NULL,
    };
    if (!shown) {
        errors_add(r->errors, SEVERITY_ERROR, &pos, "%s", message);
        return;
    }
    /* errors.h wants the line ended by NUL or newline. */
    char kept = r->line[r->length];
    r->line[r->length] = '\0';
    errors_add(r->errors, SEVERITY_ERROR, &pos, "%s", message);
    r->line[r->length] = kept;
}

bool trace_reader_reject(struct trace_reader *r, const char *at, const char *fmt, ...)
{
    r->bad_rows++;
    if (r->options.skip_bad && r->format)
        return false;
    char message[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    report(r, at, message);
    return false;
}

/* Something no reading on can mend. */
static void fail(struct trace_reader *r, const char *message)
{
    r->failed = true;
    struct source_pos pos = {.file = r->name};
    errors_add(r->errors, SEVERITY_ERROR, &pos, "%s", message);
}

/* ---- lines ---- */

static void fail_reading(struct trace_reader *r)
{
    int code = Z_OK;
    const char *text = gzerror(r->file, &code);
    char message[200];
    if (code == Z_ERRNO)
        snprintf(message, sizeof message, "cannot be read: %s", strerror(errno));
    else if (code == Z_BUF_ERROR)
        snprintf(message, sizeof message, "the gzip file is cut off before its end");
    else
        snprintf(message, sizeof message, "the gzip file is damaged: %s", text);
    fail(r, message);
}

/* Moves the unread bytes to the front and reads on behind them; makes room where they fill all of
 * it. */
static void refill(struct trace_reader *r)
{
    size_t unread = (size_t)(r->end - r->at);
    memmove(r->buffer, r->at, unread);
    if (unread == r->capacity) {
        r->capacity *= 2;
        r->buffer = memory_grow(r->buffer, r->capacity + 1);
    }
    r->at = r->buffer;
    size_t room = r->capacity - unread;
    size_t got = 0;
    if (r->file) {
        errno = 0;
        int count = gzread(r->file, r->buffer + unread, (unsigned)room);
        int code = Z_OK;
        gzerror(r->file, &code);
        if (count < 0 || (count < (int)room && code != Z_OK && code != Z_STREAM_END))
            fail_reading(r);
        got = count > 0 ? (size_t)count : 0;
    } else {
        got = r->memory_size < room ? r->memory_size : room;
        if (got)
            memcpy(r->buffer + unread, r->memory, got);
        r->memory += got;
        r->memory_size -= got;
    }
    r->at_end = got == 0 || r->failed;
    r->end = r->buffer + unread + got;
}

/* Drops bytes up to and including the next newline. What has none for long is no text, and may have
 * no end (a device): that is given up. */
static void discard_line(struct trace_reader *r)
{
    const size_t patience = (size_t)64 << 20;
    size_t dropped = 0;
    for (;;) {
        char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        if (newline) {
            r->at = newline + 1;
            return;
        }
        dropped += (size_t)(r->end - r->at);
        r->at = r->end;
        if (r->at_end)
            return;
        if (dropped > patience) {
            fail(r, "64 MiB without the end of a line: this is no trace");
            return;
        }
        refill(r);
    }
}

/* Takes the next line in hand; false at the end or on a failure. An over-long line is rejected and
 * passed over. */
static bool next_line(struct trace_reader *r)
{
    if (r->held) {
        r->held = false;
        return true;
    }
    for (;;) {
        char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        size_t unread = (size_t)(r->end - r->at);
        if (!newline && unread <= TRACE_READER_LINE_MAX && !r->at_end) {
            refill(r);
            continue;
        }
        if (r->failed || (!newline && unread == 0))
            return false;
        r->line_number++;
        r->line = r->at;
        r->length = newline ? (size_t)(newline - r->at) : unread;
        if (r->length > TRACE_READER_LINE_MAX) {
            trace_reader_reject(r, NULL, "the line is longer than %d bytes", TRACE_READER_LINE_MAX);
            discard_line(r);
            continue;
        }
        r->at = newline ? newline + 1 : r->end;
        if (r->length && r->line[r->length - 1] == '\r')
            r->length--;
        return true;
    }
}

/* Cells of the line in hand; at most max are filled, all are counted. */
static size_t split_cells(const struct trace_reader *r, struct trace_cell *cells, size_t max)
{
    const char *start = r->line, *end = r->line + r->length;
    for (size_t count = 0;; count++) {
        const char *comma = memchr(start, ',', (size_t)(end - start));
        if (count < max)
            cells[count] = (struct trace_cell){start, (size_t)((comma ? comma : end) - start)};
        if (!comma)
            return count + 1;
        start = comma + 1;
    }
}

/* ---- cells ---- */

bool trace_reader_whole(struct trace_reader *r, struct trace_cell cell, const char *name,
                        uint64_t max, uint64_t *value)
{
    if (cell.length == 0)
        return trace_reader_reject(r, cell.text, "%s is empty", name);
    uint64_t sum = 0;
    bool above = false;
    for (size_t i = 0; i < cell.length; i++) {
        unsigned digit = (unsigned)(unsigned char)cell.text[i] - '0';
        if (digit > 9)
            return trace_reader_reject(r, cell.text, "%s is not a whole number", name);
        above |= i >= DIGITS_SAFE && sum > (max - digit) / 10;
        sum = sum * 10 + digit;
    }
    if (above || sum > max)
        return trace_reader_reject(r, cell.text, "%s is above the limit of %llu", name,
                                   (unsigned long long)max);
    *value = sum;
    return true;
}

bool trace_reader_tokens(struct trace_reader *r, struct trace_cell cell, const char *name,
                         uint32_t least, uint32_t *value)
{
    uint64_t wide = 0;
    if (!trace_reader_whole(r, cell, name, LENGTHS_TOKENS_MAX, &wide))
        return false;
    if (wide < least)
        return trace_reader_reject(r, cell.text, "%s must be at least %u", name, least);
    *value = (uint32_t)wide;
    return true;
}

bool trace_reader_fraction(struct trace_reader *r, struct trace_cell digits, const char *name,
                           int64_t *fraction_ps)
{
    static const int64_t powers[] = {1,           10,           100,          1000,      10000,
                                     100000,      1000000,      10000000,     100000000, 1000000000,
                                     10000000000, 100000000000, 1000000000000};
    if (digits.length == 0)
        return trace_reader_reject(r, digits.text, "%s ends in its decimal point", name);
    if (digits.length > 12)
        return trace_reader_reject(r, digits.text, "%s has more than 12 decimals", name);
    int64_t sum = 0;
    for (size_t i = 0; i < digits.length; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.text[i] - '0';
        if (digit > 9)
            return trace_reader_reject(r, digits.text + i, "%s is not a number", name);
        sum = sum * 10 + digit;
    }
    *fraction_ps = sum * powers[12 - digits.length];
    return true;
}

bool trace_reader_seconds(struct trace_reader *r, struct trace_cell cell, const char *name,
                          struct trace_record *record)
{
    const char *point = memchr(cell.text, '.', cell.length);
    struct trace_cell whole = {cell.text, point ? (size_t)(point - cell.text) : cell.length};
    record->fraction_ps = 0;
    if (whole.length && whole.text[0] == '-')
        return trace_reader_reject(r, cell.text, "%s is negative", name);
    bool digits = whole.length > 0;
    int64_t seconds = 0;
    for (size_t i = 0; i < whole.length && digits; i++) {
        unsigned digit = (unsigned)(unsigned char)whole.text[i] - '0';
        digits = digit <= 9;
        if (seconds < INT64_C(1000000000000))
            seconds = seconds * 10 + digit;
    }
    if (!digits)
        return trace_reader_reject(
            r, cell.text, cell.length ? "%s is not a decimal number of seconds" : "%s is empty",
            name);
    record->seconds = seconds;
    if (!point)
        return true;
    struct trace_cell decimals = {point + 1, cell.length - whole.length - 1};
    return trace_reader_fraction(r, decimals, name, &record->fraction_ps);
}

/* ---- hash_ids ---- */

bool trace_reader_hash_add(struct trace_reader *r, const char *at, uint64_t id)
{
    if (r->hash_count == TRACE_READER_HASHES_MAX)
        return trace_reader_reject(r, at, "more than %d hash_ids", TRACE_READER_HASHES_MAX);
    if (r->hash_count == r->hash_capacity) {
        r->hash_capacity = r->hash_capacity ? 2 * r->hash_capacity : HASHES_MIN;
        r->hashes = memory_grow(r->hashes, r->hash_capacity * sizeof *r->hashes);
        free(r->seen);
        r->seen = memory_zero(2 * r->hash_capacity, sizeof *r->seen);
    }
    r->hashes[r->hash_count++] = id;
    return true;
}

static bool hashes_rise(const struct trace_reader *r)
{
    for (size_t i = 1; i < r->hash_count; i++)
        if (r->hashes[i] <= r->hashes[i - 1])
            return false;
    return true;
}

/* The first of the row's hash_ids that is there twice; the number of them when none is. */
static size_t hashes_twice(struct trace_reader *r)
{
    if (hashes_rise(r))
        return r->hash_count;
    if (++r->seen_row == 0) {
        memset(r->seen, 0, 2 * r->hash_capacity * sizeof *r->seen);
        r->seen_row = 1;
    }
    size_t mask = 2 * r->hash_capacity - 1;
    for (size_t i = 0; i < r->hash_count; i++) {
        uint64_t id = r->hashes[i];
        size_t at = (id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
        for (; r->seen[at].row == r->seen_row; at = (at + 1) & mask)
            if (r->seen[at].id == id)
                return i;
        r->seen[at] = (struct seen){id, r->seen_row};
    }
    return r->hash_count;
}

/* Blocks of the tokens: full ones, and all. */
static int64_t blocks_full(const struct trace_reader *r, uint64_t tokens)
{
    return (int64_t)tokens / r->hash_block_size;
}

static int64_t blocks_all(const struct trace_reader *r, uint64_t tokens)
{
    return ((int64_t)tokens + r->hash_block_size - 1) / r->hash_block_size;
}

/* Of the row's hash_ids, those of full blocks. */
static size_t hashes_full(const struct trace_reader *r, const struct trace_record *record)
{
    if (r->hash_count == 0)
        return 0;
    uint64_t answer = r->format->hash_open ? record->output_tokens : 0;
    size_t full = (size_t)blocks_full(r, record->prompt_tokens + answer);
    return r->hash_count < full ? r->hash_count : full;
}

/* An id names a block together with all before it, so a row has as many as its prompt has blocks,
 * or where the format is open up to as many as there are tokens for, and each comes once. A row
 * without any is one whose content is not known. */
static bool hashes_check(struct trace_reader *r, const struct trace_record *record)
{
    if (r->hash_count == 0)
        return true;
    uint32_t prompt = record->prompt_tokens;
    int64_t all = blocks_all(r, prompt), least = blocks_full(r, prompt), most = all;
    if (r->format->hash_open) {
        int64_t whole = blocks_full(r, (uint64_t)prompt + record->output_tokens);
        least = 0;
        most = whole > all ? whole : all;
    }
    int64_t count = (int64_t)r->hash_count;
    if (count < least || count > most)
        return trace_reader_reject(r, r->line,
                                   "%lld hash_ids, but the prompt of %u tokens has %lld blocks of "
                                   "%lld%s",
                                   (long long)count, prompt, (long long)all,
                                   (long long)r->hash_block_size,
                                   most > all ? " and the answer too few for the rest" : "");
    size_t twice = hashes_twice(r);
    if (twice < r->hash_count)
        return trace_reader_reject(r, r->line, "the hash_id %llu is there twice",
                                   (unsigned long long)r->hashes[twice]);
    return true;
}

bool trace_reader_pass_failed(struct trace_reader *r)
{
    r->failed_calls++;
    return false;
}

/* ---- opening ---- */

static void known_headers(char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; trace_reader_formats[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", i ? ", " : "",
                                 trace_reader_formats[i]->header, trace_reader_formats[i]->name);
}

/* Reads the header and settles the format. */
static bool read_header(struct trace_reader *r)
{
    if (!next_line(r)) {
        if (!r->failed && r->bad_rows == 0)
            fail(r, "the file is empty: a header line is needed");
        return false;
    }
    if (r->length >= 3 && memcmp(r->line, "\xEF\xBB\xBF", 3) == 0) {
        r->line += 3; /* a byte order mark */
        r->length -= 3;
    }
    struct trace_cell cells[TRACE_READER_COLUMNS_MAX];
    size_t count = split_cells(r, cells, TRACE_READER_COLUMNS_MAX);
    size_t filled = count < TRACE_READER_COLUMNS_MAX ? count : TRACE_READER_COLUMNS_MAX;
    const struct trace_format *format = NULL;
    if (count == filled || r->options.format || cells[0].text[0] == '{') {
        format = r->options.format;
        for (size_t i = 0; !format && trace_reader_formats[i]; i++)
            if (trace_reader_formats[i]->claims(cells, filled))
                format = trace_reader_formats[i];
    }
    if (!format) {
        char known[250] = "";
        known_headers(known, sizeof known);
        return trace_reader_reject(r, r->line, "not the header of a known trace format: %s", known);
    }
    r->held = format->lines;
    if (!format->lines && count > filled)
        return trace_reader_reject(r, r->line, "the header has %zu columns, at most %d are read",
                                   count, TRACE_READER_COLUMNS_MAX);
    if (!format->lines && !format->columns(r, cells, count))
        return false;
    r->column_count = format->lines ? 1 : count;
    r->format = format;
    if (format->lines || trace_reader_memory(r)->has_hashes)
        r->hash_block_size =
            r->options.hash_block_size ? r->options.hash_block_size : format->hash_block_size;
    return true;
}

static struct trace_reader *
reader_create(const char *name, const struct trace_reader_options *options, struct errors *errors)
{
    struct trace_reader *r = memory_zero(1, sizeof *r);
    r->options = *options;
    r->errors = errors;
    size_t size = strlen(name) + 1;
    r->name = memory_alloc(size);
    memcpy(r->name, name, size);
    return r;
}

static void buffer_make(struct trace_reader *r)
{
    r->capacity = TRACE_READER_BUFFER;
    r->buffer = memory_alloc(r->capacity + 1);
    r->at = r->end = r->line = r->buffer;
}

/* The whole file in the buffer, where that can be had. */
static bool buffer_take(struct trace_reader *r, const char *path)
{
    size_t size = 0;
    char *text = gzip_whole_read(path, &size);
    if (!text)
        return false;
    r->capacity = size;
    r->buffer = r->at = r->line = text;
    r->end = text + size;
    r->at_end = true;
    return true;
}

static struct trace_reader *reader_begin(struct trace_reader *r)
{
    if (read_header(r))
        return r;
    trace_reader_close(r);
    return NULL;
}

struct trace_reader *trace_reader_open(const char *path, const struct trace_reader_options *options,
                                       struct errors *errors)
{
    struct trace_reader *r = reader_create(path, options, errors);
    if (buffer_take(r, path))
        return reader_begin(r);
    buffer_make(r);
    errno = 0;
    r->file = gzopen(path, "rb");
    if (!r->file) {
        char message[200];
        snprintf(message, sizeof message, "cannot be opened: %s",
                 errno ? strerror(errno) : "out of memory");
        fail(r, message);
        trace_reader_close(r);
        return NULL;
    }
    gzbuffer(r->file, GZIP_BUFFER);
    return reader_begin(r);
}

struct trace_reader *trace_reader_open_memory(const char *name, const void *bytes, size_t size,
                                              const struct trace_reader_options *options,
                                              struct errors *errors)
{
    struct trace_reader *r = reader_create(name, options, errors);
    buffer_make(r);
    r->memory = bytes;
    r->memory_size = size;
    return reader_begin(r);
}

void trace_reader_close(struct trace_reader *r)
{
    if (!r)
        return;
    if (r->file)
        gzclose(r->file);
    free(r->hashes);
    free(r->seen);
    free(r->buffer);
    free(r->name);
    free(r);
}

void trace_reader_report_to(struct trace_reader *r, struct errors *errors)
{
    r->errors = errors;
}

/* ---- rows ---- */

/* Whose row it is: 1 ours, 0 another class's, −1 nobody's (rejected). */
static int row_owner(struct trace_reader *r, const struct trace_record *record)
{
    struct trace_cell name = record->class_name;
    if (!r->options.class_name || name.length == 0 ||
        trace_reader_cell_is(name, r->options.class_name))
        return 1;
    const char *const *other = r->options.other_classes;
    for (; other && *other; other++)
        if (trace_reader_cell_is(name, *other))
            return 0;
    trace_reader_reject(r, name.text,
                        "class '%.*s' is no workload that reads this file (this one is '%s')",
                        name.length > 60 ? 60 : (int)name.length, name.text, r->options.class_name);
    return -1;
}

/* The stamp relative to time zero, in order and within the longest horizon. */
static bool row_time(struct trace_reader *r, const struct trace_record *record, int64_t *arrival_ps)
{
    bool is_unix = record->seconds >= r->format->zero_from_s;
    if (!r->has_zero) {
        r->has_zero = true;
        r->is_unix = is_unix;
        if (is_unix) {
            r->zero_s = record->seconds;
            r->zero_ps = record->fraction_ps;
        }
    } else if (is_unix != r->is_unix) {
        return trace_reader_reject(r, r->line,
                                   "mixed clocks: this stamp is %s, the first row's is %s",
                                   is_unix ? "a Unix time" : "counted from the start",
                                   is_unix ? "counted from the start" : "a Unix time");
    }
    int64_t seconds = record->seconds - r->zero_s;
    if (seconds > HORIZON_MAX_PS / PS_PER_SECOND)
        return trace_reader_reject(r, r->line, "the stamp is more than 100 days after the start");
    int64_t ps = seconds < 0 ? -1 : seconds * PS_PER_SECOND + record->fraction_ps - r->zero_ps;
    if (ps < r->last_ps)
        return trace_reader_reject(r, r->line, "the stamp is earlier than that of the row before");
    *arrival_ps = r->last_ps = ps;
    return true;
}

/* The line in hand as cells, as many as there are columns. */
static bool row_cells(struct trace_reader *r, struct trace_cell *cells)
{
    if (r->length == 0)
        return trace_reader_reject(r, r->line, "the line is empty");
    if (r->format->lines) {
        cells[0] = (struct trace_cell){r->line, r->length};
        return true;
    }
    size_t count = split_cells(r, cells, r->column_count);
    if (count == r->column_count)
        return true;
    struct trace_cell last = cells[r->column_count - 1];
    const char *at = count > r->column_count ? last.text + last.length : r->line + r->length;
    return trace_reader_reject(r, at, "the row has %zu fields, the header %zu", count,
                               r->column_count);
}

enum trace_status trace_reader_next(struct trace_reader *r, struct trace_row *row)
{
    struct trace_cell cells[TRACE_READER_COLUMNS_MAX];
    while (next_line(r)) {
        struct trace_record record = {.session = -1, .class_name = no_cell};
        r->hash_count = 0;
        if (!row_cells(r, cells) || !r->format->parse(r, cells, &record))
            continue;
        /* Another class's hash_ids may be of blocks of another size. */
        int owner = row_owner(r, &record);
        if (owner < 0 || (owner == 1 && !hashes_check(r, &record)) ||
            !row_time(r, &record, &row->arrival_ps))
            continue;
        if (owner == 0)
            continue;
        row->prompt_tokens = record.prompt_tokens;
        row->output_tokens = record.output_tokens;
        row->session = record.session;
        row->turn = record.turn;
        row->hash_ids = r->hashes;
        row->hash_count = r->hash_count;
        row->hash_full = hashes_full(r, &record);
        return TRACE_ROW;
    }
    return r->failed ? TRACE_FAILED : TRACE_END;
}

uint64_t trace_reader_failed_calls(const struct trace_reader *r)
{
    return r->failed_calls;
}

int64_t trace_reader_hash_block_size(const struct trace_reader *r)
{
    return r->hash_block_size;
}

uint64_t trace_reader_bad_rows(const struct trace_reader *r)
{
    return r->bad_rows;
}

bool trace_reader_start(const struct trace_reader *r, int64_t *unix_s)
{
    *unix_s = r->zero_s;
    return r->zero_s > 0;
}
