#include "sim/run/sweep_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "sim/metrics/metrics.h"
#include "sim/run/version.h"

enum { SCHEMA = 1, PATH_BYTES = 4096 };

/* ---- outputs ------------------------------------------------------------------------------------
 */

static const struct column *output_find(const char *name)
{
    for (const struct column *c = metrics_summary_columns; c->type != COLUMN_END; c++)
        if (c->type != COLUMN_TEXT && strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static const char *output_nearest(const char *name, struct arena *arena)
{
    size_t count = 0;
    const char **names =
        arena_alloc(arena, (column_count(metrics_summary_columns) + 1) * sizeof *names);
    for (const struct column *c = metrics_summary_columns; c->type != COLUMN_END; c++)
        if (c->type != COLUMN_TEXT)
            names[count++] = c->name;
    return errors_nearest(name, names);
}

bool sweep_layout_outputs(const struct sweep_file *file, const struct column ***outputs,
                          size_t *count, struct arena *arena, struct errors *errors)
{
    bool ok = true;
    size_t all = column_count(metrics_summary_columns);
    *outputs = arena_alloc(arena, (all + file->outputs.count) * sizeof **outputs);
    *count = 0;
    for (const struct column *c = metrics_summary_columns;
         file->outputs.count == 0 && c->type != COLUMN_END; c++)
        if (c->type != COLUMN_TEXT)
            (*outputs)[(*count)++] = c;
    for (size_t i = 0; i < file->outputs.count; i++) {
        const char *name = ((const char *const *)file->outputs.items)[i];
        const struct column *column = output_find(name);
        const char *near = column ? NULL : output_nearest(name, arena);
        bool twice = false;
        for (size_t k = 0; k < *count; k++)
            twice |= (*outputs)[k] == column;
        if (!column)
            sweep_file_error(file, file->output_offsets[i], errors,
                             "'outputs': no column '%s' in the summary%s%s%s", name,
                             near ? ", did you mean '" : "; docs/output.md lists them",
                             near ? near : "", near ? "'?" : "");
        else if (twice)
            sweep_file_error(file, file->output_offsets[i], errors,
                             "'outputs': '%s' is there twice", name);
        else
            (*outputs)[(*count)++] = column;
        ok &= column && !twice;
    }
    return ok;
}

/* ---- writing ------------------------------------------------------------------------------------
 */

static bool write_whole(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            text += written;
            length -= (size_t)written;
        }
    }
    return fsync(fd) == 0;
}

/* Whether the file is there with these bytes: shards need not write what is the same for all. */
static bool file_holds(const char *path, const char *text, size_t length)
{
    struct sweep_print print;
    uint64_t bytes;
    return sweep_check_file(path, &print, &bytes) && bytes == length &&
           strcmp(print.hex, sweep_check_bytes(text, length).hex) == 0;
}

/* Processes of other machines may have the same number: the machine's name tells them apart. */
static bool file_replace(const char *path, const char *text, size_t length, struct errors *errors)
{
    char temporary[PATH_BYTES + 128], machine[64] = "";
    gethostname(machine, sizeof machine - 1);
    snprintf(temporary, sizeof temporary, "%s.tmp-%s-%ld", path, machine, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write_whole(fd, text, length);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    if (ok && rename(temporary, path) != 0) {
        ok = false;
        reason = errno;
    }
    if (!ok) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, strerror(reason));
        if (fd >= 0)
            unlink(temporary);
    }
    return ok;
}

static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    return json ? json : json_string("");
}

/* The program's own writer (sim/cli/json.h) has functions called json_object and json_real, which
 * the linker would take for the library's. */
static json_t *object_new(void)
{
    return json_pack("{}");
}

static json_t *real_new(double value)
{
    return json_pack("f", value);
}

static json_t *column_json(const struct sweep_column *column, size_t count)
{
    json_t *object = object_new(), *labels = json_array();
    json_object_set_new(object, "name", text_json(column->name));
    json_object_set_new(object, "unit", text_json(column->unit));
    json_object_set_new(object, "long_name", text_json(column->long_name));
    json_object_set_new(object, "key", text_json(column->key));
    for (size_t i = 0; column->labels && i < count; i++)
        json_array_append_new(labels, text_json(column->labels[i]));
    json_object_set_new(object, "labels", labels);
    if (column->numbers) {
        json_t *numbers = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(numbers, real_new(column->numbers[i]));
        json_object_set_new(object, "numbers", numbers);
    }
    return object;
}

static json_t *axis_json(const struct sweep_axis *axis)
{
    json_t *object = object_new(), *columns = json_array();
    json_object_set_new(object, "name", text_json(axis->name));
    json_object_set_new(object, "length", json_integer((json_int_t)axis->count));
    for (size_t c = 0; c < axis->column_count; c++)
        json_array_append_new(columns, column_json(&axis->columns[c], axis->count));
    json_object_set_new(object, "columns", columns);
    return object;
}

