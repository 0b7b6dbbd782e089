#include "sim/base/column.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/time.h"

size_t column_count(const struct column *columns)
{
    size_t count = 0;
    while (columns[count].type != COLUMN_END) {
        count++;
    }
    return count;
}

static void csv_int(int64_t value, FILE *out)
{
    fprintf(out, "%" PRId64, value);
}

/* The shortest %g that reads back to the same double. */
static void csv_double(double value, FILE *out)
{
    char text[40];
    if (isnan(value)) {
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof(text), "%.*g", precision, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, out);
}

static void csv_text(const char *text, FILE *out)
{
    if (text == NULL) {
        return;
    }
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

void column_csv_value(const struct column *column, const void *row, FILE *out)
{
    const void *at = (const char *)row + column->offset;
    char text[TIME_TEXT_MAX];
    switch (column->type) {
    case COLUMN_INT64:
        if (*(const int64_t *)at != COLUMN_INT_NONE) {
            csv_int(*(const int64_t *)at, out);
        }
        return;
    case COLUMN_UINT64:
        fprintf(out, "%" PRIu64, *(const uint64_t *)at);
        return;
    case COLUMN_INT32:
        if (*(const int32_t *)at != -1) {
            csv_int(*(const int32_t *)at, out);
        }
        return;
    case COLUMN_UINT32:
        csv_int(*(const uint32_t *)at, out);
        return;
    case COLUMN_DOUBLE:
        csv_double(*(const double *)at, out);
        return;
    case COLUMN_TIME:
        fputs(time_text(*(const int64_t *)at, text), out);
        return;
    case COLUMN_TEXT:
        csv_text(*(const char *const *)at, out);
        return;
    case COLUMN_END:
        break;
    }
    check_fail(__FILE__, __LINE__, "column type", "%d is no column type", (int)column->type);
}

void column_csv_header(const struct column *columns, FILE *out)
{
    for (size_t i = 0; columns[i].type != COLUMN_END; i++) {
        if (i > 0) {
            fputc(',', out);
        }
        fputs(columns[i].name, out);
    }
    fputc('\n', out);
}

void column_csv_row(const struct column *columns, const void *row, FILE *out)
{
    for (size_t i = 0; columns[i].type != COLUMN_END; i++) {
        if (i > 0) {
            fputc(',', out);
        }
        column_csv_value(&columns[i], row, out);
    }
    fputc('\n', out);
}
