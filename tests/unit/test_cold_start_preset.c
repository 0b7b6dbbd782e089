/* Presets of cold starts: every file of the catalogue loads, and what a scenario says itself stays.
 */
#include "sim/run/catalog.h"
#include "sim/run/cold_start_preset.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

START_TEST(every_preset_loads)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    const char *const *names = catalog_names(CATALOG_COLD_START, &arena);
    size_t count = 0;
    for (; names[count] != NULL; count++) {
        uint64_t stated;
        const struct cold_start_preset *preset =
            cold_start_preset_load(names[count], &stated, &arena, &errors, NULL);
        ck_assert_msg(preset != NULL, "%s", names[count]);
        ck_assert_uint_ne(stated, 0);
        ck_assert_int_gt(cold_start_expected(&preset->phases), 0);
    }
    ck_assert_uint_ge(count, 10);
    ck_assert_uint_eq(errors.count, 0);
    ck_assert_ptr_null(cold_start_preset_load("none-such", &(uint64_t){0}, &arena, &errors, NULL));
    ck_assert_uint_eq(errors.error_count, 1);
    errors_free(&errors);
    arena_free(&arena);
}
END_TEST

#define SCENARIO(cold_start)                                                                       \
    "name: preset\nhorizon: 1 h\n"                                                                 \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - {name: main, step_time: {model: constant, step: 10 ms}, cold_start: " cold_start ",\n"  \
    "       initial_replicas: 0, autoscaler: {policy: target, metric: concurrency, target: 1,\n"   \
    "       min_replicas: 0, max_replicas: 1}}\n"

static int64_t first_token(const char *yaml)
{
    struct run_text r = run_text_do(yaml, "0,10,1\n");
    ck_assert_uint_eq(r.row_count, 1);
    int64_t t = r.rows[0].first_token_ps;
    run_text_free(&r);
    return t;
}

/* provision 60 s and image_pull 60 s by default, weights 18 s and engine_init 64 s by the preset.
 */
START_TEST(a_preset_fills_what_is_not_said)
{
    ck_assert_int_eq(first_token(SCENARIO("{preset: vllm-tuned-8b-l40s}")),
                     SECONDS(202) + MILLIS(10));
    ck_assert_int_eq(
        first_token(SCENARIO("{preset: vllm-tuned-8b-l40s, provision: 5 s, engine_init: 7 s}")),
        SECONDS(90) + MILLIS(10));
    ck_assert_int_eq(first_token(SCENARIO("{preset: vllm-sleep-4b-a100}")), MILLIS(830));
}
END_TEST

int main(void)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    const TTest *const tests[] = {every_preset_loads, a_preset_fills_what_is_not_said, NULL};
    return suite_run("cold_start_preset", tests, 60);
}
