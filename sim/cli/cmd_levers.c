/* fleetsim levers: what a cut in the cost per token needs, and what stated levers multiply to. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/levers.h"
#include "models/price.h"
#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/quantity.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"

struct levers_values {
    const char *price, *rate, *cut;
    struct options_list levers;
    bool json;
};

static const struct options_spec levers_specs[] = {
    {"price", 0, OPTIONS_TEXT, offsetof(struct levers_values, price), "$/h",
     "per GPU-hour today ($3/h)"},
    {"rate", 0, OPTIONS_TEXT, offsetof(struct levers_values, rate), "TOKENS/S",
     "output tokens per second and GPU today (1500)"},
    {"cut", 0, OPTIONS_TEXT, offsetof(struct levers_values, cut), "SHARE",
     "wanted cut in the cost per token (70 %)"},
    {"lever", 0, OPTIONS_LIST, offsetof(struct levers_values, levers), "NAME=GAIN[,GUARD]",
     "a lever and its gain in tokens per dollar; without any: the textbook's five"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct levers_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

/* NAME=GAIN[,GUARD]; the last `=` before the number. */
static bool lever_read(const char *text, struct lever *lever, struct arena *arena,
                       struct errors *errors)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    double gain = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || equals == text || end == equals + 1 || gain < 1e-3 || gain > 1e6 ||
        strspn(equals + 1, "0123456789.eE+-") < (size_t)(end - equals - 1) ||
        (*end && *end != ',')) {
        errors_add(
            errors, SEVERITY_ERROR, NULL,
            "--lever '%s' is not NAME=GAIN[,GUARD] with a gain from 0.001 to 1000000, such as "
            "fp8=1.6,evaluation suite",
            text);
        return false;
    }
    *lever = (struct lever){arena_copyn(arena, text, (size_t)(equals - text)), gain,
                            *end ? arena_copy(arena, end + 1) : "not stated"};
    return true;
}

struct levers_ask {
    double price, rate, cut;
    const struct lever *levers;
    size_t count;
};

static void levers_print(const struct levers_ask *ask)
{
    double base = price_per_mtok(ask->price, ask->rate), needed = levers_required(ask->cut);
    printf("today     $%s per million output tokens ($%s per GPU-hour, %s tokens/s per GPU)\n",
           text_real(base, 4).s, text_real(ask->price, 2).s, text_real(ask->rate, 0).s);
    printf("target    $%s: a cut of %s %% needs %sx the tokens per dollar\n\n",
           text_real(base * (1 - ask->cut), 4).s, text_percent(ask->cut, 0).s,
           text_real(needed, 2).s);
    struct text_table table;
    text_table_init(&table, 5, 1, 1);
    static const char *const head[] = {"lever", "gain", "product", "$/Mtok", "change"};
    struct text *row = text_table_row(&table, false);
    for (int i = 0; i < 5; i++)
        snprintf(row[i].s, sizeof row[i].s, "%s", head[i]);
    for (size_t i = 0; i < ask->count; i++) {
        double product = levers_product(ask->levers, i + 1);
        row = text_table_row(&table, i == 0);
        snprintf(row[0].s, sizeof row[0].s, "%.47s", ask->levers[i].name);
        row[1] = text_real(ask->levers[i].gain, 2);
        row[2] = text_real(product, 2);
        row[3] = text_real(base / product, 4);
        snprintf(row[4].s, sizeof row[4].s, "%.40s %%", text_percent(1 / product - 1, 1).s);
    }
    text_table_print(&table, stdout);
    text_table_free(&table);
    fputs("\nquality guards\n", stdout);
    for (size_t i = 0; i < ask->count; i++)
        printf("  %s: %s\n", ask->levers[i].name, ask->levers[i].guard);
    double product = levers_product(ask->levers, ask->count);
    printf("\n%s: all of them give %sx, %sx is needed. Gains are as stated and multiplied as if "
           "independent; they are not:\nbigger batches from FP8, say, shrink what speculation "
           "gains. Measure each on your traffic.\n",
           product >= needed ? "Enough" : "Not enough", text_real(product, 2).s,
           text_real(needed, 2).s);
}

static void levers_json(const struct levers_ask *ask)
{
    struct json json;
    double base = price_per_mtok(ask->price, ask->rate), product = 1;
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_real(&json, "usd_per_mtok", base);
    json_out_real(&json, "target_usd_per_mtok", base * (1 - ask->cut));
    json_out_real(&json, "required", levers_required(ask->cut));
    json_out_list(&json, "levers");
    for (size_t i = 0; i < ask->count; i++) {
        product *= ask->levers[i].gain;
        json_out_object(&json, NULL);
        json_out_text(&json, "name", ask->levers[i].name);
        json_out_real(&json, "gain", ask->levers[i].gain);
        json_out_real(&json, "product", product);
        json_out_real(&json, "usd_per_mtok", base / product);
        json_out_text(&json, "guard", ask->levers[i].guard);
        json_out_object_end(&json);
    }
    json_out_list_end(&json);
    json_out_real(&json, "product", product);
    json_out_bool(&json, "enough", product >= levers_required(ask->cut));
    json_out_object_end(&json);
}

static int levers_run(const void *values_, const struct options_list *operands)
{
    const struct levers_values *values = values_;
    struct arena arena;
    struct errors errors;
    (void)operands;
    arena_init(&arena);
    errors_init(&errors);
    struct levers_ask ask = {.levers = levers_known, .count = LEVERS_COUNT};
    bool ok =
        quantity_read(values->price, "price", UNIT_USD_PER_HOUR, 3, 1e-6, 1e6, &ask.price, &errors);
    ok &=
        quantity_read(values->rate, "rate", UNIT_TOKENS_PER_S, 1500, 1e-6, 1e9, &ask.rate, &errors);
    ok &= quantity_read(values->cut, "cut", UNIT_FRACTION, 0.7, 0, 0.999, &ask.cut, &errors);
    if (values->levers.count > 0) {
        struct lever *given = arena_alloc(&arena, values->levers.count * sizeof *given);
        for (size_t i = 0; i < values->levers.count; i++)
            ok &= lever_read(values->levers.items[i], &given[i], &arena, &errors);
        ask.levers = given;
        ask.count = values->levers.count;
    }
    if (ok && values->json)
        levers_json(&ask);
    else if (ok)
        levers_print(&ask);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return ok ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_levers_command = {
    .name = "levers",
    .summary = "what a cut in the cost per token needs, and what levers multiply to",
    .operands = NULL,
    .operands_min = 0,
    .operands_max = 0,
    .options = levers_specs,
    .options_size = sizeof(struct levers_values),
    .text = "Cost per million tokens, the multiplier that a cut needs, and the product of stated\n"
            "gains, each with the check that guards the quality of answers.\n",
    .example =
        "fleetsim levers\n"
        "fleetsim levers --cut '50 %' --lever 'fp8=1.6,evaluation suite' --lever caching=1.25\n",
    .run = levers_run,
};
