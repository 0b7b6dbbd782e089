/* The output reference, from the same tables that the writer loops over. */
#include "sim/base/check.h"
#include "sim/trace/trace.h"

static const char *shape_text(const struct trace_table *table)
{
    switch (table->shape) {
    case TRACE_SERIES:
        return "One value per interval (`time`, with `time_bnds`) and series.";
    case TRACE_TIMES:
        return "One value per interval (`time`, with `time_bnds`).";
    case TRACE_LIST:
        return "One value per entry.";
    case TRACE_LABELS:
        return "One value per name.";
    case TRACE_SCALARS:
        return "Single values.";
    }
    check_fail(__FILE__, __LINE__, "table shape", "%d is no shape", (int)table->shape);
}

static const char *type_text(enum column_type type)
{
    switch (type) {
    case COLUMN_INT64:
        return "int64";
    case COLUMN_UINT64:
        return "uint64";
    case COLUMN_INT32:
        return "int32";
    case COLUMN_UINT32:
        return "uint32";
    case COLUMN_DOUBLE:
    case COLUMN_TIME:
        return "double";
    case COLUMN_TEXT:
        return "text";
    case COLUMN_END:
        break;
    }
    check_fail(__FILE__, __LINE__, "column type", "%d is no column type", (int)type);
}

/* A cell of a Markdown table: a bar would end it. */
static void cell_print(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
}

void trace_docs_print(const struct trace_table *tables, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct trace_table *table = &tables[i];
        fprintf(out, "### `%s`\n\n%s %s", table->group, table->doc, shape_text(table));
        if (table->dimension) {
            fprintf(out, " Dimension `%s`.", table->dimension);
        }
        fputs("\n\n| name | unit | type | definition |\n| --- | --- | --- | --- |\n", out);
        for (const struct column *c = table->columns; c->type != COLUMN_END; c++) {
            fprintf(out, "| `%s` | %s | %s | ", c->name, c->type == COLUMN_TEXT ? "" : c->unit,
                    type_text(c->type));
            cell_print(c->doc, out);
            fputs(" |\n", out);
        }
        fputc('\n', out);
    }
}
