/* Our own trace format: arrival_s,prompt_tokens,output_tokens[,class][,session][,turn], arrivals in
 * exact decimal seconds since the scenario's start. Stamps from 10⁹ on are Unix times: then the
 * first row is time zero. Empty class, session and turn cells mean none. */
#include "sim/workload/trace_reader.h"

#include <string.h>

static const char *const names[] = {"arrival_s", "prompt_tokens", "output_tokens"};
static const char *const optional_names[] = {"class", "session", "turn", "hash_ids", NULL};
enum { COLUMNS = 3, OPTIONAL_CLASS = 0, OPTIONAL_SESSION, OPTIONAL_TURN, OPTIONAL_HASH_IDS };
#define UNIX_STAMP_MIN_S INT64_C(1000000000)

static bool fleetsim_claims(const struct trace_cell *cells, size_t count)
{
    (void)count;
    return trace_reader_cell_is(cells[0], names[0]);
}

static bool optional_column(struct trace_reader *reader, struct trace_cell cell, size_t index)
{
    struct trace_memory *memory = trace_reader_memory(reader);
    for (size_t i = 0; optional_names[i]; i++) {
        if (!trace_reader_cell_is(cell, optional_names[i]))
            continue;
        if (i == OPTIONAL_HASH_IDS)
            return trace_reader_reject(reader, cell.text,
                                       "hash_ids needs the prefix cache, which is designed but not "
                                       "built yet");
        if (memory->optional[i] >= 0)
            return trace_reader_reject(reader, cell.text, "the column %s is there twice",
                                       optional_names[i]);
        memory->optional[i] = (int8_t)index;
        return true;
    }
    char word[40];
    size_t length = cell.length < sizeof word - 1 ? cell.length : sizeof word - 1;
    memcpy(word, cell.text, length);
    word[length] = '\0';
    const char *near = errors_nearest(word, optional_names);
    return trace_reader_reject(reader, cell.text, "unknown column '%s'%s%s%s", word,
                               near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool fleetsim_columns(struct trace_reader *reader, const struct trace_cell *cells,
                             size_t count)
{
    struct trace_memory *memory = trace_reader_memory(reader);
    memset(memory->optional, -1, sizeof memory->optional);
    for (size_t i = 0; i < COLUMNS && i < count; i++)
        if (!trace_reader_cell_is(cells[i], names[i]))
            return trace_reader_reject(reader, cells[i].text, "column %zu of a trace is %s", i + 1,
                                       names[i]);
    if (count < COLUMNS)
        return trace_reader_reject(reader, cells[count - 1].text, "the column %s is missing",
                                   names[count]);
    for (size_t i = COLUMNS; i < count; i++)
        if (!optional_column(reader, cells[i], i))
            return false;
    return true;
}

static bool parse_seconds(struct trace_reader *reader, struct trace_cell cell,
                          struct trace_record *record)
{
    const char *point = memchr(cell.text, '.', cell.length);
    struct trace_cell whole = {cell.text, point ? (size_t)(point - cell.text) : cell.length};
    record->fraction_ps = 0;
    if (whole.length && whole.text[0] == '-')
        return trace_reader_reject(reader, cell.text, "arrival_s is negative");
    bool digits = whole.length > 0;
    int64_t seconds = 0;
    for (size_t i = 0; i < whole.length && digits; i++) {
        unsigned digit = (unsigned)(unsigned char)whole.text[i] - '0';
        digits = digit <= 9;
        if (seconds < INT64_C(1000000000000))
            seconds = seconds * 10 + digit;
    }
    if (!digits)
        return trace_reader_reject(reader, cell.text,
                                   cell.length ? "arrival_s is not a decimal number of seconds"
                                               : "arrival_s is empty");
    record->seconds = seconds;
    if (!point)
        return true;
    struct trace_cell decimals = {point + 1, cell.length - whole.length - 1};
    return trace_reader_fraction(reader, decimals, "arrival_s", &record->fraction_ps);
}

static bool parse_optional(struct trace_reader *reader, const struct trace_cell *cells,
                           struct trace_record *record)
{
    const int8_t *optional = trace_reader_memory(reader)->optional;
    if (optional[OPTIONAL_CLASS] >= 0) {
        record->class_name = cells[optional[OPTIONAL_CLASS]];
        if (memchr(record->class_name.text, '\0', record->class_name.length))
            return trace_reader_reject(reader, record->class_name.text, "class holds a NUL byte");
    }
    uint64_t value = 0;
    if (optional[OPTIONAL_SESSION] >= 0 && cells[optional[OPTIONAL_SESSION]].length) {
        if (!trace_reader_whole(reader, cells[optional[OPTIONAL_SESSION]], "session", INT64_MAX,
                                &value))
            return false;
        record->session = (int64_t)value;
    }
    if (optional[OPTIONAL_TURN] >= 0 && cells[optional[OPTIONAL_TURN]].length) {
        if (!trace_reader_whole(reader, cells[optional[OPTIONAL_TURN]], "turn", UINT32_MAX, &value))
            return false;
        record->turn = (uint32_t)value;
    }
    return true;
}

static bool fleetsim_parse(struct trace_reader *reader, const struct trace_cell *cells,
                           struct trace_record *record)
{
    return parse_seconds(reader, cells[0], record) &&
           trace_reader_tokens(reader, cells[1], names[1], 1, &record->prompt_tokens) &&
           trace_reader_tokens(reader, cells[2], names[2], 0, &record->output_tokens) &&
           parse_optional(reader, cells, record);
}

const struct trace_format trace_fleetsim_format = {
    .name = "fleetsim",
    .header = "arrival_s,prompt_tokens,output_tokens[,class,session,turn]",
    .claims = fleetsim_claims,
    .columns = fleetsim_columns,
    .parse = fleetsim_parse,
    .zero_from_s = UNIX_STAMP_MIN_S,
};
