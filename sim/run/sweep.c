#include "sim/run/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "sim/metrics/metrics.h"
#include "sim/run/run.h"
#include "sim/scenario/file.h"
#include "sim/scenario/source.h"

/* ---- opening ------------------------------------------------------------------------------------
 */

/* Whether an output, or what is made of it over replications, has the name. */
static bool output_named(const struct sweep *sweep, const char *output, const char *name)
{
    static const char *const made[] = {"_rep_mean", "_rep_half"};
    size_t length = strlen(output);
    if (strcmp(name, output) == 0)
        return true;
    for (size_t i = 0; i < sizeof made / sizeof made[0] && sweep->plan.replications > 1; i++)
        if (strncmp(name, output, length) == 0 && strcmp(name + length, made[i]) == 0)
            return true;
    return false;
}

/* Whether another column of an axis has the name. */
static bool column_named(const struct sweep *sweep, const struct sweep_column *column)
{
    for (size_t i = 0; i < sweep->plan.input_count; i++) {
        const struct sweep_axis *axis = &sweep->plan.inputs[i].axis;
        for (size_t c = 0; c < axis->column_count; c++)
            if (&axis->columns[c] != column && strcmp(axis->columns[c].name, column->name) == 0)
                return true;
    }
    return false;
}

/* Names that the results have for themselves. */
static bool names_check(const struct sweep *sweep, const struct column *const *outputs,
                        size_t output_count, struct errors *errors)
{
    static const char *const own[] = {"status", "digest",   "replication", "case",
                                      "meta",   "scenario", "sensitivity", "case_input"};
    bool ok = true;
    for (size_t i = 0; i < sweep->plan.input_count; i++) {
        const struct sweep_input *input = &sweep->plan.inputs[i];
        for (size_t c = 0; c < input->axis.column_count; c++) {
            const char *name = input->axis.columns[c].name;
            bool taken = column_named(sweep, &input->axis.columns[c]);
            for (size_t k = 0; k < sizeof own / sizeof own[0]; k++)
                taken |= strcmp(name, own[k]) == 0;
            for (size_t k = 0; k < output_count; k++)
                taken |= output_named(sweep, outputs[k]->name, name);
            if (taken)
                sweep_file_error(sweep->file, input->from->offset, errors,
                                 "an axis cannot be called '%s': the results have that name; give "
                                 "it another with 'name'",
                                 name);
            ok &= !taken;
        }
    }
    return ok;
}

static bool output_check(const char *name, const struct column *const *outputs, size_t count,
                         struct errors *errors)
{
    const char **names = memory_zero(count + 1, sizeof *names);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        names[i] = outputs[i]->name;
        found |= strcmp(names[i], name) == 0;
    }
    const char *near = errors_nearest(name, names);
    if (!found)
        errors_add(errors, SEVERITY_ERROR, NULL, "'%s' is none of the sweep's outputs%s%s%s", name,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    free(names);
    return found;
}

/* What axes set at every point cannot be set for all points: it would be without effect. One at a
 * time, it is the base's value. */
static bool sets_check(const struct sweep *sweep, const struct sweep_request *request,
                       struct errors *errors)
{
    const struct sweep_file *file = sweep->file;
    struct arena arena;
    bool ok = true;
    arena_init(&arena);
    for (size_t i = 0; i < request->set_count; i++) {
        const char *set = request->sets[i];
        const char *path = arena_copyn(&arena, set, strcspn(set, "="));
        const char *by = NULL;
        for (size_t a = 0; a < file->axis_count && !request->one_at_a_time; a++)
            for (size_t k = 0; k < file->axes[a].key_count; k++)
                if (sweep_points_covers(file->axes[a].keys[k].path, path))
                    by = file->axes[a].name;
        if (file->replications > 1 && strcmp(path, "replication") == 0)
            by = "replication";
        if (by)
            errors_add(errors, SEVERITY_ERROR, NULL,
                       "--set '%s': the axis '%s' sets it at every point", set, by);
        ok &= !by;
    }
    arena_free(&arena);
    return ok;
}

static bool points_check(struct sweep *sweep, struct errors *errors)
{
    sweep->points = arena_alloc(&sweep->arena, sweep->plan.points * sizeof *sweep->points);
    for (size_t p = 0; p < sweep->plan.points; p++) {
        sweep->points[p] = sweep_check_point(&sweep->check, p);
        sweep->invalid += !sweep->points[p].valid;
    }
    if (sweep->invalid < sweep->plan.points)
        return true;
    for (size_t i = 0; i < sweep->said.count; i++) {
        const struct error *error = &sweep->said.items[i];
        errors_add(errors, error->severity, error->pos.file ? &error->pos : NULL, "%s",
                   error->message);
    }
    return false;
}

