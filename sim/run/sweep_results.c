#include "sim/run/sweep_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/file.h"
#include "sim/trace/trace_sweep.h"

enum { IMAGE_MAX = 1 << 30 };

/* ---- reading ------------------------------------------------------------------------------------
 */

static bool run_read(struct sweep_results *results, const struct sweep_folder *folder, size_t run,
                     double *values, struct arena *arena, struct errors *errors)
{
    const struct sweep_layout *layout = results->layout;
    struct arena scratch;
    struct file_text file;
    char digest[17] = "";
    arena_init(&scratch);
    const char *path = sweep_folder_file(folder, run, &scratch);
    bool ok = file_read(path, IMAGE_MAX, NULL, &file, &scratch, errors);
    if (ok &&
        (strcmp(sweep_check_bytes(file.text, file.length).hex, folder->runs[run].file.hex) != 0 ||
         !trace_sweep_read(file.text, file.length, layout->outputs, layout->output_count, values,
                           digest))) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%s is no longer the file that was written", path);
        ok = false;
    }
    if (ok)
        results->digests[run] = arena_copy(arena, digest);
    for (size_t i = 0; ok && i < layout->output_count; i++)
        results->values[i * layout->run_count + run] = values[i];
    arena_free(&scratch);
    return ok;
}

void sweep_results_collect(struct sweep_results *results, const struct sweep_folder *folder,
                           struct arena *arena, struct errors *errors)
{
    const struct sweep_layout *layout = folder->layout;
    size_t count = layout->output_count * layout->run_count;
    *results = (struct sweep_results){
        .layout = layout,
        .values = arena_alloc(arena, count * sizeof *results->values),
        .status = arena_alloc(arena, layout->run_count * sizeof *results->status),
        .digests = arena_alloc(arena, layout->run_count * sizeof *results->digests)};
    double *values = memory_alloc((layout->output_count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++)
        results->values[i] = NAN;
    for (size_t run = 0; run < layout->run_count; run++) {
        enum sweep_state state = folder->runs[run].state;
        results->digests[run] = "";
        bool done = state == SWEEP_DONE && run_read(results, folder, run, values, arena, errors);
        results->status[run] = done                    ? TRACE_SWEEP_DONE
                               : state == SWEEP_FAILED ? TRACE_SWEEP_FAILED
                                                       : TRACE_SWEEP_MISSING;
        results->done += results->status[run] == TRACE_SWEEP_DONE;
        results->failed += results->status[run] == TRACE_SWEEP_FAILED;
        results->missing += results->status[run] == TRACE_SWEEP_MISSING;
    }
    free(values);
}

struct interval sweep_results_interval(const struct sweep_results *results, size_t output,
                                       size_t point)
{
    const struct sweep_layout *layout = results->layout;
    double *values = memory_alloc(layout->replications * sizeof *values);
    size_t count = 0;
    for (size_t r = 0; r < layout->replications; r++) {
        double value =
            results->values[output * layout->run_count + point * layout->replications + r];
        if (!isnan(value))
            values[count++] = value;
    }
    struct interval interval = interval_of(values, count);
    free(values);
    return interval;
}

/* ---- one at a time ------------------------------------------------------------------------------
 */

static int effect_compare(const void *a_, const void *b_)
{
    const struct sweep_effect *a = a_, *b = b_;
    double x = isnan(a->swing) ? -1 : a->swing, y = isnan(b->swing) ? -1 : b->swing;
    if (x != y)
        return x > y ? -1 : 1;
    return a->input < b->input ? -1 : a->input > b->input;
}

static struct sweep_effect effect_of(const struct sweep_results *results, size_t output,
                                     size_t input)
{
    const struct sweep_layout *layout = results->layout;
    size_t first = 1;
    for (size_t i = 0; i < input; i++)
        first += layout->input_values[i];
    double base = sweep_results_interval(results, output, 0).mean;
    struct sweep_effect effect = {
        .input = input, .base = base, .low = base, .high = base, .swing = NAN};
    for (size_t p = first; p < first + layout->input_values[input] && p < layout->points; p++) {
        double value = sweep_results_interval(results, output, p).mean;
        if (isnan(value))
            continue;
        if (isnan(effect.low) || value < effect.low) {
            effect.low = value;
            effect.low_at = p;
        }
        if (isnan(effect.high) || value > effect.high) {
            effect.high = value;
            effect.high_at = p;
        }
    }
    effect.swing = effect.high - effect.low;
    return effect;
}

void sweep_results_effects(const struct sweep_results *results, size_t output,
                           struct sweep_effect *effects)
{
    size_t count = results->layout->input_count;
    for (size_t i = 0; i < count; i++)
        effects[i] = effect_of(results, output, i);
    qsort(effects, count, sizeof *effects, effect_compare);
}

/* ---- sweep.h5 -----------------------------------------------------------------------------------
 */

/* What is handed to the writer; the arrays live in the arena. */
struct output {
    const struct sweep_results *results;
    struct arena *arena;
    struct trace_sweep sweep;
    struct trace_sweep_axis axes[SWEEP_FILE_AXES_MAX + 1];
    struct trace_sweep_table table;
    struct trace_text texts[2];
    struct trace_meta meta[8];
};

static void axes_fill(struct output *o)
{
    const struct sweep_layout *layout = o->results->layout;
    for (size_t a = 0; a < layout->axis_count; a++) {
        const struct sweep_axis *axis = &layout->axes[a];
        struct trace_sweep_column *columns =
            arena_alloc(o->arena, axis->column_count * sizeof *columns);
        for (size_t c = 0; c < axis->column_count; c++) {
            const struct sweep_column *from = &axis->columns[c];
            columns[c] = (struct trace_sweep_column){.name = from->name,
                                                     .unit = from->unit,
                                                     .long_name = from->long_name,
                                                     .key = from->key,
                                                     .numbers = from->numbers,
                                                     .labels = from->labels};
        }
        o->axes[a] = (struct trace_sweep_axis){.name = axis->name,
                                               .length = axis->count,
                                               .columns = columns,
                                               .column_count = axis->column_count};
    }
    o->sweep.axes = o->axes;
    o->sweep.axis_count = layout->axis_count;
}

/* Mean and interval of one output over the replications, on the other axes. */
static void replicated_fill(struct output *o, size_t output, struct trace_sweep_variable *variables)
{
    const struct sweep_layout *layout = o->results->layout;
    const struct column *column = layout->outputs[output];
    double *mean = arena_alloc(o->arena, layout->points * sizeof *mean);
    double *half = arena_alloc(o->arena, layout->points * sizeof *half);
    for (size_t p = 0; p < layout->points; p++) {
        struct interval interval = sweep_results_interval(o->results, output, p);
        mean[p] = interval.mean;
        half[p] = interval.half;
    }
    variables[0] = (struct trace_sweep_variable){
        .name = arena_printf(o->arena, "%s_rep_mean", column->name),
        .long_name = arena_printf(o->arena, "%s: mean of the replications", column->long_name),
        .doc = "Mean over the replications that are done.",
        .values = mean};
    variables[1] = (struct trace_sweep_variable){
        .name = arena_printf(o->arena, "%s_rep_half", column->name),
        .long_name = arena_printf(o->arena, "%s: half of the interval", column->long_name),
        .doc = "Half the width of the 95 % interval of that mean, by Student's t.",
        .values = half};
    for (size_t i = 0; i < 2; i++) {
        variables[i].unit = column->type == COLUMN_TIME ? "s" : column->unit;
        variables[i].rank = layout->axis_count - 1;
    }
}

static void variables_fill(struct output *o)
{
    const struct sweep_layout *layout = o->results->layout;
    bool replicated = layout->replications > 1;
    size_t each = replicated ? 3 : 1;
    struct trace_sweep_variable *variables =
        arena_alloc(o->arena, layout->output_count * each * sizeof *variables);
    for (size_t i = 0; i < layout->output_count; i++) {
        const struct column *column = layout->outputs[i];
        variables[i * each] =
            (struct trace_sweep_variable){.name = column->name,
                                          .unit = column->type == COLUMN_TIME ? "s" : column->unit,
                                          .long_name = column->long_name,
                                          .doc = column->doc,
                                          .values = o->results->values + i * layout->run_count,
                                          .rank = layout->axis_count};
        if (replicated)
            replicated_fill(o, i, &variables[i * each + 1]);
    }
    o->sweep.variables = variables;
    o->sweep.variable_count = layout->output_count * each;
}

/* Of every output and input: the base, the least and the largest. */
static void effects_fill(struct output *o)
{
    static const char *const names[] = {"base", "low", "high", "swing"};
    const struct sweep_layout *layout = o->results->layout;
    size_t inputs = layout->input_count;
    if (!layout->one_at_a_time || inputs == 0)
        return;
    struct trace_sweep_variable *variables =
        arena_alloc(o->arena, layout->output_count * 4 * sizeof *variables);
    struct sweep_effect effects[SWEEP_FILE_AXES_MAX];
    for (size_t i = 0; i < layout->output_count; i++) {
        double *values = arena_alloc(o->arena, inputs * 4 * sizeof *values);
        sweep_results_effects(o->results, i, effects);
        for (size_t k = 0; k < inputs; k++) {
            values[0 * inputs + effects[k].input] = effects[k].base;
            values[1 * inputs + effects[k].input] = effects[k].low;
            values[2 * inputs + effects[k].input] = effects[k].high;
            values[3 * inputs + effects[k].input] = effects[k].swing;
        }
        const struct column *column = layout->outputs[i];
        for (size_t n = 0; n < 4; n++)
            variables[i * 4 + n] = (struct trace_sweep_variable){
                .name = arena_printf(o->arena, "%s_%s", column->name, names[n]),
                .unit = column->type == COLUMN_TIME ? "s" : column->unit,
                .long_name = arena_printf(o->arena, "%s: %s", column->long_name, names[n]),
                .doc = column->doc,
                .values = values + n * inputs,
                .rank = 1};
    }
    o->table = (struct trace_sweep_table){
        .group = "sensitivity",
        .doc = "What changing one input alone does: each output with nothing changed (base), its "
               "least and its largest over the input's values and the base, and their difference.",
        .dimension = "input",
        .labels = layout->inputs,
        .rows = inputs,
        .columns = variables,
        .column_count = layout->output_count * 4};
    o->sweep.table = &o->table;
}

static void meta_add(struct output *o, const char *name, const char *text, uint64_t number,
                     const char *doc)
{
    o->meta[o->sweep.meta_count++] =
        (struct trace_meta){.name = name, .text = text, .number = number, .doc = doc};
}

bool sweep_results_write(const struct sweep_results *results, const char *path,
                         struct errors *errors)
{
    struct arena arena;
    const struct sweep_layout *layout = results->layout;
    arena_init(&arena);
    struct output *o = arena_alloc(&arena, sizeof *o);
    *o = (struct output){.results = results, .arena = &arena};
    o->sweep.title = layout->description[0] ? layout->description : layout->name;
    o->sweep.status = results->status;
    o->sweep.digests = results->digests;
    axes_fill(o);
    variables_fill(o);
    effects_fill(o);
    o->texts[0] = (struct trace_text){"scenario", "sweep", layout->sweep_text,
                                      "The sweep's file as it was given"};
    o->texts[1] = (struct trace_text){"scenario", "base", layout->base_text,
                                      "The base scenario's file as it was given"};
    o->sweep.texts = o->texts;
    o->sweep.text_count = 2;
    o->sweep.meta = o->meta;
    meta_add(o, "name", layout->name, 0, "The sweep's name");
    meta_add(o, "version", layout->version, 0, "Version of fleetsim");
    meta_add(o, "complete", NULL, results->done == layout->run_count, "1 when every run is done");
    meta_add(o, "runs", NULL, layout->run_count, "Runs of the sweep");
    meta_add(o, "runs_done", NULL, results->done, "Runs that are done");
    bool ok = trace_sweep_write(&o->sweep, path, errors);
    arena_free(&arena);
    return ok;
}
