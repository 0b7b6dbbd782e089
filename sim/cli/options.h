/* Command-line options by table: long names with nearest-name suggestions, single letters, values
 * beside or after `=`, operands anywhere, `--` ends the options. */
#ifndef FLEETSIM_SIM_CLI_OPTIONS_H
#define FLEETSIM_SIM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/arena.h"

enum options_kind {
    OPTIONS_END,  /* closes a table */
    OPTIONS_FLAG, /* bool */
    OPTIONS_TEXT, /* const char *: NULL when not given; given twice is an error */
    OPTIONS_LIST, /* struct options_list: may be given again */
};

struct options_list {
    const char **items; /* arena; borrowed texts of argv */
    size_t count;
};

struct options_spec {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum options_kind kind;
    size_t offset;     /* in the struct that is filled */
    const char *value; /* what the help calls the value: "FILE"; NULL for FLAG */
    const char *doc;   /* a few words, lower case */
};

enum options_result {
    OPTIONS_OK,
    OPTIONS_HELP, /* --help or -h was among them */
    OPTIONS_WRONG /* reported on err, every fault on a line of its own */
};

/* Fills values (zeroed by the caller) and operands. who: "fleetsim run", for messages. */
enum options_result options_parse(const struct options_spec *specs, const char *who, int argc,
                                  char *const *argv, void *values, struct options_list *operands,
                                  struct arena *arena, FILE *err);
/* One line per option, and --help. */
void options_help(const struct options_spec *specs, FILE *out);

#endif