bool sweep_open(struct sweep *sweep, const struct sweep_request *request, struct errors *errors)
{
    const struct column **outputs;
    size_t output_count;
    struct file_text base;
    *sweep = (struct sweep){0};
    arena_init(&sweep->arena);
    errors_init(&sweep->said);
    sweep->check.said = &sweep->said;
    sweep->file = sweep_file_load(request->name, request->folders, &sweep->arena, errors);
    if (!sweep->file)
        return false;
    if (request->replications > 0)
        sweep->file->replications = request->replications;
    bool ok = sweep_layout_outputs(sweep->file, &outputs, &output_count, &sweep->arena, errors);
    if (ok && request->output)
        ok = output_check(request->output, outputs, output_count, errors);
    ok = sweep_points_plan(&sweep->plan, sweep->file, request->one_at_a_time, &sweep->arena,
                           errors) &&
         ok && names_check(sweep, outputs, output_count, errors) &&
         sets_check(sweep, request, errors);
    if (!ok ||
        !sweep_check_init(&sweep->check, &sweep->plan, request->sets, request->set_count,
                          &sweep->arena, errors) ||
        !file_read(sweep->check.base, SOURCE_LENGTH_MAX, NULL, &base, &sweep->arena, errors))
        return false;
    sweep->base_text = base.text;
    return points_check(sweep, errors);
}

void sweep_free(struct sweep *sweep)
{
    errors_free(&sweep->said);
    arena_free(&sweep->arena);
}

/* ---- one run ------------------------------------------------------------------------------------
 */

struct work {
    struct sweep *sweep;
    const struct sweep_options *options;
    struct sweep_folder folder;
    struct sweep_layout layout;
    struct sweep_journal journal;
    struct sweep_report *report;
    struct errors *errors;
};

static void outcome_fail(struct sweep_outcome *outcome, const char *reason)
{
    snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
}

/* Whether every check of the audit holds; else the first that does not, as the reason. */
static bool audit_take(struct run *run, struct sweep_outcome *outcome)
{
    size_t count;
    bool ok;
    const struct metrics_check *checks = run_audit(run, &count, &ok);
    for (size_t i = 0; i < count && !ok; i++) {
        if (checks[i].ok)
            continue;
        snprintf(outcome->reason, sizeof outcome->reason, "the audit failed: %s: %s",
                 checks[i].name, checks[i].detail);
        break;
    }
    return ok;
}

static void run_do(struct run *run, const char *path, struct sweep_outcome *outcome,
                   struct errors *errors)
{
    struct run_options options = {.output_path = run_config(run)->output.requests ? path : NULL,
                                  .force = true};
    if (!run_simulate(run, &options, errors) || !audit_take(run, outcome) ||
        !run_write(run, path, true, errors))
        return;
    if (!sweep_check_file(path, &outcome->file, &outcome->bytes)) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    snprintf(outcome->digest, sizeof outcome->digest, "%s", run_totals(run).digest);
    outcome->done = true;
}

/* In the worker. Locks are of no use to files with one writer, and file systems of clusters may
 * have none. */
static void work_do(void *self, size_t task, struct sweep_outcome *outcome)
{
    struct work *work = self;
    const struct sweep_check *check = &work->sweep->check;
    struct errors errors, translated;
    size_t count;
    struct arena arena;
    arena_init(&arena);
    errors_init(&errors);
    errors_init(&translated);
    const char *const *sets = sweep_check_sets(check, task, &count, &arena);
    struct run_request request = {.scenario = check->base, .sets = sets, .set_count = count};
    struct run *run = run_open(&request, &errors);
    size_t point = task / work->layout.replications;
    const char *path = sweep_folder_file(&work->folder, task, &arena);
    if (run)
        run_do(run, path, outcome, &errors);
    /* The run has read them anew: what it has done is of the fingerprint only if they stayed. */
    if (outcome->done && !sweep_check_still(check, point, &work->sweep->points[point].print)) {
        outcome->done = false;
        unlink(path);
        outcome_fail(outcome, "the scenario, or a file it reads, changed while the sweep was at "
                              "work; the same command runs what it touches again");
    }
    if (!outcome->done && errors.error_count > 0) {
        sweep_check_translate(check, point, &errors, &translated);
        outcome_fail(outcome, sweep_check_reason(&translated, &arena));
    }
    if (!outcome->done && outcome->reason[0] == '\0')
        outcome_fail(outcome, "no reason was given");
}

/* ---- all of them --------------------------------------------------------------------------------
 */