static json_t *axes_json(const struct sweep_plan *plan)
{
    json_t *axes = json_array();
    for (size_t a = 0; a < plan->axis_count; a++)
        json_array_append_new(axes, axis_json(&plan->axes[a]));
    if (plan->replications > 1) {
        double *numbers = memory_alloc(plan->replications * sizeof *numbers);
        for (size_t i = 0; i < plan->replications; i++)
            numbers[i] = (double)i;
        struct sweep_column column = {.name = "replication",
                                      .unit = "1",
                                      .long_name = "replication",
                                      .key = "replication",
                                      .numbers = numbers};
        struct sweep_axis axis = {.name = "replication",
                                  .count = plan->replications,
                                  .columns = &column,
                                  .column_count = 1};
        json_array_append_new(axes, axis_json(&axis));
        free(numbers);
    }
    return axes;
}

static json_t *points_json(const struct sweep_plan *plan, const struct sweep_checked *points)
{
    json_t *list = json_array();
    for (size_t p = 0; p < plan->points; p++) {
        struct arena arena;
        arena_init(&arena);
        size_t count;
        const struct sweep_set *sets = sweep_points_sets(plan, p, &count, &arena);
        json_t *object = object_new(), *texts = json_array();
        json_object_set_new(object, "point", text_json(sweep_points_label(plan, p, &arena)));
        for (size_t i = 0; i < count; i++)
            json_array_append_new(texts, text_json(sets[i].text));
        json_object_set_new(object, "set", texts);
        json_object_set_new(object, "fingerprint", text_json(points[p].print.hex));
        if (!points[p].valid)
            json_object_set_new(object, "invalid", text_json(points[p].reason));
        json_array_append_new(list, object);
        arena_free(&arena);
    }
    return list;
}

bool sweep_layout_write(const struct sweep_plan *plan, const struct sweep_checked *points,
                        const char *base_text, const char *folder, struct errors *errors)
{
    json_t *root = object_new(), *outputs = json_array(), *inputs = json_array();
    for (size_t i = 0; i < plan->file->outputs.count; i++)
        json_array_append_new(outputs,
                              text_json(((const char *const *)plan->file->outputs.items)[i]));
    for (size_t i = 0; plan->one_at_a_time && i < plan->input_count; i++)
        json_array_append_new(inputs, json_pack("{s:s, s:I}", "name", plan->inputs[i].axis.name,
                                                "values", (json_int_t)plan->inputs[i].axis.count));
    json_object_set_new(root, "schema", json_integer(SCHEMA));
    json_object_set_new(root, "name", text_json(plan->file->name));
    json_object_set_new(root, "description", text_json(plan->file->description));
    json_object_set_new(root, "version", text_json(VERSION_TEXT));
    json_object_set_new(root, "replications", json_integer((json_int_t)plan->replications));
    json_object_set_new(root, "one_at_a_time", json_boolean(plan->one_at_a_time));
    json_object_set_new(root, "inputs", inputs);
    json_object_set_new(root, "outputs", outputs);
    json_object_set_new(root, "axes", axes_json(plan));
    json_object_set_new(root, "points", points_json(plan, points));
    json_object_set_new(root, "sweep", text_json(plan->file->text));
    json_object_set_new(root, "base", text_json(base_text));
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    json_decref(root);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/points.json", folder);
    bool ok =
        file_holds(path, text, strlen(text)) || file_replace(path, text, strlen(text), errors);
    free(text);
    return ok;
}

/* ---- reading ------------------------------------------------------------------------------------
 */

static const char *text_of(const json_t *object, const char *key, struct arena *arena)
{
    const char *text = json_string_value(json_object_get(object, key));
    return arena_copy(arena, text ? text : "");
}

static void column_read(const json_t *object, size_t count, struct sweep_column *column,
                        struct arena *arena)
{
    const json_t *labels = json_object_get(object, "labels");
    const json_t *numbers = json_object_get(object, "numbers");
    *column = (struct sweep_column){.name = text_of(object, "name", arena),
                                    .unit = text_of(object, "unit", arena),
                                    .long_name = text_of(object, "long_name", arena),
                                    .key = text_of(object, "key", arena)};
    const char **texts = arena_alloc(arena, count * sizeof *texts);
    double *values = arena_alloc(arena, count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(labels, i));
        texts[i] = arena_copy(arena, text ? text : "");
        values[i] = json_number_value(json_array_get(numbers, i));
    }
    column->labels = texts;
    column->numbers = numbers ? values : NULL;
}

static bool axes_read(struct sweep_layout *layout, const json_t *axes, struct arena *arena)
{
    double runs = 1;
    if (json_array_size(axes) > SWEEP_FILE_AXES_MAX + 1)
        return false;
    for (size_t a = 0; a < json_array_size(axes); a++) {
        const json_t *object = json_array_get(axes, a);
        const json_t *columns = json_object_get(object, "columns");
        struct sweep_axis *axis = &layout->axes[layout->axis_count++];
        json_int_t length = json_integer_value(json_object_get(object, "length"));
        size_t count = json_array_size(columns);
        if (length < 1 || length > SWEEP_POINTS_RUNS_MAX || count < 1)
            return false;
        *axis = (struct sweep_axis){.name = text_of(object, "name", arena),
                                    .count = (size_t)length,
                                    .column_count = count,
                                    .columns = arena_alloc(arena, count * sizeof *axis->columns)};
        for (size_t c = 0; c < count; c++)
            column_read(json_array_get(columns, c), axis->count, &axis->columns[c], arena);
        runs *= (double)length;
    }
    layout->run_count = runs <= SWEEP_POINTS_RUNS_MAX ? (size_t)runs : 0;
    return layout->run_count > 0;
}

