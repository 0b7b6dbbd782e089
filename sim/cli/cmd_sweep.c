/* fleetsim sweep SWEEP, sweep status DIR, sweep merge DIR */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/setup.h"
#include "sim/cli/stale.h"
#include "sim/cli/sweep_options.h"
#include "sim/cli/sweep_slurm.h"
#include "sim/cli/text.h"
#include "sim/run/sweep.h"

static const double LINE_EVERY_S = 30;

static const struct options_spec sweep_specs[] = {
    {"output", 'o', OPTIONS_TEXT, offsetof(struct sweep_values, output), "DIR",
     "the folder of results; without it NAME.sweep in this folder"},
    {"set", 0, OPTIONS_LIST, offsetof(struct sweep_values, sets), "KEY=VALUE",
     "change one value at every point, as horizon='10 min'"},
    {"jobs", 'j', OPTIONS_TEXT, offsetof(struct sweep_values, jobs), "N",
     "runs at a time; without it one for each processor"},
    {"memory", 0, OPTIONS_TEXT, offsetof(struct sweep_values, memory), "SIZE",
     "stop a run that takes more, as '2 GiB'"},
    {"time-limit", 0, OPTIONS_TEXT, offsetof(struct sweep_values, time_limit), "TIME",
     "stop a run that works longer, as '10 min'"},
    {"replications", 0, OPTIONS_TEXT, offsetof(struct sweep_values, replications), "N",
     "runs of every point, instead of the file's number"},
    {"only", 0, OPTIONS_LIST, offsetof(struct sweep_values, only), "WHAT",
     "points by number (12, 3-7) or by AXIS=VALUE"},
    {"retry-failed", 0, OPTIONS_FLAG, offsetof(struct sweep_values, retry_failed), NULL,
     "run those that failed again, and nothing else"},
    {"sensitivity", 0, OPTIONS_TEXT, offsetof(struct sweep_values, sensitivity), "OUTPUT",
     "change one axis at a time; rank them by what that does to OUTPUT"},
    {"dry-run", 'n', OPTIONS_FLAG, offsetof(struct sweep_values, dry_run), NULL,
     "list the points and estimate the time; run and write nothing"},
    {"shard", 0, OPTIONS_TEXT, offsetof(struct sweep_values, shard), "i/n",
     "every n-th run, from number i; of a Slurm job array by itself"},
    {"slurm", 0, OPTIONS_TEXT, offsetof(struct sweep_values, slurm), "N",
     "print a batch script for a Slurm job array of N tasks"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct sweep_values, json), NULL,
     "print one JSON object and nothing else"},
    {"quiet", 0, OPTIONS_FLAG, offsetof(struct sweep_values, quiet), NULL, "no progress on stderr"},
    {0},
};

/* ---- while it runs ------------------------------------------------------------------------------
 */

struct teller {
    const char *name;
    bool terminal, quiet;
    double line_s; /* when the last line was printed */
};

static void failed_tell(void *self, const char *run, const char *point, const char *reason)
{
    const struct teller *teller = self;
    if (teller->terminal && !teller->quiet)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "%s (%s): failed: %s\n", run, point, reason);
}

static void line_print(const struct teller *teller, const struct sweep_progress *at)
{
    const struct sweep_pool_view *view = &at->view;
    double rate = view->wall_s > 0 ? (double)view->ended / view->wall_s : 0;
    fprintf(stderr, "%s: %s of %s done, %s failed", teller->name, text_count(at->done).s,
            text_count(at->to_do).s, text_count(at->failed).s);
    if (rate > 0)
        fprintf(stderr, ", %s runs/s, %s s left", text_short(rate).s,
                text_real((double)(at->to_do - view->ended) / rate, 0).s);
    if (at->slowest)
        fprintf(stderr, "; slowest: %s for %s s", at->slowest, text_real(view->slowest_s, 0).s);
    if (view->stopping)
        fprintf(stderr, "; stopping after %zu more (again to kill them)", view->running);
}

