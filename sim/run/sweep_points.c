#include "sim/run/sweep_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_qrng.h>

#include "sim/base/check.h"
#include "sim/base/units.h"

enum { VALUES_MAX = 100000, LABEL_MAX = 60 };

struct planner {
    struct sweep_plan *plan;
    struct arena *arena;
    struct errors *errors;
};

/* ---- numbers with units -------------------------------------------------------------------------
 */

/* "10 s" as 10 and "s". */
struct side {
    double number;
    const char *unit;
};

static bool side_read(const struct planner *p, const struct sweep_file_axis *axis, const char *text,
                      struct side *side)
{
    char *end;
    side->number = strtod(text, &end);
    end += strspn(end, " ");
    side->unit = end;
    if (end == text || !isfinite(side->number)) {
        sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                         "'%s' is not a number such as 10 or 10 s", text);
        return false;
    }
    return true;
}

static bool sides_read(const struct planner *p, const struct sweep_file_axis *axis,
                       const char *from, const char *to, int scale, struct side sides[2])
{
    if (!side_read(p, axis, from, &sides[0]) || !side_read(p, axis, to, &sides[1]))
        return false;
    if (strcmp(sides[0].unit, sides[1].unit) != 0) {
        sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                         "'%s' and '%s' are not in the same unit", from, to);
        return false;
    }
    if (scale == SWEEP_FILE_LOG && !(sides[0].number > 0 && sides[1].number > 0)) {
        sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                         "a log scale goes between numbers above 0, not from %s to %s", from, to);
        return false;
    }
    return true;
}

/* A share t of the way between two sides. */
static double side_between(const struct side sides[2], int scale, double t)
{
    double a = sides[0].number, b = sides[1].number;
    if (t <= 0 || t >= 1)
        return t <= 0 ? a : b;
    return scale == SWEEP_FILE_LOG ? a * pow(b / a, t) : a + (b - a) * t;
}

/* Twelve digits: what is beyond them is the noise of the arithmetic, but for whole numbers, which
 * are exact. */
static struct sweep_file_value number_value(const struct planner *p, double number,
                                            const char *unit, bool rounded, uint32_t offset)
{
    struct sweep_file_mark *mark = arena_alloc(p->arena, sizeof *mark);
    *mark = (struct sweep_file_mark){.text = 0, .offset = offset};
    double whole = nearbyint(number);
    if (rounded)
        number = whole;
    const char *text =
        number == whole && fabs(number) < 0x1p53
            ? arena_printf(p->arena, "%.0f%s%s", number + 0.0, unit[0] ? " " : "", unit)
            : arena_printf(p->arena, "%.12g%s%s", number, unit[0] ? " " : "", unit);
    return (struct sweep_file_value){
        .text = text, .scalar = true, .offset = offset, .marks = mark, .mark_count = 1};
}

/* ---- ranges and samples -------------------------------------------------------------------------
 */

/* How many values a range has; 0 after an error. */
static size_t range_count(const struct planner *p, const struct sweep_file_axis *axis,
                          const struct side sides[2], double *step)
{
    const struct sweep_file_span *r = &axis->range;
    struct side by;
    if (!r->step)
        return (size_t)r->count;
    if (!side_read(p, axis, r->step, &by))
        return 0;
    bool log_scale = r->scale == SWEEP_FILE_LOG;
    if (by.unit[0] && (log_scale || strcmp(by.unit, sides[0].unit) != 0)) {
        sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                         log_scale ? "a step of %s: what `scale: log` multiplies by has no unit"
                                   : "a step of %s is not in the unit of from and to",
                         r->step);
        return 0;
    }
    double way =
        log_scale ? log(sides[1].number / sides[0].number) : sides[1].number - sides[0].number;
    double one = log_scale ? log(by.number) : by.number;
    double count = floor(way / one + 1e-9) + 1;
    if (!(count >= 1 && count <= VALUES_MAX) || (log_scale && by.number <= 0)) {
        sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                         "a step of %s does not lead from %s to %s in 1 to %d values", r->step,
                         r->from, r->to, VALUES_MAX);
        return 0;
    }
    *step = by.number;
    return (size_t)count;
}