static bool points_read(struct sweep_layout *layout, const json_t *points, struct arena *arena)
{
    struct sweep_plan ids = {.replications = layout->replications};
    layout->points = layout->run_count / layout->replications;
    if (json_array_size(points) != layout->points ||
        layout->points * layout->replications != layout->run_count)
        return false;
    layout->labels = arena_alloc(arena, layout->points * sizeof *layout->labels);
    layout->runs = arena_alloc(arena, layout->run_count * sizeof *layout->runs);
    for (size_t p = 0; p < layout->points; p++) {
        const json_t *object = json_array_get(points, p);
        const char *hex = json_string_value(json_object_get(object, "fingerprint"));
        struct sweep_checked checked = {.valid = true};
        layout->labels[p] = text_of(object, "point", arena);
        if (!hex || strlen(hex) != SWEEP_PRINT_MAX - 1)
            return false;
        memcpy(checked.print.hex, hex, SWEEP_PRINT_MAX);
        for (size_t r = 0; r < layout->replications; r++) {
            size_t run = p * layout->replications + r;
            char id[SWEEP_POINTS_ID_MAX];
            layout->runs[run] = (struct sweep_layout_run){
                .id = arena_copy(arena, sweep_points_id(&ids, run, id)),
                .fingerprint = sweep_check_print(&ids, run, &checked),
                .invalid =
                    json_object_get(object, "invalid") ? text_of(object, "invalid", arena) : NULL};
        }
    }
    return true;
}

static bool outputs_read(struct sweep_layout *layout, const json_t *outputs, struct arena *arena)
{
    size_t count = json_array_size(outputs), all = column_count(metrics_summary_columns);
    layout->outputs = arena_alloc(arena, (all + count) * sizeof *layout->outputs);
    for (const struct column *c = metrics_summary_columns; count == 0 && c->type != COLUMN_END; c++)
        if (c->type != COLUMN_TEXT)
            layout->outputs[layout->output_count++] = c;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(outputs, i));
        const struct column *column = name ? output_find(name) : NULL;
        if (!column)
            return false;
        layout->outputs[layout->output_count++] = column;
    }
    return true;
}

static void inputs_read(struct sweep_layout *layout, const json_t *inputs, struct arena *arena)
{
    for (size_t i = 0; i < json_array_size(inputs) && i < SWEEP_FILE_AXES_MAX; i++) {
        const json_t *object = json_array_get(inputs, i);
        layout->inputs[i] = text_of(object, "name", arena);
        layout->input_values[i] = (size_t)json_integer_value(json_object_get(object, "values"));
        layout->input_count++;
    }
}

bool sweep_layout_read(struct sweep_layout *layout, const char *folder, struct arena *arena,
                       struct errors *errors)
{
    const char *path = arena_printf(arena, "%s/points.json", folder);
    json_error_t error;
    if (access(path, R_OK) != 0) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%s is no folder of a sweep: %s: %s", folder, path,
                   strerror(errno));
        return false;
    }
    json_t *root = json_load_file(path, 0, &error);
    *layout = (struct sweep_layout){
        .name = text_of(root, "name", arena),
        .description = text_of(root, "description", arena),
        .version = text_of(root, "version", arena),
        .sweep_text = text_of(root, "sweep", arena),
        .base_text = text_of(root, "base", arena),
        .one_at_a_time = json_is_true(json_object_get(root, "one_at_a_time")),
        .replications = (size_t)json_integer_value(json_object_get(root, "replications"))};
    bool ok = root && json_integer_value(json_object_get(root, "schema")) == SCHEMA &&
              layout->replications >= 1 &&
              axes_read(layout, json_object_get(root, "axes"), arena) &&
              points_read(layout, json_object_get(root, "points"), arena) &&
              outputs_read(layout, json_object_get(root, "outputs"), arena);
    if (ok)
        inputs_read(layout, json_object_get(root, "inputs"), arena);
    else
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "%s is not what this version writes%s%s; `fleetsim sweep` writes it anew", path,
                   root ? "" : ": ", root ? "" : error.text);
    json_decref(root);
    return ok;
}

size_t sweep_layout_find(const struct sweep_layout *layout, const char *id)
{
    char *end;
    if (id[0] != 'p')
        return SIZE_MAX;
    unsigned long point = strtoul(id + 1, &end, 10), replication = 0;
    if (strncmp(end, "-r", 2) == 0)
        replication = strtoul(end + 2, &end, 10);
    if (point >= layout->points || replication >= layout->replications)
        return SIZE_MAX;
    size_t run = (size_t)point * layout->replications + (size_t)replication;
    return strcmp(layout->runs[run].id, id) == 0 ? run : SIZE_MAX;
}
