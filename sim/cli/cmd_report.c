/* fleetsim report: one HTML page of a run or a sweep. The page is made by analysis/report.py. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/command.h"
#include "sim/cli/setup.h"

enum { PROGRAM_PATH_MAX = 4096, EXEC_FAILED = 127 };

struct report_values {
    const char *output;
    bool force;
};

static const struct options_spec report_specs[] = {
    {"output", 'o', OPTIONS_TEXT, offsetof(struct report_values, output), "FILE",
     "the page (by the operand's name, with .html, in the current folder)"},
    {"force", 0, OPTIONS_FLAG, offsetof(struct report_values, force), NULL,
     "overwrite a file that exists"},
    {0},
};

static bool file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* report.py in $FLEETSIM_ANALYSIS, installed with the program, or in the tree it was built in; NULL
 * when it is nowhere. */
static const char *script_path(struct arena *arena)
{
    const char *given = getenv("FLEETSIM_ANALYSIS");
    if (given && *given) {
        const char *path = arena_printf(arena, "%s/report.py", given);
        return file_exists(path) ? path : NULL;
    }
    char program[PROGRAM_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    for (char *slash = strrchr(program, '/'); slash; slash = strrchr(program, '/')) {
        *slash = '\0';
        const char *path = arena_printf(arena, "%s/share/fleetsim/analysis/report.py", program);
        if (file_exists(path))
            return path;
        path = arena_printf(arena, "%s/analysis/report.py", program);
        if (file_exists(path))
            return path;
    }
    return NULL;
}

/* "runs/a.h5" → "a.html", "sweeps/night/" → "night.html". */
static const char *default_output(const char *operand, struct arena *arena)
{
    size_t length = strlen(operand);
    while (length > 1 && operand[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && operand[start - 1] != '/')
        start--;
    const char *name = arena_copyn(arena, operand + start, length - start);
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    return arena_printf(arena, "%.*s.html", (int)stem, name);
}

/* Runs python and waits. Returns an enum command_exit. */
static int python_run(const char *python, const char *script, const char *operand,
                      const char *output)
{
    const char *const arguments[] = {python, script, "-o", output, "--", operand, NULL};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execv(python, (char *const *)arguments);
        _exit(EXEC_FAILED);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fleetsim report: cannot run Python");
        return COMMAND_FAILURE;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED) {
        fprintf(stderr,
                "fleetsim report: the page is made with Python, and %s cannot be run\n"
                "On Debian: apt install python3 python3-h5py python3-netcdf4 python3-xarray "
                "python3-plotly; FLEETSIM_PYTHON names another interpreter\n",
                python);
        return COMMAND_FAILURE;
    }
    if (!WIFEXITED(status))
        return COMMAND_FAILURE;
    int code = WEXITSTATUS(status);
    return code == COMMAND_OK || code == COMMAND_BAD_INPUT ? code : COMMAND_FAILURE;
}

static int report_make(const struct report_values *options, const char *operand,
                       struct arena *arena, struct errors *errors)
{
    const char *output = options->output ? options->output : default_output(operand, arena);
    struct setup_target target = {.path = setup_target_path(output, arena), .binary = true};
    if (access(operand, R_OK) != 0) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: %s", operand, strerror(errno));
        return COMMAND_BAD_INPUT;
    }
    if (!setup_targets_check(&target, 1, NULL, options->force, errors))
        return COMMAND_FAILURE;
    const char *script = script_path(arena);
    if (!script) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "analysis/report.py, which makes the page, is not beside the program: "
                   "FLEETSIM_ANALYSIS may name its folder");
        return COMMAND_FAILURE;
    }
    const char *given = getenv("FLEETSIM_PYTHON");
    const char *python =
        given && *given ? given : "/usr/bin/python3"; /* Debian's has the packages */
    return python_run(python, script, operand, target.path);
}

static int report_run(const void *values, const struct options_list *operands)
{
    struct arena arena;
    arena_init(&arena);
    struct errors errors;
    errors_init(&errors);
    int code = report_make(values, operands->items[0], &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

const struct command cmd_report_command = {
    .name = "report",
    .summary = "one HTML page of a run or a sweep, with charts, that opens without a network",
    .operands = "RUN.h5|SWEEP",
    .operands_min = 1,
    .operands_max = 1,
    .options = report_specs,
    .options_size = sizeof(struct report_values),
    .text =
        "SWEEP is the folder of a sweep, or its sweep.h5. The page holds everything: charts, "
        "summary,\n"
        "audit, assumptions, and how to get the same numbers again. It prints on A4. It is made "
        "by\n"
        "analysis/report.py with /usr/bin/python3 (FLEETSIM_PYTHON names another) and Debian's\n"
        "python3-plotly.\n",
    .example = "fleetsim report chat-1m.h5 -o report.html\n"
               "fleetsim report night\n",
    .run = report_run,
};
