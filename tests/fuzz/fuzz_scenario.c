/* Any bytes as a scenario file, and as --set texts: after a record separator (0x1e) each part is
 * one. What loads must survive its echo: field_yaml of it loads again to the same echo. Nothing is
 * opened: scenario_load_text refuses `extends`. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/scenario/scenario.h"
#include "tests/fuzz/fuzz.h"
#include "tests/scenario_table.h"

enum { SETS_MAX = 8 };

/* Loads text and returns the echo of the struct; NULL when it has errors. */
static char *load_echo(const char *text, size_t length, const char *const *sets, size_t set_count,
                       struct arena *arena)
{
    struct table_root target;
    struct errors errors;
    struct scenario_request request = {.name = "fuzz",
                                       .sets = sets,
                                       .set_count = set_count,
                                       .root = table_root_fields,
                                       .target = &target};
    errors_init(&errors);
    struct scenario *scenario = scenario_load_text(&request, text, length, arena, &errors);
    check((scenario == NULL) == (errors.error_count > 0));
    char *echo = NULL;
    if (scenario) {
        struct source_pos pos;
        struct locator where = scenario_locator(scenario);
        where.find(where.self, "pools[0].engine.block_size", &pos);
        check(pos.file);
        check(strlen(scenario_text(scenario)) == length);
        scenario_wrote(scenario, "pools[1].autoscaler.policy");
        echo = field_yaml(table_root_fields, &target, arena);
    }
    scenario_free(scenario);
    errors_free(&errors);
    return echo;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    arena_init(&arena);
    char *copy = arena_copyn(&arena, (const char *)data, size);
    const char *sets[SETS_MAX];
    size_t set_count = 0, length = size;
    for (size_t i = 0; i < size; i++) {
        if (copy[i] != 0x1e || set_count == SETS_MAX)
            continue;
        if (set_count == 0)
            length = i;
        copy[i] = '\0';
        sets[set_count++] = copy + i + 1;
    }
    char *echo = load_echo(copy, length, sets, set_count, &arena);
    if (echo) {
        char *again = load_echo(echo, strlen(echo), NULL, 0, &arena);
        check_msg(again, "the echo does not load:\n%s", echo);
        check_msg(strcmp(echo, again) == 0, "the echo changed:\n%s\n---\n%s", echo, again);
    }
    arena_free(&arena);
    return 0;
}
