/* BurstGPT (HPMLL/BurstGPT): Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type;
 * the third file puts Session ID and Elapsed time after Timestamp. Columns are found by name.
 * Timestamps are seconds since midnight of the first day on a local clock. Calls with 0 response
 * tokens failed: they are counted and passed over, never run as answers of no token. */
#include "sim/workload/trace_reader.h"

#include <string.h>

static const char *const names[] = {"Timestamp", "Request tokens", "Response tokens", "Session ID"};
enum { STAMP, REQUEST, RESPONSE, SESSION, NAMES };

static bool burstgpt_claims(const struct trace_cell *cells, size_t count)
{
    (void)count;
    return trace_reader_cell_is(cells[0], names[STAMP]);
}

static bool burstgpt_columns(struct trace_reader *reader, const struct trace_cell *cells,
                             size_t count)
{
    struct trace_memory *memory = trace_reader_memory(reader);
    memset(memory->optional, -1, sizeof memory->optional);
    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < NAMES; n++) {
            if (!trace_reader_cell_is(cells[i], names[n]))
                continue;
            if (memory->optional[n] >= 0)
                return trace_reader_reject(reader, cells[i].text, "the column %s is there twice",
                                           names[n]);
            memory->optional[n] = (int8_t)i;
        }
    }
    for (size_t n = 0; n < SESSION; n++)
        if (memory->optional[n] < 0)
            return trace_reader_reject(reader, cells[0].text, "the column %s is missing", names[n]);
    return true;
}

/* A session's number; where it is a word, 63 bits of it (FNV-1a). */
static int64_t session_of(struct trace_cell cell)
{
    uint64_t hash = UINT64_C(14695981039346656037), number = 0;
    bool digits = cell.length <= 18;
    for (size_t i = 0; i < cell.length; i++) {
        unsigned char c = (unsigned char)cell.text[i];
        hash = (hash ^ c) * UINT64_C(1099511628211);
        digits = digits && c >= '0' && c <= '9';
        number = number * 10 + (c - '0');
    }
    return cell.length == 0 ? -1 : (int64_t)((digits ? number : hash) & INT64_MAX);
}

static bool burstgpt_parse(struct trace_reader *reader, const struct trace_cell *cells,
                           struct trace_record *record)
{
    const int8_t *at = trace_reader_memory(reader)->optional;
    if (!trace_reader_seconds(reader, cells[at[STAMP]], names[STAMP], record) ||
        !trace_reader_tokens(reader, cells[at[RESPONSE]], names[RESPONSE], 0,
                             &record->output_tokens))
        return false;
    uint32_t least = record->output_tokens ? 1 : 0;
    if (!trace_reader_tokens(reader, cells[at[REQUEST]], names[REQUEST], least,
                             &record->prompt_tokens))
        return false;
    if (at[SESSION] >= 0)
        record->session = session_of(cells[at[SESSION]]);
    return record->output_tokens ? true : trace_reader_pass_failed(reader);
}

const struct trace_format trace_burstgpt_format = {
    .name = "burstgpt",
    .header = "Timestamp,…,Request tokens,Response tokens,…",
    .claims = burstgpt_claims,
    .columns = burstgpt_columns,
    .parse = burstgpt_parse,
    .zero_from_s = TRACE_READER_UNIX_MIN_S,
};
