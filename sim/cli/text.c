#include "sim/cli/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

static struct text undefined(void)
{
    return (struct text){TEXT_UNDEFINED};
}

/* Digits of a number (sign and fraction allowed) with commas between thousands. */
static struct text grouped(const char *digits)
{
    struct text text = {{0}};
    size_t out = 0, sign = digits[0] == '-';
    size_t whole = strspn(digits + sign, "0123456789");
    for (size_t i = 0; digits[i] != '\0' && out + 2 < sizeof text.s; i++) {
        size_t left = i >= sign && i < sign + whole ? sign + whole - i : 0;
        if (left > 0 && left % 3 == 0 && i > sign)
            text.s[out++] = ',';
        text.s[out++] = digits[i];
    }
    return text;
}

struct text text_count(uint64_t value)
{
    char digits[TEXT_BYTES];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return grouped(digits);
}

struct text text_real(double value, int decimals)
{
    if (isnan(value))
        return undefined();
    char digits[TEXT_BYTES];
    if (fabs(value) >= 1e15)
        snprintf(digits, sizeof digits, "%.6g", value);
    else
        snprintf(digits, sizeof digits, "%.*f", decimals, value);
    return grouped(digits);
}

struct text text_short(double value)
{
    double size = fabs(value);
    int decimals = size < 1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
    return text_real(value, value == 0 ? 0 : decimals);
}

struct text text_plain(double value)
{
    struct text text;
    snprintf(text.s, sizeof text.s, "%.6g", value);
    return isnan(value) ? undefined() : text;
}

struct text text_seconds(int64_t ps)
{
    return ps == TIME_NONE ? undefined() : text_short(time_seconds(ps));
}

struct text text_millis(int64_t ps)
{
    return ps == TIME_NONE ? undefined() : text_short(1e3 * time_seconds(ps));
}

struct text text_percent(double share, int decimals)
{
    return text_real(100 * share, decimals);
}

struct text text_share(double share, int decimals)
{
    double scale = 100 * pow(10, decimals);
    /* A share of counts such as 0.29 may lie an ulp below its own decimal text. */
    return text_real(100 * floor(share * scale + 1e-9) / scale, decimals);
}

struct text text_duration(int64_t ps)
{
    struct text text;
    char buffer[UNITS_TEXT_MAX];
    if (ps > PS_PER_SECOND && ps % (PS_PER_SECOND / 1000) == 1)
        ps--;
    snprintf(text.s, sizeof text.s, "%s", units_text_time(ps, buffer));
    return text;
}

struct text text_stamp(int64_t unix_s)
{
    struct text text = {{0}};
    time_t seconds = (time_t)unix_s;
    struct tm utc;
    if (gmtime_r(&seconds, &utc))
        strftime(text.s, sizeof text.s, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80; /* not a continuation byte of UTF-8 */
    return width;
}

static void spaces(FILE *out, size_t width, const char *text)
{
    for (size_t i = text_width(text); i < width; i++)
        fputc(' ', out);
}

void text_right(FILE *out, size_t width, const char *text)
{
    spaces(out, width, text);
    fputs(text, out);
}

void text_left(FILE *out, size_t width, const char *text)
{
    fputs(text, out);
    spaces(out, width, text);
}

bool text_styled(FILE *out)
{
    const char *terminal = getenv("TERM"), *plain = getenv("NO_COLOR");
    return isatty(fileno(out)) && !(plain && plain[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

void text_table_init(struct text_table *table, size_t columns, size_t head_rows, size_t left)
{
    *table = (struct text_table){.columns = columns, .head_rows = head_rows, .left = left};
}

void text_table_free(struct text_table *table)
{
    free(table->cells);
    free(table->ruled);
}

struct text *text_table_row(struct text_table *table, bool ruled)
{
    if (table->rows == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 32;
        table->cells =
            memory_grow(table->cells, table->capacity * table->columns * sizeof *table->cells);
        table->ruled = memory_grow(table->ruled, table->capacity * sizeof *table->ruled);
    }
    struct text *row = table->cells + table->rows * table->columns;
    memset(row, 0, table->columns * sizeof *row);
    table->ruled[table->rows++] = ruled;
    return row;
}

static void rule_print(FILE *out, size_t width)
{
    for (size_t i = 0; i < width; i++)
        fputs("─", out);
    fputc('\n', out);
}

void text_table_print(const struct text_table *table, FILE *out)
{
    enum { GAP = 2 };
    size_t *widths = memory_zero(table->columns, sizeof *widths);
    size_t total = 0;
    for (size_t c = 0; c < table->columns; c++) {
        for (size_t r = 0; r < table->rows; r++) {
            size_t width = text_width(table->cells[r * table->columns + c].s);
            widths[c] = width > widths[c] ? width : widths[c];
        }
        total += widths[c] + (c ? GAP : 0);
    }
    bool styled = text_styled(out);
    for (size_t r = 0; r < table->rows; r++) {
        if (table->ruled[r])
            rule_print(out, total);
        fputs(styled && r < table->head_rows ? "\033[1m" : "", out);
        const struct text *row = table->cells + r * table->columns;
        size_t used = table->columns; /* no blanks at the end of a line */
        while (used > 0 && row[used - 1].s[0] == '\0')
            used--;
        for (size_t c = 0; c < used; c++) {
            const char *cell = row[c].s;
            fputs(c ? "  " : "", out);
            if (c >= table->left)
                text_right(out, widths[c], cell);
            else if (c + 1 < used)
                text_left(out, widths[c], cell);
            else
                fputs(cell, out);
        }
        fputs(styled && r < table->head_rows ? "\033[0m\n" : "\n", out);
    }
    free(widths);
}
