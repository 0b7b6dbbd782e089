/* Any bytes as a sweep.yaml: read, and laid out as points both ways. A value as --set takes it, put
 * into a sweep.yaml again, is the same value. Nothing is opened but the text itself, which is a
 * file in memory. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "sim/run/sweep_points.h"
#include "tests/fuzz/fuzz.h"

enum { POINTS_LOOKED_AT = 4, VALUES_LOOKED_AT = 8 };

/* Loads a text; NULL when it has errors. */
static struct sweep_file *text_load(const void *text, size_t length, struct arena *arena,
                                    struct errors *errors)
{
    int fd = memfd_create("sweep.yaml", MFD_CLOEXEC);
    check(fd >= 0);
    check(write(fd, text, length) == (ssize_t)length);
    const char *path = arena_printf(arena, "/proc/self/fd/%d", fd);
    struct sweep_file *file = sweep_file_load(path, NULL, arena, errors);
    check((file == NULL) == (errors->error_count > 0));
    close(fd);
    return file;
}

static void value_check(const struct sweep_file_value *value, struct arena *arena)
{
    struct errors errors;
    errors_init(&errors);
    const char *text = arena_printf(arena, "axes: [{name: a, key: k, list: [%s]}]\n", value->text);
    const struct sweep_file *again = text_load(text, strlen(text), arena, &errors);
    check_msg(again, "the value is lost: %s", text);
    check_msg(again->axes[0].count == 1 && strcmp(again->axes[0].values[0].text, value->text) == 0,
              "the value changed:\n%s\n---\n%s", value->text, again->axes[0].values[0].text);
    errors_free(&errors);
}

static void values_check(const struct sweep_plan *plan, struct arena *arena)
{
    for (size_t i = 0; i < plan->input_count; i++) {
        const struct sweep_input *input = &plan->inputs[i];
        size_t values = input->axis.count * input->columns;
        check(input->axis.count > 0);
        for (size_t v = 0; v < values && v < VALUES_LOOKED_AT; v++)
            value_check(&input->values[v], arena);
        for (size_t v = 0; v < input->axis.count && v < VALUES_LOOKED_AT; v++) {
            const char *label = input->axis.columns[0].labels[v];
            check(sweep_points_find(input, label, v) == v);
        }
    }
}

static void plan_check(const struct sweep_file *file, bool one_at_a_time, struct arena *arena)
{
    struct errors errors;
    struct sweep_plan plan;
    errors_init(&errors);
    bool ok = sweep_points_plan(&plan, file, one_at_a_time, arena, &errors);
    check(ok == (errors.error_count == 0));
    for (size_t p = 0; ok && p < plan.points && p < POINTS_LOOKED_AT; p++) {
        /* The first ones and the last ones. */
        size_t point = p % 2 ? plan.points - 1 - p / 2 : p / 2, count;
        const struct sweep_set *sets = sweep_points_sets(&plan, point, &count, arena);
        for (size_t i = 0; i < count; i++)
            check(strchr(sets[i].text, '='));
        check(sweep_points_label(&plan, point, arena)[0]);
    }
    if (ok)
        values_check(&plan, arena);
    errors_free(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    const struct sweep_file *file = text_load(data, size, &arena, &errors);
    if (file) {
        plan_check(file, false, &arena);
        plan_check(file, true, &arena);
    }
    errors_free(&errors);
    arena_free(&arena);
    return 0;
}