static void progress_tell(void *self, const struct sweep_progress *at)
{
    struct teller *teller = self;
    if (teller->quiet)
        return;
    if (teller->terminal) {
        if (at->view.wall_s - teller->line_s < 0.1)
            return;
        teller->line_s = at->view.wall_s;
        fputs("\r", stderr);
        line_print(teller, at);
        fputs("\033[K", stderr);
        fflush(stderr);
    } else if (at->view.wall_s - teller->line_s >= LINE_EVERY_S) {
        teller->line_s = at->view.wall_s;
        line_print(teller, at);
        fputc('\n', stderr);
    }
}

/* ---- what came of it ----------------------------------------------------------------------------
 */

static void counts_print(const char *name, const struct sweep_report *report, FILE *out)
{
    fprintf(out, "%s: %s runs: %s done, %s failed, %s missing\n", name, text_count(report->runs).s,
            text_count(report->all_done).s, text_count(report->all_failed).s,
            text_count(report->all_missing).s);
}

static const struct column *output_of(const struct sweep_layout *layout, const char *name,
                                      size_t *index)
{
    for (*index = 0; *index < layout->output_count; (*index)++)
        if (strcmp(layout->outputs[*index]->name, name) == 0)
            return layout->outputs[*index];
    return NULL;
}

/* The tornado: a bar for each input, from its least to its largest, as a picture in characters. */
static void bar_fill(struct text *cell, const struct sweep_effect *effect, double low, double high)
{
    enum { WIDTH = 24 };
    double span = high - low;
    size_t used = 0;
    int from = (int)((effect->low - low) / span * (WIDTH - 1) + 0.5);
    int to = (int)((effect->high - low) / span * (WIDTH - 1) + 0.5);
    int base = (int)((effect->base - low) / span * (WIDTH - 1) + 0.5);
    if (!(span > 0) || isnan(effect->swing))
        return;
    for (int i = 0; i < WIDTH && used + 2 < sizeof cell->s; i++)
        cell->s[used++] = i == base ? '|' : i >= from && i <= to ? '=' : ' ';
    cell->s[used] = '\0';
}

static void tornado_print(const struct sweep_results *results, const char *name, FILE *out)
{
    static const char *const heads[] = {"input",    "swing",   "least", "most",
                                        "least at", "most at", ""};
    const struct sweep_layout *layout = results->layout;
    struct sweep_effect effects[SWEEP_FILE_AXES_MAX];
    size_t index;
    const struct column *column = output_of(layout, name, &index);
    if (!column || layout->input_count == 0)
        return;
    sweep_results_effects(results, index, effects);
    double low = effects[0].low, high = effects[0].high;
    for (size_t i = 0; i < layout->input_count; i++) {
        low = fmin(low, effects[i].low);
        high = fmax(high, effects[i].high);
    }
    struct text_table table;
    text_table_init(&table, 7, 1, 1);
    struct text *row = text_table_row(&table, false);
    for (size_t c = 0; c < 7; c++)
        snprintf(row[c].s, sizeof row[c].s, "%s", heads[c]);
    for (size_t i = 0; i < layout->input_count; i++) {
        const struct sweep_effect *e = &effects[i];
        row = text_table_row(&table, i == 0);
        snprintf(row[0].s, sizeof row[0].s, "%.40s", layout->inputs[e->input]);
        row[1] = text_short(e->swing);
        row[2] = text_short(e->low);
        row[3] = text_short(e->high);
        snprintf(row[4].s, sizeof row[4].s, "%.40s", layout->labels[e->low_at]);
        snprintf(row[5].s, sizeof row[5].s, "%.40s", layout->labels[e->high_at]);
        bar_fill(&row[6], e, low, high);
    }
    fprintf(out, "\n%s (%s, %s), one input changed at a time; base %s\n\n", column->name,
            column->long_name, column->type == COLUMN_TIME ? "s" : column->unit,
            text_short(effects[0].base).s);
    text_table_print(&table, out);
    text_table_free(&table);
}

