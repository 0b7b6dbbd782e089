/* What a sub-command is. Each has a file cmd_NAME.c that defines one struct command, registered by
 * one line in commands.c. */
#ifndef FLEETSIM_SIM_CLI_COMMAND_H
#define FLEETSIM_SIM_CLI_COMMAND_H

#include <stdio.h>

#include "sim/cli/options.h"

/* What the program returns. */
enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILURE = 1,    /* a file that cannot be written, an audit that fails */
    COMMAND_BAD_INPUT = 2,  /* a scenario or a trace that is wrong */
    COMMAND_BAD_USAGE = 64, /* an option that is wrong: EX_USAGE of sysexits */
};

struct command {
    const char *name;
    const char *summary;  /* a few words, lower case */
    const char *operands; /* of the usage line: "SCENARIO" */
    int operands_min, operands_max;
    const struct options_spec *options; /* ended by {0} */
    size_t options_size;                /* of the struct that they fill */
    const char *text;                   /* paragraphs of help, each line ended by a newline */
    const char *example;                /* command lines, each ended by a newline */
    /* values: the filled struct; operands: operands_min to operands_max of them. Returns an enum
     * command_exit. */
    int (*run)(const void *values, const struct options_list *operands);
};

extern const struct command cmd_run_command;
extern const struct command cmd_compare_command;
extern const struct command cmd_show_command;
extern const struct command cmd_sweep_command;
extern const struct command cmd_size_command;
extern const struct command cmd_check_command;
extern const struct command cmd_explain_command;
extern const struct command cmd_plan_command;
extern const struct command cmd_layout_command;
extern const struct command cmd_levers_command;
extern const struct command cmd_list_command;
extern const struct command cmd_cache_command;
extern const struct command cmd_report_command;

/* NULL-terminated, in the order of the help. */
extern const struct command *const command_table[];

/* The command of that name, or NULL. */
const struct command *command_find(const char *name);
/* The nearest command's name for a slip, or NULL. */
const char *command_nearest(const char *name);
/* What `fleetsim --help` and `fleetsim help NAME` print. */
void command_help_all(FILE *out);
void command_help(const struct command *command, FILE *out);
/* Parses argv[0 .. argc) (after the command's name) and runs it. */
int command_run(const struct command *command, int argc, char *const *argv);

/* Folders in which a scenario's name is looked for: "scenarios" here, those installed with the
 * program, those of the tree it was built in. NULL-terminated, in the arena. */
const char *const *command_scenario_folders(struct arena *arena);

#endif
