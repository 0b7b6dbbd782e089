#include "sim/cli/command.h"

#include <string.h>
#include <unistd.h>

#include "sim/base/errors.h"

/* The registry: one line per command. */
const struct command *const command_table[] = {
    &cmd_run_command,     &cmd_compare_command,
    &cmd_show_command,    &cmd_sweep_command,
    &cmd_check_command,   &cmd_report_command,
    &cmd_explain_command, &cmd_plan_command,
    &cmd_layout_command,  &cmd_levers_command,
    &cmd_cache_command,   &cmd_size_command,
    &cmd_list_command,    NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; command_table[i]; i++) {
        if (strcmp(command_table[i]->name, name) == 0)
            return command_table[i];
    }
    return NULL;
}

const char *command_nearest(const char *name)
{
    const char *names[64] = {"help"};
    size_t count = 1;
    for (size_t i = 0; command_table[i] && count < 63; i++)
        names[count++] = command_table[i]->name;
    return errors_nearest(name, names);
}

void command_help_all(FILE *out)
{
    fputs("fleetsim simulates a fleet that serves large language models: replicas, traffic, and the"
          " bill.\n\n"
          "usage: fleetsim COMMAND [OPTION…]\n\n",
          out);
    for (size_t i = 0; command_table[i]; i++)
        fprintf(out, "  %-10s %s\n", command_table[i]->name, command_table[i]->summary);
    fprintf(out, "  %-10s %s\n", "help", "what a command does: fleetsim help COMMAND");
    fputs("\n  --help, --version\n\n"
          "Exit codes: 0 done, 1 failure, 2 bad input (scenario or trace), 64 bad usage.\n",
          out);
}

void command_help(const struct command *command, FILE *out)
{
    fprintf(out, "fleetsim %s: %s\n\nusage: fleetsim %s%s%s [OPTION…]\n\n%s\noptions\n",
            command->name, command->summary, command->name, command->operands ? " " : "",
            command->operands ? command->operands : "", command->text);
    options_help(command->options, out);
    fputs("\nexample\n", out);
    for (const char *line = command->example; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static int usage_fail(const struct command *command)
{
    fprintf(stderr, "`fleetsim help %s` shows how it is used\n", command->name);
    return COMMAND_BAD_USAGE;
}

int command_run(const struct command *command, int argc, char *const *argv)
{
    struct arena arena;
    arena_init(&arena);
    struct options_list operands = {0};
    void *values = arena_alloc(&arena, command->options_size);
    const char *who = arena_printf(&arena, "fleetsim %s", command->name);
    int code;
    switch (options_parse(command->options, who, argc, argv, values, &operands, &arena, stderr)) {
    case OPTIONS_HELP:
        command_help(command, stdout);
        code = COMMAND_OK;
        break;
    case OPTIONS_WRONG:
        code = usage_fail(command);
        break;
    default:
        if (operands.count < (size_t)command->operands_min) {
            fprintf(stderr, "%s: %s is missing\n", who, command->operands);
            code = usage_fail(command);
        } else if (operands.count > (size_t)command->operands_max) {
            fprintf(stderr, "%s: one argument too many: '%s'\n", who,
                    operands.items[command->operands_max]);
            code = usage_fail(command);
        } else {
            code = command->run(values, &operands);
        }
    }
    arena_free(&arena);
    return code;
}

const char *const *command_scenario_folders(struct arena *arena)
{
    enum { PATH_BYTES = 4096, FOLDERS = 4 };
    const char **folders = arena_alloc(arena, FOLDERS * sizeof *folders);
    size_t count = 0;
    folders[count++] = "scenarios";
    char *program = arena_alloc(arena, PATH_BYTES);
    ssize_t length = readlink("/proc/self/exe", program, PATH_BYTES - 1);
    char *slash = length > 0 ? strrchr(program, '/') : NULL;
    if (slash) {
        *slash = '\0';
        folders[count++] = arena_printf(arena, "%s/../share/fleetsim/scenarios", program);
        folders[count++] = arena_printf(arena, "%s/../../scenarios", program);
    }
    return folders;
}