static void effects_json(struct json *json, const struct sweep_results *results, const char *name)
{
    const struct sweep_layout *layout = results->layout;
    struct sweep_effect effects[SWEEP_FILE_AXES_MAX];
    size_t index;
    if (!name || !output_of(layout, name, &index))
        return;
    sweep_results_effects(results, index, effects);
    json_out_text(json, "output", name);
    json_out_list(json, "effects");
    for (size_t i = 0; i < layout->input_count; i++) {
        json_out_object(json, NULL);
        json_out_text(json, "input", layout->inputs[effects[i].input]);
        json_out_real(json, "base", effects[i].base);
        json_out_real(json, "low", effects[i].low);
        json_out_real(json, "high", effects[i].high);
        json_out_real(json, "swing", effects[i].swing);
        json_out_text(json, "low_at", layout->labels[effects[i].low_at]);
        json_out_text(json, "high_at", layout->labels[effects[i].high_at]);
        json_out_object_end(json);
    }
    json_out_list_end(json);
}

static void report_json(const char *name, const char *folder, const struct sweep_report *report,
                        const struct sweep_results *results, const char *output)
{
    struct json json;
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "sweep", name);
    json_out_text(&json, "folder", folder);
    json_out_count(&json, "runs", report->runs);
    json_out_count(&json, "done", report->all_done);
    json_out_count(&json, "failed", report->all_failed);
    json_out_count(&json, "missing", report->all_missing);
    json_out_count(&json, "up_to_date_before", report->up_to_date);
    json_out_count(&json, "run_now", report->done + report->failed);
    if (results)
        effects_json(&json, results, output);
    json_out_object_end(&json);
}

static void report_print(const char *name, const char *folder, const struct sweep_report *report,
                         double wall_s, size_t jobs)
{
    counts_print(name, report, stdout);
    printf("now: %s were up to date, %s done and %s failed", text_count(report->up_to_date).s,
           text_count(report->done).s, text_count(report->failed).s);
    if (report->started)
        printf(" in %s s on %zu process%s", text_short(wall_s).s, jobs, jobs == 1 ? "" : "es");
    if (report->stale > 0)
        printf("; %s were of another scenario, trace or program", text_count(report->stale).s);
    printf("\nwritten: %s/sweep.h5\n", folder);
}

/* ---- commands -----------------------------------------------------------------------------------
 */

static double estimate_s(const struct sweep_estimate *estimate, size_t jobs)
{
    return estimate->requests / estimate->requests_per_s / (double)jobs;
}

static void dry_run_json(const struct sweep *sweep, const struct sweep_options *options,
                         const struct sweep_estimate *estimate)
{
    const struct sweep_plan *plan = &sweep->plan;
    struct json json;
    size_t runs = 0;
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "sweep", sweep->file->name);
    json_out_list(&json, "points");
    for (size_t p = 0; p < plan->points; p++) {
        size_t chosen = sweep_chosen(sweep, options, p);
        struct arena arena;
        arena_init(&arena);
        if (chosen > 0) {
            json_out_object(&json, NULL);
            json_out_count(&json, "point", p);
            json_out_text(&json, "label", sweep_points_label(plan, p, &arena));
            json_out_count(&json, "runs", chosen);
            json_out_text(&json, "cannot_run",
                          sweep->points[p].valid ? NULL : sweep->points[p].reason);
            json_out_object_end(&json);
        }
        arena_free(&arena);
        runs += chosen;
    }
    json_out_list_end(&json);
    json_out_count(&json, "runs", runs);
    json_out_count(&json, "jobs", options->jobs);
    json_out_real(&json, "requests", estimate->requests);
    json_out_real(&json, "seconds", estimate_s(estimate, options->jobs));
    json_out_object_end(&json);
}

