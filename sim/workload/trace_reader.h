/* Reads request traces row by row, plain or gzip, never the whole file. One file per format; the
 * first line says which it is. A bad row is reported with file, line, column and caret, or counted
 * when the scenario says so. */
#ifndef FLEETSIM_SIM_WORKLOAD_TRACE_READER_H
#define FLEETSIM_SIM_WORKLOAD_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/errors.h"

enum {
    TRACE_READER_LINE_MAX = 1 << 22,    /* bytes in one line */
    TRACE_READER_BUFFER = 1 << 18,      /* bytes read ahead; more for a longer line */
    TRACE_READER_COLUMNS_MAX = 16,      /* cells in one line */
    TRACE_READER_SHOWN_LINE_MAX = 1000, /* longer lines are reported without their text */
    TRACE_READER_HASHES_MAX = 1 << 20   /* hash_ids in one row */
};
/* Stamps from here on are Unix times; smaller ones count from the trace's start. */
#define TRACE_READER_UNIX_MIN_S INT64_C(1000000000)

/* A piece of the line in hand; not NUL-terminated. */
struct trace_cell {
    const char *text;
    size_t length;
};

/* One row as its format understands it. */
struct trace_record {
    int64_t seconds;     /* of the stamp, ≥ 0: Unix time, or since the scenario's start */
    int64_t fraction_ps; /* 0 … 10¹² − 1 */
    uint32_t prompt_tokens, output_tokens;
    uint32_t turn;                /* 0 when absent */
    int64_t session;              /* −1 when absent */
    struct trace_cell class_name; /* length 0: absent */
};

/* One row as an arrival. */
struct trace_row {
    int64_t arrival_ps; /* since time zero (trace_reader_zero), before any scaling */
    uint32_t prompt_tokens, output_tokens;
    uint32_t turn;
    int64_t session;
    const uint64_t *hash_ids; /* of the prompt's blocks from its first, and where the format has it
                                 of the answer's behind them; the last of a prompt perhaps partial;
                                 until the next row */
    size_t hash_count;
    size_t hash_full; /* of them, from the first, those of full blocks */
};

struct trace_reader;

struct trace_format {
    const char *name;        /* "azure", "fleetsim" */
    const char *header;      /* for messages */
    bool lines;              /* no header: every line is a row and comes to parse as one cell */
    int64_t hash_block_size; /* of hash_ids, unless the user says otherwise; 0: the user must */
    bool hash_open;          /* hash_ids may end early, what is behind not being known, and may go
                                on through the answer; else they are the prompt's, all of them */
    /* Whether a first line with these cells is meant to be of this format. */
    bool (*claims)(const struct trace_cell *cells, size_t count);
    /* Checks the header; false after trace_reader_reject. */
    bool (*columns)(struct trace_reader *reader, const struct trace_cell *cells, size_t count);
    /* Reads a row that has as many cells as the header; false after trace_reader_reject. */
    bool (*parse)(struct trace_reader *reader, const struct trace_cell *cells,
                  struct trace_record *record);
    /* The first row's stamp is time zero if it is at least this many seconds. Where that is
     * TRACE_READER_UNIX_MIN_S, no row may be on the other clock. */
    int64_t zero_from_s;
};
extern const struct trace_format trace_azure_format;
extern const struct trace_format trace_fleetsim_format;
extern const struct trace_format trace_mooncake_format;
extern const struct trace_format trace_burstgpt_format;
/* NULL-terminated. */
extern const struct trace_format *const trace_reader_formats[];

struct trace_reader_options {
    const struct trace_format *format; /* NULL: by the header */
    bool skip_bad;
    int64_t hash_block_size; /* tokens that one hash_id stands for; 0: not said */
    /* The class whose rows are wanted, and the others that read the same file and so own theirs;
     * NULL-terminated. class_name NULL: every row. */
    const char *class_name;
    const char *const *other_classes;
};

enum trace_status { TRACE_ROW, TRACE_END, TRACE_FAILED };

struct trace_reader *trace_reader_open(const char *path, const struct trace_reader_options *options,
                                       struct errors *errors);
/* The same over bytes in memory (borrowed until close; not decompressed); name stands for the file
 * in messages. */
struct trace_reader *trace_reader_open_memory(const char *name, const void *bytes, size_t size,
                                              const struct trace_reader_options *options,
                                              struct errors *errors);
void trace_reader_close(struct trace_reader *reader);
/* Where errors go from now on: those given to _open need not live as long as the reader. */
void trace_reader_report_to(struct trace_reader *reader, struct errors *errors);

/* The next wanted row. A bad row is added to the errors, or counted, and reading goes on: check
 * trace_reader_bad_rows at the end. TRACE_FAILED: the file could not be read on (reported). */
enum trace_status trace_reader_next(struct trace_reader *reader, struct trace_row *row);
/* Bad rows so far, reported or skipped. */
uint64_t trace_reader_bad_rows(const struct trace_reader *reader);
/* Failed calls so far, which are no requests: their format tells them. */
uint64_t trace_reader_failed_calls(const struct trace_reader *reader);
/* Tokens that one hash_id stands for; 0: the trace has no hash_ids. */
int64_t trace_reader_hash_block_size(const struct trace_reader *reader);
/* Unix time of the first row, whole seconds, cut off; false when stamps are not Unix times. Valid
 * once a row was returned. */
bool trace_reader_start(const struct trace_reader *reader, int64_t *unix_s);

/* ---- for the formats ---- */

/* Reports the line in hand as bad, the caret at `at` (a pointer into the line). Returns false. */
bool trace_reader_reject(struct trace_reader *reader, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A whole number of digits only, at most max. */
bool trace_reader_whole(struct trace_reader *reader, struct trace_cell cell, const char *name,
                        uint64_t max, uint64_t *value);
/* A token count: at least least, at most LENGTHS_TOKENS_MAX. */
bool trace_reader_tokens(struct trace_reader *reader, struct trace_cell cell, const char *name,
                         uint32_t least, uint32_t *value);
/* The digits after a decimal point as ps: 1 to 12 of them. */
bool trace_reader_fraction(struct trace_reader *reader, struct trace_cell digits, const char *name,
                           int64_t *fraction_ps);
const struct trace_reader_options *trace_reader_options_of(const struct trace_reader *reader);
/* A stamp in exact decimal seconds. */
bool trace_reader_seconds(struct trace_reader *reader, struct trace_cell cell, const char *name,
                          struct trace_record *record);
/* Adds a hash_id to the row in hand; false after trace_reader_reject: too many. */
bool trace_reader_hash_add(struct trace_reader *reader, const char *at, uint64_t id);
/* Passes over the line in hand as a failed call. Returns false. */
bool trace_reader_pass_failed(struct trace_reader *reader);
/* Where the format remembers its columns and last date: */
struct trace_memory {
    int8_t optional[4]; /* fleetsim: cell index of class, session, turn, hash_ids; burstgpt: of
                           Timestamp, Request tokens, Response tokens, Session ID; −1: absent */
    char date[10];      /* azure: the last date seen … */
    int64_t date_s;     /* … and its midnight in Unix seconds; −1: not a date */
    bool has_hashes;    /* there is a column hash_ids */
};
struct trace_memory *trace_reader_memory(struct trace_reader *reader);

bool trace_reader_cell_is(struct trace_cell cell, const char *text);

#endif