static bool range_expand(const struct planner *p, struct sweep_input *input)
{
    const struct sweep_file_axis *axis = input->from;
    const struct sweep_file_span *r = &axis->range;
    struct side sides[2];
    double step = NAN;
    if (!sides_read(p, axis, r->from, r->to, r->scale, sides))
        return false;
    size_t count = range_count(p, axis, sides, &step), kept = 0;
    input->values = arena_alloc(p->arena, count * sizeof *input->values);
    for (size_t i = 0; i < count; i++) {
        double number = side_between(sides, r->scale, (double)i / (double)(count - 1));
        if (r->step)
            number = r->scale == SWEEP_FILE_LOG ? sides[0].number * pow(step, (double)i)
                                                : sides[0].number + (double)i * step;
        input->values[kept] = number_value(p, number, sides[0].unit, r->round, axis->kind_offset);
        /* Rounded values may meet. */
        bool same = kept > 0 && strcmp(input->values[kept].text, input->values[kept - 1].text) == 0;
        if (same && !r->round) {
            sweep_file_error(p->plan->file, axis->kind_offset, p->errors,
                             "a range from %s to %s has the value %s twice", r->from, r->to,
                             input->values[kept].text);
            return false;
        }
        kept += !same;
    }
    input->columns = 1;
    input->axis.count = kept;
    return count > 0;
}

static bool samples_expand(const struct planner *p, struct sweep_input *input)
{
    const struct sweep_file_axis *axis = input->from;
    const struct sweep_file_samples *s = &axis->samples;
    size_t keys = axis->key_count, count = (size_t)s->count;
    struct side sides[SWEEP_FILE_KEYS_MAX][2];
    int scales[SWEEP_FILE_KEYS_MAX] = {0};
    bool ok = true;
    for (size_t k = 0; k < keys; k++) {
        if (s->scale.count > 0)
            scales[k] = ((const int *)s->scale.items)[k];
        ok &= sides_read(p, axis, ((const char *const *)s->from.items)[k],
                         ((const char *const *)s->to.items)[k], scales[k], sides[k]);
    }
    if (!ok)
        return false;
    gsl_qrng *sequence = gsl_qrng_alloc(gsl_qrng_sobol, (unsigned)keys);
    check(sequence);
    double point[SWEEP_FILE_KEYS_MAX];
    input->values = arena_alloc(p->arena, count * keys * sizeof *input->values);
    for (int64_t i = 0; i < s->skip; i++)
        gsl_qrng_get(sequence, point);
    for (size_t i = 0; i < count; i++) {
        gsl_qrng_get(sequence, point);
        for (size_t k = 0; k < keys; k++)
            input->values[i * keys + k] =
                number_value(p, side_between(sides[k], scales[k], point[k]), sides[k][0].unit,
                             s->round, axis->kind_offset);
    }
    gsl_qrng_free(sequence);
    input->columns = keys;
    input->axis.count = count;
    return true;
}

/* ---- coordinates --------------------------------------------------------------------------------
 */

/* Every value of a column as a number of one unit; whether it can. */
static bool numbers_read(const struct sweep_input *input, size_t column, enum unit unit,
                         double *numbers)
{
    char why[256];
    for (size_t i = 0; i < input->axis.count; i++) {
        const struct sweep_file_value *value = &input->values[i * input->columns + column];
        if (!value->scalar || !units_parse_real(value->text, unit, &numbers[i], why, sizeof why))
            return false;
    }
    return true;
}

/* Fills numbers and unit of a column where its values have them. unit: as the user named it, or
 * NULL. */
static bool column_numbers(const struct planner *p, const struct sweep_input *input, size_t index,
                           const char *unit, struct sweep_column *column)
{
    char why[256];
    double *numbers = arena_alloc(p->arena, input->axis.count * sizeof *numbers), one;
    column->numbers = numbers;
    /* A unit that we know decides what bare numbers mean. */
    const char *one_text = unit ? arena_printf(p->arena, "1 %s", unit) : NULL;
    for (int u = UNIT_NONE + 1; unit && u < UNIT_COUNT; u++) {
        if (units_parse_real(one_text, (enum unit)u, &one, why, sizeof why) && one != 0 &&
            numbers_read(input, index, (enum unit)u, numbers)) {
            for (size_t i = 0; i < input->axis.count; i++)
                numbers[i] /= one;
            column->unit = unit;
            return true;
        }
    }
    for (int u = UNIT_NONE; u < UNIT_COUNT; u++) {
        if (numbers_read(input, index, (enum unit)u, numbers)) {
            bool own = unit && u == UNIT_NONE;
            column->unit = own ? unit : u == UNIT_NONE ? "1" : units_name((enum unit)u);
            return true;
        }
    }
    column->numbers = NULL;
    column->unit = "1";
    return false;
}