static void dry_run_print(const struct sweep *sweep, const struct sweep_options *options,
                          const struct sweep_estimate *estimate)
{
    const struct sweep_plan *plan = &sweep->plan;
    size_t runs = 0, jobs = options->jobs;
    printf("%s: %s point%s", sweep->file->name, text_count(plan->points).s,
           plan->points == 1 ? "" : "s");
    if (plan->replications > 1)
        printf(" × %zu replications = %s runs", plan->replications, text_count(plan->runs).s);
    putchar('\n');
    for (size_t i = 0; i < plan->input_count; i++)
        printf("  axis %s: %zu value%s of %s\n", plan->inputs[i].axis.name,
               plan->inputs[i].axis.count, plan->inputs[i].axis.count == 1 ? "" : "s",
               plan->inputs[i].from->keys[0].path);
    for (size_t p = 0; p < plan->points; p++) {
        size_t chosen = sweep_chosen(sweep, options, p);
        struct arena arena;
        arena_init(&arena);
        if (chosen > 0)
            printf("  %5zu  %s%s%s\n", p, sweep_points_label(plan, p, &arena),
                   sweep->points[p].valid ? "" : "  cannot run: ",
                   sweep->points[p].valid ? "" : sweep->points[p].reason);
        arena_free(&arena);
        runs += chosen;
    }
    if (runs < plan->runs)
        printf("chosen: %s of %s runs\n", text_count(runs).s, text_count(plan->runs).s);
    if (isnan(estimate_s(estimate, jobs)))
        puts("time: unknown");
    else
        printf("time: about %s s: %s requests at %s a second (measured on one point) on %zu "
               "process%s\n",
               text_short(estimate_s(estimate, jobs)).s, text_real(estimate->requests, 0).s,
               text_real(estimate->requests_per_s, 0).s, jobs, jobs == 1 ? "" : "es");
}

/* The points that were asked for and how long all of them may take, done or not. */
static int dry_run(const struct sweep_values *values, struct sweep *sweep,
                   const struct sweep_options *options)
{
    struct sweep_estimate estimate = sweep_estimate(sweep, options);
    if (values->json)
        dry_run_json(sweep, options, &estimate);
    else
        dry_run_print(sweep, options, &estimate);
    return sweep->invalid > 0 ? COMMAND_FAILURE : COMMAND_OK;
}

/* Writes the folder's sweep.h5, and takes away what a killed one left beside it. */
static bool merge(const char *folder, struct sweep_report *report, struct sweep_results *results,
                  struct arena *arena, struct errors *errors)
{
    stale_remove(arena_printf(arena, "%s/sweep.h5", folder), errors);
    return sweep_merge(folder, report, results, arena, errors);
}

static int merge_tell(const struct sweep_values *values, const char *name, const char *folder,
                      struct sweep_report *report, double wall_s, size_t jobs, struct arena *arena,
                      struct errors *errors)
{
    struct sweep_results results;
    bool ok = merge(folder, report, &results, arena, errors);
    if (!ok)
        return COMMAND_FAILURE;
    if (values->json) {
        report_json(name, folder, report, &results, values->sensitivity);
    } else {
        report_print(name, folder, report, wall_s, jobs);
        if (values->sensitivity)
            tornado_print(&results, values->sensitivity, stdout);
    }
    return errors->error_count > 0 ? COMMAND_FAILURE : COMMAND_OK;
}

static void shard_tell(const struct sweep_report *report, const struct sweep_options *options)
{
    printf("shard %zu/%zu: %s done and %s failed; when all shards are: fleetsim sweep merge %s\n",
           options->shard, options->shards, text_count(report->done).s,
           text_count(report->failed).s, options->folder);
}

