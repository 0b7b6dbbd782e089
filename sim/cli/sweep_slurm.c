#include "sim/cli/sweep_slurm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TASKS_MAX = 100000 };

/* A word for the shell. */
static void word_print(const char *text, FILE *out)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_./:=+,@%-";
    if (text[0] && strspn(text, safe) == strlen(text)) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    }
    fputc('\'', out);
}

static void option_print(const char *name, const char *value, FILE *out)
{
    if (!value)
        return;
    fprintf(out, " %s ", name);
    word_print(value, out);
}

bool sweep_slurm_print(const struct sweep_values *values, const char *sweep, const char *name,
                       const char *folder, FILE *out)
{
    char *end, here[PATH_BYTES], program[PATH_BYTES];
    long tasks = strtol(values->slurm, &end, 10);
    if (*end != '\0' || end == values->slurm || tasks < 1 || tasks > TASKS_MAX) {
        fprintf(stderr, "fleetsim sweep: --slurm is a number of tasks from 1 to %d\n", TASKS_MAX);
        return false;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    fprintf(out,
            "#!/bin/bash\n"
            "# The sweep %s as a job array: each task runs its share into one folder.\n"
            "#SBATCH --job-name=%s\n"
            "#SBATCH --array=0-%ld\n"
            "#SBATCH --cpus-per-task=%s\n"
            "#SBATCH --output=slurm-%%A_%%a.log\n",
            name, name, tasks - 1, values->jobs ? values->jobs : "1");
    fputs("set -eu\ncd ", out);
    word_print(getcwd(here, sizeof here) ? here : ".", out);
    fputc('\n', out);
    word_print(length > 0 ? program : "fleetsim", out);
    fputs(" sweep ", out);
    word_print(sweep, out);
    option_print("--output", folder, out);
    option_print("--memory", values->memory, out);
    option_print("--time-limit", values->time_limit, out);
    option_print("--replications", values->replications, out);
    option_print("--sensitivity", values->sensitivity, out);
    for (size_t i = 0; i < values->sets.count; i++)
        option_print("--set", values->sets.items[i], out);
    for (size_t i = 0; i < values->only.count; i++)
        option_print("--only", values->only.items[i], out);
    fputs(values->retry_failed ? " --retry-failed --quiet\n" : " --quiet\n", out);
    fputs("# When all tasks are through:\n#   ", out);
    word_print(length > 0 ? program : "fleetsim", out);
    fputs(" sweep merge ", out);
    word_print(folder, out);
    fputs("\n# or, submitted with it: sbatch --dependency=afterany:JOB --wrap '… sweep merge …'\n",
          out);
    return true;
}