/* What a value is called: its text, without the quotes of a quoted one. */
static const char *value_label(const struct planner *p, const struct sweep_file_value *value)
{
    size_t length = strlen(value->text);
    if (value->scalar && length >= 2 && value->text[0] == '"' && value->text[length - 1] == '"')
        return arena_copyn(p->arena, value->text + 1, length - 2);
    return value->text;
}

static const char *const *column_labels(const struct planner *p, const struct sweep_input *input,
                                        size_t index)
{
    const char **labels = arena_alloc(p->arena, input->axis.count * sizeof *labels);
    for (size_t i = 0; i < input->axis.count; i++)
        labels[i] = value_label(p, &input->values[i * input->columns + index]);
    return labels;
}

/* Labels of the points of a zip or of samples: the values of all keys. */
static const char *const *row_labels(const struct planner *p, const struct sweep_input *input)
{
    const char **labels = arena_alloc(p->arena, input->axis.count * sizeof *labels);
    for (size_t i = 0; i < input->axis.count; i++) {
        const char *text = "";
        for (size_t k = 0; k < input->columns; k++)
            text = arena_printf(p->arena, "%s%s%s", text, k ? "/" : "",
                                value_label(p, &input->values[i * input->columns + k]));
        labels[i] = text;
    }
    return labels;
}

