/* Mooncake's traces (kvcache-ai/Mooncake): one JSON object per line with timestamp (ms),
 * input_length, output_length and hash_ids, whole numbers of 64 bits, one for each block of 512
 * tokens. An id stands for its block together with all before it, and ids are numbered in order of
 * first appearance: within a row they rise. Other keys are passed over. A parser of its own,
 * because an error names the column and a trace has millions of lines. */
#include "sim/workload/trace_reader.h"

#include <string.h>

enum { HASH_BLOCK_SIZE = 512, DEPTH_MAX = 32 };

struct scan {
    struct trace_reader *reader; /* borrowed */
    const char *at, *end;        /* of the line */
};

static const char *const keys[] = {"timestamp", "input_length", "output_length", "hash_ids"};
enum { STAMP, INPUT, OUTPUT, HASHES, KEYS };

static bool mooncake_claims(const struct trace_cell *cells, size_t count)
{
    (void)count;
    return cells[0].length > 0 && cells[0].text[0] == '{';
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}

static bool take(struct scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool expect(struct scan *s, char c)
{
    return take(s, c) || trace_reader_reject(s->reader, s->at,
                                             "'%c' is expected here: a line is one JSON object", c);
}

/* A string; *text is what stands between its quotes. */
static bool scan_string(struct scan *s, struct trace_cell *text)
{
    if (!expect(s, '"'))
        return false;
    const char *start = s->at;
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
    *text = (struct trace_cell){start, (size_t)(s->at - start)};
    if (s->at < s->end) {
        s->at++;
        return true;
    }
    return trace_reader_reject(s->reader, start - 1, "the string does not end");
}

/* Up to the next character that ends a number or word. */
static struct trace_cell scan_word(struct scan *s)
{
    skip_space(s);
    const char *start = s->at;
    while (s->at < s->end && !memchr(",]} \t:[{\"", *s->at, 9))
        s->at++;
    return (struct trace_cell){start, (size_t)(s->at - start)};
}

/* A value of a key that is not ours. */
static bool skip_value(struct scan *s)
{
    int depth = 0;
    struct trace_cell text;
    do {
        skip_space(s);
        char c = s->at < s->end ? *s->at : '\0';
        if (c == '"') {
            if (!scan_string(s, &text))
                return false;
        } else if (c == '[' || c == '{') {
            depth++;
            s->at++;
        } else if (depth && (c == ']' || c == '}' || c == ',' || c == ':')) {
            depth -= c == ']' || c == '}';
            s->at++;
        } else if (scan_word(s).length == 0) {
            return trace_reader_reject(s->reader, s->at, "a value is expected here");
        }
    } while (depth > 0 && depth < DEPTH_MAX && s->at < s->end);
    return depth == 0 || trace_reader_reject(s->reader, s->at, "the value does not end");
}

/* Milliseconds, with decimals or without. */
static bool scan_stamp(struct scan *s, struct trace_record *record)
{
    struct trace_cell cell = scan_word(s);
    const char *point = memchr(cell.text, '.', cell.length);
    struct trace_cell whole = {cell.text, point ? (size_t)(point - cell.text) : cell.length};
    if (whole.length && whole.text[0] == '-')
        return trace_reader_reject(s->reader, cell.text, "timestamp is negative");
    uint64_t ms = 0;
    int64_t fraction = 0;
    if (!trace_reader_whole(s->reader, whole, keys[STAMP], INT64_MAX / 1000, &ms))
        return false;
    if (point) {
        struct trace_cell decimals = {point + 1, cell.length - whole.length - 1};
        if (decimals.length > 9)
            return trace_reader_reject(s->reader, decimals.text,
                                       "timestamp has more than 9 decimals of a ms");
        if (!trace_reader_fraction(s->reader, decimals, keys[STAMP], &fraction))
            return false;
    }
    record->seconds = (int64_t)(ms / 1000);
    record->fraction_ps = (int64_t)(ms % 1000) * INT64_C(1000000000) + fraction / 1000;
    return true;
}

static bool scan_hashes(struct scan *s)
{
    if (!expect(s, '['))
        return false;
    if (take(s, ']'))
        return true;
    uint64_t before = 0;
    for (bool first = true;; first = false) {
        struct trace_cell cell = scan_word(s);
        uint64_t id = 0;
        if (!trace_reader_whole(s->reader, cell, keys[HASHES], UINT64_MAX, &id))
            return false;
        if (!first && id <= before)
            return trace_reader_reject(s->reader, cell.text,
                                       "hash_ids must rise: a block is first seen after those "
                                       "before it");
        if (!trace_reader_hash_add(s->reader, cell.text, id))
            return false;
        before = id;
        if (take(s, ']'))
            return true;
        if (!expect(s, ','))
            return false;
    }
}

static bool scan_pair(struct scan *s, struct trace_record *record, unsigned *seen)
{
    struct trace_cell name;
    if (!scan_string(s, &name) || !expect(s, ':'))
        return false;
    unsigned key = 0;
    while (key < KEYS && !trace_reader_cell_is(name, keys[key]))
        key++;
    if (key < KEYS && (*seen >> key & 1))
        return trace_reader_reject(s->reader, name.text, "%s is there twice", keys[key]);
    *seen |= 1u << key;
    switch (key) {
    case STAMP:
        return scan_stamp(s, record);
    case INPUT:
        return trace_reader_tokens(s->reader, scan_word(s), keys[key], 1, &record->prompt_tokens);
    case OUTPUT:
        return trace_reader_tokens(s->reader, scan_word(s), keys[key], 0, &record->output_tokens);
    case HASHES:
        return scan_hashes(s);
    default:
        return skip_value(s);
    }
}

static bool mooncake_parse(struct trace_reader *reader, const struct trace_cell *cells,
                           struct trace_record *record)
{
    struct scan s = {reader, cells[0].text, cells[0].text + cells[0].length};
    unsigned seen = 0;
    if (!expect(&s, '{'))
        return false;
    do {
        if (!scan_pair(&s, record, &seen))
            return false;
    } while (take(&s, ','));
    if (!expect(&s, '}'))
        return false;
    skip_space(&s);
    if (s.at < s.end)
        return trace_reader_reject(reader, s.at, "something follows the object");
    for (unsigned key = 0; key < HASHES; key++)
        if (!(seen >> key & 1))
            return trace_reader_reject(reader, cells[0].text, "%s is missing", keys[key]);
    return true;
}

const struct trace_format trace_mooncake_format = {
    .name = "mooncake",
    .header = "{\"timestamp\": …}",
    .lines = true,
    .hash_block_size = HASH_BLOCK_SIZE,
    .claims = mooncake_claims,
    .parse = mooncake_parse,
    .zero_from_s = TRACE_READER_UNIX_MIN_S,
};
