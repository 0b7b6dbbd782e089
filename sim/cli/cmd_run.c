/* fleetsim run SCENARIO */
#include <stddef.h>
#include <stdio.h>

#include "sim/cli/command.h"
#include "sim/cli/export.h"
#include "sim/cli/progress.h"
#include "sim/cli/report.h"
#include "sim/cli/result.h"
#include "sim/cli/setup.h"
#include "sim/cli/stale.h"

struct run_values {
    struct options_list sets;
    const char *output, *seed, *requests, *hourly, *export_trace;
    bool force, json, quiet, step_by_step, no_output;
};

static const struct options_spec run_specs[] = {
    {"output", 'o', OPTIONS_TEXT, offsetof(struct run_values, output), "FILE",
     "the result file; without it NAME.h5 in this folder"},
    {"force", 0, OPTIONS_FLAG, offsetof(struct run_values, force), NULL,
     "overwrite files that exist"},
    {"no-output", 0, OPTIONS_FLAG, offsetof(struct run_values, no_output), NULL,
     "write no result file"},
    {"set", 0, OPTIONS_LIST, offsetof(struct run_values, sets), "KEY=VALUE",
     "change one value, as fleet.pools[0].max_queue=100"},
    {"seed", 0, OPTIONS_TEXT, offsetof(struct run_values, seed), "N", "the same as --set seed=N"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct run_values, json), NULL,
     "print one JSON object and nothing else"},
    {"quiet", 0, OPTIONS_FLAG, offsetof(struct run_values, quiet), NULL, "no progress on stderr"},
    {"requests", 0, OPTIONS_TEXT, offsetof(struct run_values, requests), "FILE.csv",
     "write one row per request"},
    {"hourly", 0, OPTIONS_TEXT, offsetof(struct run_values, hourly), "FILE.csv",
     "write the table by hour, all columns"},
    {"export-trace", 0, OPTIONS_TEXT, offsetof(struct run_values, export_trace), "FILE",
     "write the arrivals as a trace that can be replayed"},
    {"step-by-step", 0, OPTIONS_FLAG, offsetof(struct run_values, step_by_step), NULL,
     "one engine iteration per event: slower, the same result"},
    {0},
};

static bool simulate(struct run *run, const struct run_values *values, const char *output,
                     struct errors *errors)
{
    struct progress progress;
    progress_init(&progress, run, run_config(run)->name);
    struct run_options options = {.step_by_step = values->step_by_step,
                                  .requests_path = values->requests,
                                  .output_path = output,
                                  .export_path = values->export_trace,
                                  .force = values->force,
                                  .progress = values->quiet ? NULL : progress_report,
                                  .progress_self = &progress};
    return run_simulate(run, &options, errors);
}

/* What is printed and written once the run is over. */
static int finish(struct run *run, const struct run_values *values, const char *output,
                  struct errors *errors)
{
    struct arena arena;
    struct run_outcome outcome;
    arena_init(&arena);
    run_outcome_fill(run, &outcome, &arena);
    if (values->json) {
        struct json json;
        json_out_init(&json, stdout);
        result_json(&json, NULL, &outcome);
    } else {
        report_print(&outcome, stdout);
    }
    bool ok = outcome.audit_ok;
    arena_free(&arena);
    bool written = true;
    if (output)
        written = run_write(run, output, values->force, errors);
    if (values->hourly)
        written = result_hourly_write(run, values->hourly, errors) && written;
    if (!values->json && output && written)
        printf("written: %s\n", output);
    if (!values->json && values->export_trace)
        export_print(run, values->export_trace, stdout);
    return ok && written && errors->error_count == 0 ? COMMAND_OK : COMMAND_FAILURE;
}

static int run_with(const struct run_values *values, const char *scenario, struct arena *arena,
                    struct errors *errors)
{
    struct capacity_ask ask = {.progress = values->quiet ? NULL : progress_capacity};
    struct run *run =
        setup_open_measuring(scenario, &values->sets, NULL, values->seed, &ask, arena, errors);
    const char *output = values->no_output ? NULL : values->output;
    if (run && !values->no_output && !output)
        output = arena_printf(arena, "%s.h5", run_config(run)->name);
    struct run_values paths = *values; /* with links followed */
    output = setup_target_path(output, arena);
    paths.requests = setup_target_path(values->requests, arena);
    paths.hourly = setup_target_path(values->hourly, arena);
    paths.export_trace = setup_target_path(values->export_trace, arena);
    struct setup_target targets[] = {{output, true},
                                     {paths.requests, false},
                                     {paths.hourly, false},
                                     {paths.export_trace, false}};
    bool writable = setup_targets_check(targets, 4, run, values->force, errors);
    int code = run ? COMMAND_FAILURE : COMMAND_BAD_INPUT;
    for (size_t i = 0; run && writable && i < sizeof targets / sizeof *targets; i++)
        stale_remove(targets[i].path, errors);
    if (run && writable && simulate(run, &paths, output, errors))
        code = finish(run, &paths, output, errors);
    run_free(run);
    return code;
}

static int run_run(const void *values_, const struct options_list *operands)
{
    const struct run_values *values = values_;
    if (values->no_output && values->output) {
        fputs("fleetsim run: --output and --no-output contradict each other\n", stderr);
        return COMMAND_BAD_USAGE;
    }
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    int code = run_with(values, operands->items[0], &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

const struct command cmd_run_command = {
    .name = "run",
    .summary = "simulate a scenario: table by hour, summary, audit, one result file",
    .operands = "SCENARIO",
    .operands_min = 1,
    .operands_max = 1,
    .options = run_specs,
    .options_size = sizeof(struct run_values),
    .text =
        "SCENARIO is a file, a folder that holds scenario.yaml, or the name of a folder in\n"
        "scenarios/. The result is one HDF5 file that is also netCDF-4. The exit code is 1 when\n"
        "the audit fails or a file cannot be written, 2 when scenario or trace are wrong.\n",
    .example = "fleetsim run chat-1m\n"
               "fleetsim run chat-1m --set fleet.router.policy=round_robin -o rr.h5\n"
               "fleetsim run chat-1m --json --no-output --quiet\n",
    .run = run_run,
};