static const double *indices(const struct planner *p, size_t count)
{
    double *numbers = arena_alloc(p->arena, count * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (double)i;
    return numbers;
}

/* The last part of a path, with the axis' name before it: no two columns may share a name. */
static const char *key_column_name(const struct planner *p, const struct sweep_input *input,
                                   size_t key)
{
    const char *path = input->from->keys[key].path, *dot = strrchr(path, '.');
    char *last = arena_copy(p->arena, dot ? dot + 1 : path);
    for (char *c = last; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    const char *name = arena_printf(p->arena, "%s_%s", input->from->name, last);
    for (size_t k = 0; k < key; k++)
        if (strcmp(input->axis.columns[1 + k].name, name) == 0)
            return arena_printf(p->arena, "%s_%zu", name, key);
    return name;
}

/* The coordinates of an axis: its own, and those of its keys where they have values of their own.
 */
static void columns_make(const struct planner *p, struct sweep_input *input)
{
    const struct sweep_file_axis *from = input->from;
    struct sweep_axis *axis = &input->axis;
    bool several = input->columns > 1;
    axis->name = from->name;
    axis->column_count = several ? 1 + input->columns : 1;
    axis->columns = arena_alloc(p->arena, axis->column_count * sizeof *axis->columns);
    struct sweep_column *own = &axis->columns[0];
    *own = (struct sweep_column){.name = from->name,
                                 .unit = "1",
                                 .long_name = from->long_name ? from->long_name : from->name,
                                 .key = several ? "" : from->keys[0].path};
    for (size_t k = 1; !several && k < from->key_count; k++)
        own->key = arena_printf(p->arena, "%s, %s", own->key, from->keys[k].path);
    if (from->labels.count == axis->count) {
        own->labels = (const char *const *)from->labels.items;
    } else {
        own->labels = several ? row_labels(p, input) : column_labels(p, input, 0);
        if (several)
            own->numbers = indices(p, axis->count);
        else
            column_numbers(p, input, 0, from->unit, own);
    }
    for (size_t k = 0; several && k < input->columns; k++) {
        struct sweep_column *column = &axis->columns[1 + k];
        const char *name = key_column_name(p, input, k);
        *column = (struct sweep_column){.name = name,
                                        .unit = "1",
                                        .long_name = name,
                                        .key = from->keys[k].path,
                                        .labels = column_labels(p, input, k)};
        column_numbers(p, input, k, NULL, column);
    }
}

static bool input_make(const struct planner *p, const struct sweep_file_axis *from,
                       struct sweep_input *input)
{
    bool ok = true;
    input->from = from;
    if (from->kind == SWEEP_FILE_RANGE) {
        ok = range_expand(p, input);
    } else if (from->kind == SWEEP_FILE_SAMPLES) {
        ok = samples_expand(p, input);
    } else {
        input->values = from->values;
        input->axis.count = from->count;
        input->columns = from->kind == SWEEP_FILE_ZIP ? from->key_count : 1;
    }
    if (!ok)
        return false;
    if (from->labels.count > 0 && from->labels.count != input->axis.count) {
        sweep_file_error(p->plan->file, from->offset, p->errors,
                         "'labels' has %zu items for %zu values", from->labels.count,
                         input->axis.count);
        return false;
    }
    columns_make(p, input);
    return true;
}

/* ---- what does not go together ------------------------------------------------------------------
 */

/* Indices are compared as numbers. */
bool sweep_points_covers(const char *over, const char *path)
{
    while (*over && *path) {
        if (*over != *path)
            return false;
        if (*over == '[') {
            over += 1 + strspn(over + 1, "0");
            path += 1 + strspn(path + 1, "0");
        } else {
            over++;
            path++;
        }
    }
    return *over == '\0' && (*path == '\0' || *path == '.' || *path == '[');
}

/* A later key must not set again what an earlier one has set. A later one inside of it is sound: a
 * whole mapping, and then one of its values. */
static bool keys_check(const struct planner *p)
{
    const struct sweep_file *file = p->plan->file;
    bool ok = true;
    for (size_t a = 0; a < file->axis_count; a++) {
        for (size_t k = 0; k < file->axes[a].key_count; k++) {
            const struct sweep_file_key *key = &file->axes[a].keys[k];
            if (p->plan->replications > 1 && strcmp(key->path, "replication") == 0) {
                sweep_file_error(file, key->offset, p->errors,
                                 "'replication' is an axis already, with %zu replications",
                                 p->plan->replications);
                ok = false;
            }
            for (size_t b = 0; b <= a; b++) {
                for (size_t j = 0; j < (b < a ? file->axes[b].key_count : k); j++) {
                    const char *before = file->axes[b].keys[j].path;
                    if (!sweep_points_covers(key->path, before))
                        continue;
                    sweep_file_error(file, key->offset, p->errors,
                                     "'%s' sets again what '%s' of the axis '%s' has set",
                                     key->path, before, file->axes[b].name);
                    ok = false;
                }
            }
        }
    }
    return ok;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Labels name values, also on the command line. Rounded samples may meet. */
static bool labels_check(const struct planner *p, const struct sweep_input *input)
{
    const struct sweep_file_axis *from = input->from;
    const char *const *labels = input->axis.columns[0].labels;
    bool ok = true;
    if (from->labels.count == 0 && from->kind == SWEEP_FILE_SAMPLES)
        return true;
    const char **sorted = memory_alloc((input->axis.count + 1) * sizeof *sorted);
    memcpy(sorted, labels, input->axis.count * sizeof *sorted);
    qsort(sorted, input->axis.count, sizeof *sorted, text_compare);
    for (size_t i = 1; i < input->axis.count && ok; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) != 0)
            continue;
        ok = false;
        sweep_file_error(p->plan->file, from->kind_offset, p->errors,
                         "the axis '%s' has the value '%s' twice", from->name, sorted[i]);
    }
    free(sorted);
    return ok;
}

/* ---- points -------------------------------------------------------------------------------------
 */

/* The only axis of a sweep that changes one input at a time. */
static void case_axis(const struct planner *p, size_t points)
{
    struct sweep_plan *plan = p->plan;
    struct sweep_axis *axis = &plan->axes[0];
    const char **labels = arena_alloc(p->arena, points * sizeof *labels);
    const char **inputs = arena_alloc(p->arena, points * sizeof *inputs);
    for (size_t i = 0; i < points; i++) {
        labels[i] = sweep_points_label(plan, i, p->arena);
        inputs[i] = "";
        for (size_t k = 0; k < plan->input_count; k++)
            if (sweep_points_value(plan, i, k) != SIZE_MAX)
                inputs[i] = plan->inputs[k].axis.name;
    }
    *axis = (struct sweep_axis){.name = "case", .count = points, .column_count = 2};
    axis->columns = arena_alloc(p->arena, 2 * sizeof *axis->columns);
    axis->columns[0] = (struct sweep_column){
        .name = "case", .unit = "1", .long_name = "what is changed", .key = "", .labels = labels};
    axis->columns[1] = (struct sweep_column){.name = "case_input",
                                             .unit = "1",
                                             .long_name = "input that is changed",
                                             .key = "",
                                             .labels = inputs};
    plan->axis_count = 1;
}

static bool sizes_fit(const struct planner *p)
{
    struct sweep_plan *plan = p->plan;
    double points = 1, runs;
    for (size_t i = 0; i < plan->input_count; i++)
        points = plan->one_at_a_time ? points + (double)plan->inputs[i].axis.count
                                     : points * (double)plan->inputs[i].axis.count;
    runs = points * (double)plan->replications;
    if (runs > SWEEP_POINTS_RUNS_MAX) {
        sweep_file_error(plan->file, 0, p->errors, "%.0f runs are more than %d", runs,
                         SWEEP_POINTS_RUNS_MAX);
        return false;
    }
    plan->points = (size_t)points;
    plan->runs = (size_t)runs;
    return true;
}

bool sweep_points_plan(struct sweep_plan *plan, const struct sweep_file *file, bool one_at_a_time,
                       struct arena *arena, struct errors *errors)
{
    struct planner p = {.plan = plan, .arena = arena, .errors = errors};
    bool ok;
    *plan = (struct sweep_plan){
        .file = file, .one_at_a_time = one_at_a_time, .replications = (size_t)file->replications};
    ok = keys_check(&p);
    for (size_t i = 0; i < file->axis_count; i++) {
        struct sweep_input *input = &plan->inputs[plan->input_count++];
        ok &= input_make(&p, &file->axes[i], input) && labels_check(&p, input);
    }
    if (!ok || !sizes_fit(&p))
        return false;
    if (one_at_a_time) {
        case_axis(&p, plan->points);
        return true;
    }
    for (size_t i = 0; i < plan->input_count; i++)
        plan->axes[plan->axis_count++] = plan->inputs[i].axis;
    return true;
}

size_t sweep_points_value(const struct sweep_plan *plan, size_t point, size_t input)
{
    if (plan->one_at_a_time) {
        size_t first = 1;
        for (size_t i = 0; i < input; i++)
            first += plan->inputs[i].axis.count;
        return point >= first && point < first + plan->inputs[input].axis.count ? point - first
                                                                                : SIZE_MAX;
    }
    for (size_t i = plan->input_count; i-- > input + 1;)
        point /= plan->inputs[i].axis.count;
    return point % plan->inputs[input].axis.count;
}

const struct sweep_set *sweep_points_sets(const struct sweep_plan *plan, size_t point,
                                          size_t *count, struct arena *arena)
{
    size_t most = 0;
    for (size_t i = 0; i < plan->input_count; i++)
        most += plan->inputs[i].from->key_count;
    struct sweep_set *sets = arena_alloc(arena, (most + 1) * sizeof *sets);
    *count = 0;
    for (size_t i = 0; i < plan->input_count; i++) {
        const struct sweep_input *input = &plan->inputs[i];
        size_t value = sweep_points_value(plan, point, i);
        for (size_t k = 0; value != SIZE_MAX && k < input->from->key_count; k++) {
            const struct sweep_file_value *v =
                &input->values[value * input->columns + (input->columns > 1 ? k : 0)];
            const struct sweep_file_key *key = &input->from->keys[k];
            sets[(*count)++] = (struct sweep_set){
                .text = arena_printf(arena, "%s=%s", key->path, v->text), .key = key, .value = v};
        }
    }
    return sets;
}

const char *sweep_points_label(const struct sweep_plan *plan, size_t point, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < plan->input_count; i++) {
        size_t value = sweep_points_value(plan, point, i);
        if (value == SIZE_MAX)
            continue;
        const char *label = plan->inputs[i].axis.columns[0].labels[value];
        size_t length = strlen(label);
        size_t shown = length > LABEL_MAX ? LABEL_MAX : length;
        while (shown < length && ((unsigned char)label[shown] & 0xc0) == 0x80)
            shown--; /* not inside a character */
        text =
            arena_printf(arena, "%s%s%s=%.*s%s", text, text[0] ? ", " : "",
                         plan->inputs[i].axis.name, (int)shown, label, shown < length ? "…" : "");
    }
    return text[0] ? text : "base";
}

char *sweep_points_id(const struct sweep_plan *plan, size_t run, char *id)
{
    size_t point = run / plan->replications, replication = run % plan->replications;
    if (plan->replications > 1)
        snprintf(id, SWEEP_POINTS_ID_MAX, "p%05zu-r%03zu", point, replication);
    else
        snprintf(id, SWEEP_POINTS_ID_MAX, "p%05zu", point);
    return id;
}

size_t sweep_points_find(const struct sweep_input *input, const char *label, size_t first)
{
    for (size_t i = first; i < input->axis.count; i++)
        if (strcmp(input->axis.columns[0].labels[i], label) == 0)
            return i;
    return SIZE_MAX;
}
