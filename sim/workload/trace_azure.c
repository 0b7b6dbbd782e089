/* Azure's public LLM traces of 2023 and 2024: TIMESTAMP,ContextTokens,GeneratedTokens with stamps
 * like "2023-11-16 18:17:03.9799600" or "2024-05-10 00:00:00.009930+00:00", all UTC. The first row
 * is time zero. */
#include "sim/workload/trace_reader.h"

#include <string.h>

#include "sim/workload/zone.h"

static const char *const names[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
enum { COLUMNS = 3, DATE_LENGTH = 10, STAMP_LENGTH = 19 };

static bool azure_claims(const struct trace_cell *cells, size_t count)
{
    (void)count;
    return trace_reader_cell_is(cells[0], names[0]);
}

static bool azure_columns(struct trace_reader *reader, const struct trace_cell *cells, size_t count)
{
    for (size_t i = 0; i < COLUMNS && i < count; i++)
        if (!trace_reader_cell_is(cells[i], names[i]))
            return trace_reader_reject(reader, cells[i].text, "column %zu of an Azure trace is %s",
                                       i + 1, names[i]);
    if (count != COLUMNS)
        return trace_reader_reject(reader, cells[0].text, "an Azure trace has 3 columns, not %zu",
                                   count);
    trace_reader_memory(reader)->date_s = -1;
    return true;
}

/* Two digits as a number, or −1. */
static int two(const char *p)
{
    unsigned tens = (unsigned)(unsigned char)p[0] - '0', ones = (unsigned)(unsigned char)p[1] - '0';
    return tens > 9 || ones > 9 ? -1 : (int)(tens * 10 + ones);
}

/* Midnight of YYYY-MM-DD in Unix seconds, or −1; years 1970 to 9999. */
static int64_t date_seconds(const char *p)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int century = two(p), year2 = two(p + 2), month = two(p + 5), day = two(p + 8);
    if (century < 0 || year2 < 0 || month < 1 || month > 12 || day < 1 || p[4] != '-' ||
        p[7] != '-')
        return -1;
    int year = century * 100 + year2;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1970 || day > lengths[month - 1] + (month == 2 && leap))
        return -1;
    return zone_days(year, month, day) * 86400;
}

static bool parse_stamp(struct trace_reader *reader, struct trace_cell cell,
                        struct trace_record *record)
{
    static const char hint[] = "TIMESTAMP is not a time such as 2023-11-16 18:17:03.9799600";
    const char *p = cell.text;
    if (cell.length == 0)
        return trace_reader_reject(reader, p, "TIMESTAMP is empty");
    if (cell.length < STAMP_LENGTH || (p[10] != ' ' && p[10] != 'T') || p[13] != ':' ||
        p[16] != ':')
        return trace_reader_reject(reader, p, "%s", hint);
    struct trace_memory *memory = trace_reader_memory(reader);
    if (memcmp(memory->date, p, DATE_LENGTH) != 0) {
        memory->date_s = date_seconds(p);
        memcpy(memory->date, p, DATE_LENGTH);
    }
    int hour = two(p + 11), minute = two(p + 14), second = two(p + 17);
    if (memory->date_s < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 59)
        return trace_reader_reject(reader, p, "%s", hint);
    record->seconds = memory->date_s + hour * 3600 + minute * 60 + second;
    record->fraction_ps = 0;

    size_t i = STAMP_LENGTH;
    if (i < cell.length && p[i] == '.') {
        size_t start = ++i;
        while (i < cell.length && p[i] >= '0' && p[i] <= '9')
            i++;
        struct trace_cell digits = {p + start, i - start};
        if (!trace_reader_fraction(reader, digits, "TIMESTAMP", &record->fraction_ps))
            return false;
    }
    struct trace_cell zone = {p + i, cell.length - i};
    if (zone.length && !trace_reader_cell_is(zone, "Z") && !trace_reader_cell_is(zone, "+00:00"))
        return trace_reader_reject(reader, zone.text, "%s",
                                   zone.text[0] == '+' || zone.text[0] == '-'
                                       ? "TIMESTAMP must be in UTC: Z or +00:00"
                                       : hint);
    return true;
}

static bool azure_parse(struct trace_reader *reader, const struct trace_cell *cells,
                        struct trace_record *record)
{
    return parse_stamp(reader, cells[0], record) &&
           trace_reader_tokens(reader, cells[1], names[1], 1, &record->prompt_tokens) &&
           trace_reader_tokens(reader, cells[2], names[2], 0, &record->output_tokens);
}

const struct trace_format trace_azure_format = {
    .name = "azure",
    .header = "TIMESTAMP,ContextTokens,GeneratedTokens",
    .claims = azure_claims,
    .columns = azure_columns,
    .parse = azure_parse,
    .zero_from_s = 0,
};
