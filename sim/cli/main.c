/* fleetsim COMMAND … */
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "sim/cli/command.h"

/* The build gives it; a compiler called by hand may not. */
#ifndef FLEETSIM_VERSION
#define FLEETSIM_VERSION "(version not given by the build)"
#endif

static int command_unknown(const char *name)
{
    const char *near = command_nearest(name);
    fprintf(stderr, "fleetsim: unknown command '%s'", name);
    if (near)
        fprintf(stderr, ", did you mean '%s'?", near);
    fputs("\n`fleetsim --help` lists them\n", stderr);
    return COMMAND_BAD_USAGE;
}

/* fleetsim help [COMMAND] */
static int help_run(int argc, char **argv)
{
    if (argc == 0) {
        command_help_all(stdout);
        return COMMAND_OK;
    }
    const struct command *command = command_find(argv[0]);
    if (!command)
        return command_unknown(argv[0]);
    command_help(command, stdout);
    return COMMAND_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        command_help_all(stderr);
        return COMMAND_BAD_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help_run(argc - 2, argv + 2);
    if (strcmp(name, "--version") == 0) {
        puts("fleetsim " FLEETSIM_VERSION);
        return COMMAND_OK;
    }
    const struct command *command = command_find(name);
    return command ? command_run(command, argc - 2, argv + 2) : command_unknown(name);
}

/* Large pieces of memory keep coming zeroed from the system, whose untouched pages cost nothing,
 * also after one was given back: by itself the C library then takes them from its heap and clears
 * them. */
static void memory_settle(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

int main(int argc, char **argv)
{
    memory_settle();
    int code = dispatch(argc, argv);
    /* A full disk or a closed pipe shows at the last flush. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("fleetsim: standard output");
        return code == COMMAND_OK ? COMMAND_FAILURE : code;
    }
    return code;
}
