#include "sim/cli/paired.h"

#include <math.h>

static const double *values_of(const struct paired *p, size_t variant, size_t headline)
{
    return p->values[variant] + headline * p->replications;
}

static struct interval_range range_of(const struct paired *p, size_t variant, size_t headline)
{
    return headline_range(&headline_table[headline], values_of(p, variant, headline),
                          p->replications);
}

/* From the first variant. */
static struct interval_pair difference_of(const struct paired *p, size_t variant, size_t headline)
{
    return interval_paired(values_of(p, 0, headline), values_of(p, variant, headline),
                           p->replications);
}

/* "+1.25 ± 0.31 (×3.4)": the last is how many times wider it would be unpaired. */
static struct text difference_text(const struct headline *h, const struct interval_pair *pair)
{
    struct text text = headline_number(h, pair->mean);
    double gain = interval_pair_gain(pair);
    if (isnan(pair->mean))
        return text;
    const char *sign = pair->mean > 0 ? "+" : "";
    if (isnan(gain))
        snprintf(text.s, sizeof text.s, "%s%.14s ± %.14s", sign, headline_number(h, pair->mean).s,
                 headline_number(h, pair->half).s);
    else
        snprintf(text.s, sizeof text.s, "%s%.12s ± %.12s (×%.8s)", sign,
                 headline_number(h, pair->mean).s, headline_number(h, pair->half).s,
                 text_real(gain, 1).s);
    return text;
}

/* Headings and units of a table whose columns are the variants from first on. */
static void table_begin(struct text_table *table, const struct paired *p, size_t first)
{
    text_table_init(table, 2 + p->count - first, 1, 2);
    struct text *head = text_table_row(table, false);
    for (size_t i = first; i < p->count; i++)
        snprintf(head[2 + i - first].s, sizeof head->s, "%s", p->names[i]);
}

static struct text *row_begin(struct text_table *table, size_t headline)
{
    struct text *row = text_table_row(table, headline == 0);
    snprintf(row[0].s, sizeof row[0].s, "%s", headline_table[headline].name);
    snprintf(row[1].s, sizeof row[1].s, "%s", headline_table[headline].unit);
    return row;
}

void paired_print(const struct paired *p, FILE *out)
{
    struct text_table table;
    fprintf(out, "95 %% intervals over %zu replications\n", p->replications);
    table_begin(&table, p, 0);
    for (size_t h = 0; h < HEADLINE_COUNT; h++) {
        struct text *row = row_begin(&table, h);
        for (size_t i = 0; i < p->count; i++) {
            struct interval_range range = range_of(p, i, h);
            row[2 + i] = headline_text(&headline_table[h], &range);
        }
    }
    text_table_print(&table, out);
    text_table_free(&table);
    fputs(HEADLINE_NOTE, out);

    fprintf(out, "\nDifferences from %s, paired by replication\n", p->names[0]);
    table_begin(&table, p, 1);
    for (size_t h = 0; h < HEADLINE_COUNT; h++) {
        struct text *row = row_begin(&table, h);
        for (size_t i = 1; i < p->count; i++) {
            struct interval_pair pair = difference_of(p, i, h);
            row[1 + i] = difference_text(&headline_table[h], &pair);
        }
    }
    text_table_print(&table, out);
    text_table_free(&table);
    fputs(
        "Mean difference, by Student's t; (×k): without the pairing the interval would be k times "
        "as wide.\n",
        out);
}

void paired_json(struct json *json, const struct paired *p, size_t variant)
{
    json_out_object(json, "intervals");
    for (size_t h = 0; h < HEADLINE_COUNT; h++) {
        struct interval_range range = range_of(p, variant, h);
        headline_json(json, &headline_table[h], &range);
    }
    json_out_object_end(json);
    if (variant == 0)
        return;
    json_out_object(json, "differences");
    for (size_t h = 0; h < HEADLINE_COUNT; h++) {
        struct interval_pair pair = difference_of(p, variant, h);
        json_out_object(json, headline_table[h].key);
        json_out_real(json, "mid", pair.mean);
        json_out_real(json, "low", pair.mean - pair.half);
        json_out_real(json, "high", pair.mean + pair.half);
        json_out_real(json, "unpaired_half", pair.unpaired);
        json_out_real(json, "gain", interval_pair_gain(&pair));
        json_out_object_end(json);
    }
    json_out_object_end(json);
}