static int run_all(const struct sweep_values *values, struct sweep *sweep,
                   struct sweep_options *options, struct arena *arena, struct errors *errors)
{
    struct sweep_report report;
    struct teller teller = {
        .name = sweep->file->name, .terminal = isatty(STDERR_FILENO) != 0, .quiet = values->quiet};
    options->failed = failed_tell;
    options->progress = progress_tell;
    options->self = &teller;
    bool ok = sweep_run(sweep, options, &report, errors);
    if (teller.terminal && !teller.quiet)
        fputs("\r\033[K", stderr);
    if (report.started && report.end == SWEEP_POOL_KILLED)
        fputs("killed: what was running is lost, the rest is kept; the same command goes on\n",
              stderr);
    else if (report.started && report.end == SWEEP_POOL_STOPPED)
        fputs("stopped: what is done is kept; the same command goes on\n", stderr);
    if (errors->error_count > 0 || (report.started && report.end == SWEEP_POOL_KILLED))
        return COMMAND_FAILURE;
    if (options->shards > 0) {
        shard_tell(&report, options);
        return ok ? COMMAND_OK : COMMAND_FAILURE;
    }
    int code = merge_tell(values, sweep->file->name, options->folder, &report, report.wall_s,
                          options->jobs, arena, errors);
    return ok ? code : COMMAND_FAILURE;
}

static int sweep_with(const struct sweep_values *values, const char *name, struct arena *arena,
                      struct sweep *sweep, struct errors *errors)
{
    struct sweep_options options = {.retry_failed = values->retry_failed};
    struct sweep_request request = {.name = name,
                                    .folders = command_scenario_folders(arena),
                                    .sets = values->sets.items,
                                    .set_count = values->sets.count,
                                    .output = values->sensitivity,
                                    .one_at_a_time = values->sensitivity != NULL};
    if (!sweep_options_jobs(values->jobs, &options.jobs) ||
        !sweep_options_replications(values->replications, &request.replications) ||
        !sweep_options_shard(values->shard, &options.shard, &options.shards))
        return COMMAND_BAD_USAGE;
    if (!sweep_open(sweep, &request, errors))
        return COMMAND_BAD_INPUT;
    if (!sweep_options_memory(values->memory, sweep->file->memory_bytes, options.jobs,
                              &options.memory_bytes) ||
        !sweep_options_time(values->time_limit, sweep->file->time_limit_ps, &options.time_s) ||
        !sweep_options_only(&values->only, &sweep->plan, &options.selected, arena))
        return COMMAND_BAD_USAGE;
    options.folder = values->output ? values->output
                                    : arena_printf(arena, "%s%s.sweep", sweep->file->name,
                                                   values->sensitivity ? "-sensitivity" : "");
    if (values->slurm)
        return sweep_slurm_print(values, name, sweep->file->name, options.folder, stdout)
                   ? COMMAND_OK
                   : COMMAND_BAD_USAGE;
    if (!values->quiet || sweep->invalid > 0)
        setup_errors_print(&sweep->said);
    if (values->dry_run)
        return dry_run(values, sweep, &options);
    return run_all(values, sweep, &options, arena, errors);
}

static int status_print(const struct sweep_values *values, const char *path, struct arena *arena,
                        struct errors *errors)
{
    struct sweep_layout *layout = arena_alloc(arena, sizeof *layout);
    struct sweep_folder folder;
    if (!sweep_layout_read(layout, path, arena, errors))
        return COMMAND_BAD_INPUT;
    sweep_folder_scan(&folder, path, layout, arena, errors);
    struct sweep_report report = {.runs = layout->run_count,
                                  .all_done = sweep_folder_count(&folder, SWEEP_DONE),
                                  .all_failed = sweep_folder_count(&folder, SWEEP_FAILED),
                                  .stale = sweep_folder_count(&folder, SWEEP_STALE)};
    report.all_missing = report.runs - report.all_done - report.all_failed;
    if (values->json) {
        report_json(layout->name, path, &report, NULL, NULL);
    } else {
        double wall_s = 0;
        counts_print(layout->name, &report, stdout);
        for (size_t run = 0; run < layout->run_count; run++) {
            wall_s += folder.runs[run].wall_s;
            if (folder.runs[run].state == SWEEP_FAILED)
                printf("%s (%s): failed: %s\n", layout->runs[run].id,
                       layout->labels[run / layout->replications], folder.runs[run].reason);
        }
        if (report.stale > 0)
            printf("%s of the missing have a result of another scenario, trace or program\n",
                   text_count(report.stale).s);
        printf("the runs took %s s together\n", text_short(wall_s).s);
    }
    return report.all_done == report.runs ? COMMAND_OK : COMMAND_FAILURE;
}

