/* What a user can get wrong is collected here as values, never stopped at the first, and printed
 * the way a compiler does:
 *
 *   scenario.yaml:12:5: error: unknown key 'ruoter', did you mean 'router'?
 *      12 |   ruoter: {policy: least_loaded}
 *         |   ^
 */
#ifndef FLEETSIM_SIM_BASE_ERRORS_H
#define FLEETSIM_SIM_BASE_ERRORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/arena.h"

/* A place in a text file. All pointers are borrowed; errors_add copies what it keeps. */
struct source_pos {
    const char *file; /* name as the user wrote it; NULL when there is none (say, an option) */
    uint32_t line;    /* from 1; 0: unknown */
    uint32_t column;  /* from 1, in bytes; 0: unknown */
    const char *text; /* the whole source line, ended by NUL or newline; NULL: do not show it */
};

/* Finds the place of a scenario value by its path ("fleet.pools[0].engine.block_size"), or of the
 * nearest enclosing value that was written. Handed down by sim/run so that a module can point at
 * what is wrong without knowing YAML. Always fills *pos. */
struct locator {
    void (*find)(void *self, const char *path, struct source_pos *pos);
    void *self;
};

enum severity { SEVERITY_WARNING, SEVERITY_ERROR };

struct error {
    enum severity severity;
    struct source_pos pos; /* owned copies */
    const char *message;
};

struct errors {
    struct arena arena;
    struct error *items; /* owned, in order of errors_print after errors_sort, else of addition */
    size_t count;        /* kept items, at most ERRORS_KEPT_MAX */
    size_t error_count;  /* all errors, also those beyond the limit */
    size_t warning_count;
};

enum { ERRORS_KEPT_MAX = 100 };

void errors_init(struct errors *errors);
void errors_free(struct errors *errors);
/* pos may be NULL. */
void errors_add(struct errors *errors, enum severity severity, const struct source_pos *pos,
                const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Stable order by file, line, column. */
void errors_sort(struct errors *errors);
/* Prints every kept item, then, where there were more, how many were left out. */
void errors_print(const struct errors *errors, FILE *out);

/* The candidate nearest to word by edit distance, or NULL if none is near enough to be a slip
 * (distance ≤ max(1, length/3), transpositions count once). names: NULL-terminated. */
const char *errors_nearest(const char *word, const char *const *names);

#endif