static bool journal_put(struct work *work, size_t run, const struct sweep_outcome *outcome)
{
    struct sweep_line line = {.done = outcome->done,
                              .run = work->layout.runs[run].id,
                              .fingerprint = work->layout.runs[run].fingerprint,
                              .file = outcome->file,
                              .digest = outcome->digest,
                              .reason = outcome->reason,
                              .wall_s = outcome->wall_s,
                              .bytes = outcome->bytes,
                              .peak_rss_bytes = outcome->peak_rss_bytes};
    return sweep_journal_put(&work->journal, &line, work->errors);
}

static void failed_tell(const struct work *work, size_t run, const char *reason)
{
    const struct sweep_layout *layout = &work->layout;
    work->report->failed++;
    if (work->options->failed)
        work->options->failed(work->options->self, layout->runs[run].id,
                              layout->labels[run / layout->replications], reason);
}

static bool work_ended(void *self, size_t task, const struct sweep_outcome *outcome)
{
    struct work *work = self;
    if (outcome->done)
        work->report->done++;
    else
        failed_tell(work, task, outcome->reason);
    return journal_put(work, task, outcome);
}

static void work_look(void *self, const struct sweep_pool_view *view)
{
    struct work *work = self;
    work->report->wall_s = view->wall_s;
    struct sweep_progress progress = {.to_do = work->report->to_do,
                                      .done = work->report->done,
                                      .failed = work->report->failed,
                                      .view = *view};
    if (view->running > 0)
        progress.slowest = work->layout.runs[view->slowest].id;
    if (work->options->progress)
        work->options->progress(work->options->self, &progress);
}

static bool run_chosen(const struct sweep_options *options, size_t run)
{
    return (!options->selected || options->selected[run]) &&
           (options->shards == 0 || run % options->shards == options->shard);
}

/* The runs to start, into tasks; runs that cannot start are written down as failed. */
static bool tasks_choose(struct work *work, size_t *tasks, bool *wanted)
{
    bool ok = true;
    for (size_t run = 0; run < work->layout.run_count; run++) {
        const struct sweep_folder_run *state = &work->folder.runs[run];
        const char *invalid = work->layout.runs[run].invalid;
        bool chosen = run_chosen(work->options, run);
        work->report->up_to_date += state->state == SWEEP_DONE;
        work->report->stale += state->state == SWEEP_STALE;
        if (!chosen || state->state == SWEEP_DONE ||
            (work->options->retry_failed && state->state != SWEEP_FAILED))
            continue;
        if (!invalid) {
            wanted[run] = true;
            tasks[work->report->to_do++] = run;
            continue;
        }
        struct sweep_outcome outcome = {.done = false};
        outcome_fail(&outcome, invalid);
        failed_tell(work, run, invalid);
        if (state->state != SWEEP_FAILED || strcmp(state->reason, outcome.reason) != 0)
            ok = journal_put(work, run, &outcome) && ok;
    }
    return ok;
}

static bool tasks_run(struct work *work)
{
    const struct sweep_options *options = work->options;
    size_t runs = work->layout.run_count;
    size_t *tasks = memory_zero(runs, sizeof *tasks);
    bool *wanted = memory_zero(runs, sizeof *wanted);
    bool ok = tasks_choose(work, tasks, wanted);
    struct sweep_pool pool = {.tasks = tasks,
                              .count = work->report->to_do,
                              .jobs = options->jobs,
                              .memory_bytes = options->memory_bytes,
                              .time_s = options->time_s,
                              .work = work_do,
                              .ended = work_ended,
                              .look = work_look,
                              .self = work};
    if (ok && pool.count > 0) {
        work->report->started = true;
        /* Locks are of no use to files with one writer, and file systems of clusters may have none.
         */
        setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
        sweep_folder_clean(&work->folder, wanted);
        ok = sweep_journal_begin(&work->journal, work->sweep->check.program.hex, runs, pool.count,
                                 options->jobs, work->errors);
        if (ok)
            work->report->end = sweep_pool_run(&pool, work->errors);
        if (ok && work->report->end != SWEEP_POOL_KILLED && work->errors->error_count == 0)
            ok = sweep_journal_end(&work->journal, work->report->done, work->report->failed,
                                   work->errors);
    }
    free(tasks);
    free(wanted);
    return ok && work->report->end == SWEEP_POOL_ALL && work->report->failed == 0;
}

