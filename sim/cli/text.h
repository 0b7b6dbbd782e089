/* Numbers and tables for people. A number comes back by value, so that several fit in one printf:
 *
 *     printf("%s of %s\n", text_count(a).s, text_count(b).s); */
#ifndef FLEETSIM_SIM_CLI_TEXT_H
#define FLEETSIM_SIM_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_BYTES = 48 };
struct text {
    char s[TEXT_BYTES];
};

#define TEXT_UNDEFINED "–" /* what an undefined number is shown as */

/* "15,000,000". */
struct text text_count(uint64_t value);
/* "1,234.50" with that many decimals; NaN is undefined. */
struct text text_real(double value, int decimals);
/* About four significant digits, at most four decimals: "0.0317", "1.482", "12,345". */
struct text text_short(double value);
/* The shortest text of a number of the user's: "95", "0.7". */
struct text text_plain(double value);
/* A duration in s or ms as text_short; TIME_NONE is undefined. */
struct text text_seconds(int64_t ps);
struct text text_millis(int64_t ps);
/* 0.9931 as "99.31" with that many decimals, for a column headed %. */
struct text text_percent(double share, int decimals);
/* The same, cut off instead of rounded: what is short of all never shows as 100. */
struct text text_share(double share, int decimals);
/* A duration as a user would write it: "24 h", "90 s"; the picosecond by which a trace's horizon is
 * behind its last arrival is left out. */
struct text text_duration(int64_t ps);
/* "2026-03-02T00:00:00Z". */
struct text text_stamp(int64_t unix_s);

/* Columns that text takes on a terminal (UTF-8, no wide characters). */
size_t text_width(const char *text);
/* Spaces, then text, to a width; or text, then spaces. */
void text_right(FILE *out, size_t width, const char *text);
void text_left(FILE *out, size_t width, const char *text);
/* Whether out is a terminal that may be given bold type (NO_COLOR forbids it). */
bool text_styled(FILE *out);

/* A table of cells whose columns are as wide as their widest cell. */
struct text_table {
    size_t columns, rows, capacity;
    struct text *cells; /* owned; [capacity · columns] */
    bool *ruled;        /* owned; a line above the row */
    size_t head_rows;   /* the first rows are the head */
    size_t left;        /* the first columns are left-aligned */
};
void text_table_init(struct text_table *table, size_t columns, size_t head_rows, size_t left);
void text_table_free(struct text_table *table);
/* A new row of empty cells: valid until the next one. */
struct text *text_table_row(struct text_table *table, bool ruled);
void text_table_print(const struct text_table *table, FILE *out);

#endif
