/* Any bytes as a trace file, from memory: the first byte chooses the format asked for, what a bad
 * row does and whose rows are wanted, the rest is the file. What comes out must be usable as it is:
 * in order, within the longest horizon, with token counts in range. */
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/time.h"
#include "sim/workload/lengths.h"
#include "sim/workload/trace_reader.h"
#include "tests/fuzz/fuzz.h"

static void read_all(const char *bytes, size_t size, const struct trace_reader_options *options)
{
    struct errors errors;
    errors_init(&errors);
    struct trace_reader *reader =
        trace_reader_open_memory("fuzz.csv", bytes, size, options, &errors);
    check((reader == NULL) == (errors.error_count > 0));
    if (reader) {
        struct trace_row row;
        enum trace_status status;
        int64_t last_ps = 0;
        uint64_t hashes = 0;
        while ((status = trace_reader_next(reader, &row)) == TRACE_ROW) {
            check(row.arrival_ps >= last_ps && row.arrival_ps <= HORIZON_MAX_PS + PS_PER_SECOND);
            check(row.prompt_tokens >= 1 && row.prompt_tokens <= LENGTHS_TOKENS_MAX);
            check(row.output_tokens <= LENGTHS_TOKENS_MAX);
            check(row.session >= -1);
            check(row.hash_count <= TRACE_READER_HASHES_MAX);
            for (size_t i = 0; i < row.hash_count; i++)
                hashes ^= row.hash_ids[i]; /* readable, every one */
            last_ps = row.arrival_ps;
        }
        check(status == TRACE_END);
        check(errors.error_count == (options->skip_bad ? 0 : trace_reader_bad_rows(reader)));
        check(trace_reader_hash_block_size(reader) > 0 || hashes == 0);
        int64_t start_s;
        check(!trace_reader_start(reader, &start_s) || start_s > 0);
    }
    trace_reader_close(reader);
    for (size_t i = 0; i < errors.count; i++)
        check(errors.items[i].message[0] && strcmp(errors.items[i].pos.file, "fuzz.csv") == 0);
    errors_free(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const others[] = {"code", "b", NULL};
    if (size == 0)
        return 0;
    struct trace_reader_options options = {
        .skip_bad = data[0] & 1,
        .class_name = data[0] & 2 ? "chat" : NULL,
        .other_classes = data[0] & 4 ? others : NULL,
    };
    if (data[0] & 8)
        options.format = trace_reader_formats[data[0] >> 4 & 3];
    if (data[0] & 64)
        options.hash_block_size = 16;
    read_all((const char *)data + 1, size - 1, &options);
    return 0;
}