static int merge_run(const struct sweep_values *values, const char *path, struct arena *arena,
                     struct errors *errors)
{
    struct sweep_report report = {0};
    if (!merge(path, &report, NULL, arena, errors))
        return COMMAND_FAILURE;
    if (values->json) {
        report_json(path, path, &report, NULL, NULL);
    } else {
        counts_print(path, &report, stdout);
        printf("written: %s/sweep.h5\n", path);
    }
    return report.all_done == report.runs && errors->error_count == 0 ? COMMAND_OK
                                                                      : COMMAND_FAILURE;
}

static int sweep_run_command(const void *values_, const struct options_list *operands)
{
    const struct sweep_values *values = values_;
    const char *first = operands->items[0];
    bool status = strcmp(first, "status") == 0, merge = strcmp(first, "merge") == 0;
    if ((operands->count == 2) != (status || merge)) {
        fprintf(stderr,
                operands->count == 2 ? "fleetsim sweep: one argument too many: '%s'\n"
                                     : "fleetsim sweep: `%s` needs the folder of a sweep\n",
                operands->count == 2 ? operands->items[1] : first);
        return COMMAND_BAD_USAGE;
    }
    struct arena arena;
    struct errors errors;
    struct sweep sweep = {0};
    arena_init(&arena);
    errors_init(&errors);
    int code = status  ? status_print(values, operands->items[1], &arena, &errors)
               : merge ? merge_run(values, operands->items[1], &arena, &errors)
                       : sweep_with(values, first, &arena, &sweep, &errors);
    setup_errors_print(&errors);
    if (!status && !merge)
        sweep_free(&sweep);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

const struct command cmd_sweep_command = {
    .name = "sweep",
    .summary = "run a scenario at many points, on every processor, and go on where it stopped",
    .operands = "SWEEP | status DIR | merge DIR",
    .operands_min = 1,
    .operands_max = 2,
    .options = sweep_specs,
    .options_size = sizeof(struct sweep_values),
    .text =
        "SWEEP is a sweep.yaml, a folder that holds one, or the name of a folder in scenarios/. "
        "The\n"
        "results are a folder: runs/ with a file for every run, sweep.h5 with all of them on the\n"
        "sweep's axes (netCDF-4). The same command goes on where the last one stopped, and runs "
        "only\n"
        "what is not up to date with scenario, trace and program. Ctrl-C lets what runs come to "
        "its\n"
        "end; again, it kills. The exit code is 1 when a run failed or is missing, 2 when the "
        "sweep\n"
        "or every point of it is wrong. `status` tells how far a folder is, `merge` writes its\n"
        "sweep.h5 anew, as is needed after the shards of a job array.\n",
    .example = "fleetsim sweep overnight --dry-run\n"
               "fleetsim sweep overnight -o night\n"
               "fleetsim sweep status night\n"
               "fleetsim sweep overnight -o night --retry-failed\n"
               "fleetsim sweep overnight --sensitivity usd --set horizon='6 h'\n"
               "fleetsim sweep overnight -o night --slurm 16 >night.sh && sbatch night.sh\n"
               "fleetsim sweep merge night\n",
    .run = sweep_run_command,
};
