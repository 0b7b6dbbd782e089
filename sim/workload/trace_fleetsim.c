/* Our own trace format: arrival_s,prompt_tokens,output_tokens[,class][,session][,turn][,hash_ids],
 * arrivals in exact decimal seconds since the scenario's start. Stamps from 10⁹ on are Unix times:
 * then the first row is time zero. Empty class, session, turn and hash_ids cells mean none.
 * hash_ids are whole numbers of 64 bits with one space between them, of the full blocks of prompt
 * and answer from the first as far as they are known. */
#include "sim/workload/trace_reader.h"

#include <string.h>

static const char *const names[] = {"arrival_s", "prompt_tokens", "output_tokens"};
static const char *const optional_names[] = {"class", "session", "turn", "hash_ids", NULL};
enum { COLUMNS = 3, OPTIONAL_CLASS = 0, OPTIONAL_SESSION, OPTIONAL_TURN, OPTIONAL_HASH_IDS };

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
        if (i == OPTIONAL_HASH_IDS && trace_reader_options_of(reader)->hash_block_size == 0)
            return trace_reader_reject(reader, cell.text,
                                       "hash_ids need hash_block_size: tokens that one of them "
                                       "stands for");
        memory->has_hashes |= i == OPTIONAL_HASH_IDS;
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

static bool parse_hashes(struct trace_reader *reader, struct trace_cell cell)
{
    for (size_t at = 0; at < cell.length;) {
        const char *space = memchr(cell.text + at, ' ', cell.length - at);
        size_t end = space ? (size_t)(space - cell.text) : cell.length;
        struct trace_cell id = {cell.text + at, end - at};
        uint64_t value;
        if (!trace_reader_whole(reader, id, "hash_ids", UINT64_MAX, &value) ||
            !trace_reader_hash_add(reader, id.text, value))
            return false;
        at = end + 1;
        if (at == cell.length)
            return trace_reader_reject(reader, cell.text + end, "hash_ids end in a space");
    }
    return true;
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
    return optional[OPTIONAL_HASH_IDS] < 0 ||
           parse_hashes(reader, cells[optional[OPTIONAL_HASH_IDS]]);
}

static bool fleetsim_parse(struct trace_reader *reader, const struct trace_cell *cells,
                           struct trace_record *record)
{
    return trace_reader_seconds(reader, cells[0], names[0], record) &&
           trace_reader_tokens(reader, cells[1], names[1], 1, &record->prompt_tokens) &&
           trace_reader_tokens(reader, cells[2], names[2], 0, &record->output_tokens) &&
           parse_optional(reader, cells, record);
}

const struct trace_format trace_fleetsim_format = {
    .name = "fleetsim",
    .header = "arrival_s,prompt_tokens,output_tokens[,class,session,turn,hash_ids]",
    .hash_open = true,
    .claims = fleetsim_claims,
    .columns = fleetsim_columns,
    .parse = fleetsim_parse,
    .zero_from_s = TRACE_READER_UNIX_MIN_S,
};