bool sweep_run(struct sweep *sweep, const struct sweep_options *options,
               struct sweep_report *report, struct errors *errors)
{
    struct arena *arena = &sweep->arena;
    struct work *work = arena_alloc(arena, sizeof *work);
    *work = (struct work){.sweep = sweep, .options = options, .report = report, .errors = errors};
    *report = (struct sweep_report){.runs = sweep->plan.runs};
    const char *journal = arena_printf(arena, "%s/journal.jsonl", options->folder);
    if (options->shards > 0)
        journal = arena_printf(arena, "%s/journal-%zuof%zu.jsonl", options->folder, options->shard,
                               options->shards);
    if (!sweep_folder_make(options->folder, errors) ||
        !sweep_journal_open(&work->journal, journal, errors))
        return false;
    bool ok = sweep_layout_write(&sweep->plan, sweep->points, sweep->base_text, options->folder,
                                 errors) &&
              sweep_layout_read(&work->layout, options->folder, arena, errors);
    if (ok) {
        sweep_folder_scan(&work->folder, options->folder, &work->layout, arena, errors);
        ok = tasks_run(work);
    }
    sweep_journal_close(&work->journal);
    return ok;
}

bool sweep_merge(const char *path, struct sweep_report *report, struct sweep_results *results,
                 struct arena *arena, struct errors *errors)
{
    struct sweep_layout *layout = arena_alloc(arena, sizeof *layout);
    struct sweep_folder folder;
    struct sweep_results own;
    struct sweep_results *into = results ? results : &own;
    if (!sweep_layout_read(layout, path, arena, errors))
        return false;
    sweep_folder_scan(&folder, path, layout, arena, errors);
    sweep_results_collect(into, &folder, arena, errors);
    report->runs = layout->run_count;
    report->all_done = into->done;
    report->all_failed = into->failed;
    report->all_missing = into->missing;
    return sweep_results_write(into, arena_printf(arena, "%s/sweep.h5", path), errors);
}

/* ---- how long it may take -----------------------------------------------------------------------
 */

struct probe {
    double requests_per_s, requests;
};

struct probe_self {
    int fd;
    double requests;
};

/* In the child: tells the rate after a second, or at the end, and is gone. */
static void probe_look(void *self_, const struct run_progress *progress)
{
    const struct probe_self *self = self_;
    if (progress->wall_s < 1 && !progress->finished)
        return;
    struct probe probe = {.requests_per_s = (double)progress->arrived / progress->wall_s,
                          .requests = self->requests};
    ssize_t written = write(self->fd, &probe, sizeof probe);
    _exit(written == (ssize_t)sizeof probe ? 0 : 1);
}

static _Noreturn void probe_child(struct sweep *sweep, size_t run_index, int fd)
{
    struct errors errors;
    struct arena arena;
    size_t count;
    errors_init(&errors);
    arena_init(&arena);
    const char *const *sets = sweep_check_sets(&sweep->check, run_index, &count, &arena);
    struct run_request request = {.scenario = sweep->check.base, .sets = sets, .set_count = count};
    struct run *run = run_open(&request, &errors);
    if (run) {
        struct probe_self self = {.fd = fd};
        for (size_t c = 0; c < run_config(run)->workload.count; c++)
            self.requests += workload_expected(run_workload(run), c, 0, run_horizon(run));
        struct run_options options = {.progress = probe_look, .progress_self = &self};
        run_simulate(run, &options, &errors);
    }
    _exit(1);
}

static struct probe probe_take(struct sweep *sweep, size_t run_index)
{
    struct probe probe = {NAN, NAN};
    int ends[2], status;
    if (pipe(ends) != 0)
        return probe;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        probe_child(sweep, run_index, ends[1]);
    close(ends[1]);
    if (pid > 0 && read(ends[0], &probe, sizeof probe) != (ssize_t)sizeof probe)
        probe = (struct probe){NAN, NAN};
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return probe;
}

size_t sweep_chosen(const struct sweep *sweep, const struct sweep_options *options, size_t point)
{
    size_t replications = sweep->plan.replications, chosen = 0;
    for (size_t k = 0; k < replications; k++)
        chosen += run_chosen(options, point * replications + k);
    return chosen;
}

struct sweep_estimate sweep_estimate(struct sweep *sweep, const struct sweep_options *options)
{
    struct probe probe = {NAN, NAN};
    struct sweep_estimate estimate = {.requests = 0, .requests_per_s = NAN};
    for (size_t p = 0; p < sweep->plan.points && isnan(probe.requests_per_s); p++) {
        /* The middle first: ends are extreme. */
        size_t point = (p + sweep->plan.points / 2) % sweep->plan.points;
        if (sweep->points[point].valid && sweep_chosen(sweep, options, point) > 0)
            probe = probe_take(sweep, point * sweep->plan.replications);
    }
    for (size_t p = 0; p < sweep->plan.points; p++) {
        double requests = sweep->points[p].requests;
        if (sweep->points[p].valid)
            estimate.requests += (isnan(requests) ? probe.requests : requests) *
                                 (double)sweep_chosen(sweep, options, p);
    }
    estimate.requests_per_s = probe.requests_per_s;
    return estimate;
}
