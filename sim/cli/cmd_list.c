/* fleetsim list gpus|models|prices */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/time.h"
#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/quantity.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"
#include "sim/fleet/autoscaler.h"
#include "sim/fleet/router.h"
#include "sim/run/cold_start_preset.h"
#include "sim/run/deployment.h"

struct list_values {
    const char *model, *tpot, *prompt, *output;
    bool json;
};

static const struct options_spec list_specs[] = {
    {"model", 0, OPTIONS_TEXT, offsetof(struct list_values, model), "NAME|PATH",
     "gpus: the cost of serving this model on each"},
    {"tpot", 0, OPTIONS_TEXT, offsetof(struct list_values, tpot), "TIME",
     "with --model: the limit on the time per output token (50 ms)"},
    {"prompt", 0, OPTIONS_TEXT, offsetof(struct list_values, prompt), "N",
     "with --model: mean prompt tokens (1500)"},
    {"output", 0, OPTIONS_TEXT, offsetof(struct list_values, output), "N",
     "with --model: mean output tokens (400)"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct list_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

static void cell(struct text *at, const char *text)
{
    snprintf(at->s, sizeof at->s, "%s", text);
}

/* ---- gpus ----------------------------------------------------------------------------------- */

static void gpus_head(struct text_table *table)
{
    static const char *const head[] = {"gpu",     "HBM GB",   "real GB", "TB/s",
                                       "BF16 TF", "FP8 TF",   "FP4 TF",  "link GB/s",
                                       "domain",  "NIC GB/s", "TDP W"};
    text_table_init(table, sizeof head / sizeof *head, 1, 1);
    struct text *row = text_table_row(table, false);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cell(&row[i], head[i]);
}

static void gpu_row(struct text_table *table, const char *name, const struct gpu_spec *g)
{
    struct text *row = text_table_row(table, table->rows == 1);
    cell(&row[0], name);
    row[1] = text_plain(g->hbm_sheet_bytes / 1e9);
    row[2] = text_real(g->hbm_real_bytes / 1e9, 1);
    row[3] = text_real(g->hbm_bytes_per_s / 1e12, 2);
    for (int m = 0; m < MATH_COUNT; m++)
        row[4 + m] = text_real(g->peak_flops[m] / 1e12, 0);
    row[7] = text_plain(g->link_bytes_per_s / 1e9);
    row[8] = text_count((uint64_t)g->domain);
    row[9] = text_plain(g->nic_bytes_per_s / 1e9);
    row[10] = text_real(g->tdp_w, 0);
}

static void gpu_json(struct json *json, const char *name, const struct gpu_spec *g)
{
    json_out_object(json, NULL);
    json_out_text(json, "gpu", name);
    json_out_text(json, "title", g->name);
    json_out_real(json, "hbm_bytes", g->hbm_sheet_bytes);
    json_out_real(json, "hbm_real_bytes", g->hbm_real_bytes);
    json_out_real(json, "hbm_bytes_per_s", g->hbm_bytes_per_s);
    json_out_real(json, "bf16_flops", g->peak_flops[MATH_BF16]);
    json_out_real(json, "fp8_flops", g->peak_flops[MATH_FP8]);
    json_out_real(json, "fp4_flops", g->peak_flops[MATH_FP4]);
    json_out_real(json, "link_bytes_per_s", g->link_bytes_per_s);
    json_out_int(json, "domain", g->domain);
    json_out_real(json, "nic_bytes_per_s", g->nic_bytes_per_s);
    json_out_real(json, "tdp_w", g->tdp_w);
    json_out_object_end(json);
}

static bool gpus_list(const struct list_values *values, struct arena *arena, struct errors *errors)
{
    const char *const *names = catalog_names(CATALOG_GPU, arena);
    struct text_table table;
    struct json json;
    gpus_head(&table);
    json_out_init(&json, stdout);
    if (values->json) {
        json_out_object(&json, NULL);
        json_out_list(&json, "gpus");
    }
    for (size_t i = 0; names[i]; i++) {
        const struct gpu_spec *gpu = catalog_gpu(names[i], arena, errors, NULL);
        if (gpu && values->json)
            gpu_json(&json, names[i], gpu);
        else if (gpu)
            gpu_row(&table, names[i], gpu);
    }
    if (values->json) {
        json_out_list_end(&json);
        json_out_object_end(&json);
    } else {
        text_table_print(&table, stdout);
        fputs(
            "\nDense math, links one way, per GPU. Sources and dates are in the catalogue files.\n",
            stdout);
    }
    text_table_free(&table);
    return errors->error_count == 0;
}

/* ---- cost of one model across gpus ---------------------------------------------------------- */

struct range {
    double low, high; /* $ per GPU-hour; NaN: no price in the catalogue */
};

/* On-demand prices of a gpu, every price file that names it. */
static struct range price_range(const char *gpu, struct arena *arena, struct errors *errors)
{
    struct range range = {NAN, NAN};
    const char *const *names = catalog_names(CATALOG_PRICE, arena);
    for (size_t i = 0; names[i]; i++) {
        const struct price_spec *price = catalog_price(names[i], arena, errors, NULL);
        if (!price || !price->gpu || strcmp(price->gpu, gpu) != 0)
            continue;
        for (size_t k = 0; k < price->offers.count; k++) {
            const struct price_offer *o = (const struct price_offer *)price->offers.items + k;
            if (o->kind != PRICE_ON_DEMAND)
                continue;
            range.low = fmin(range.low, o->usd_per_gpu_hour_low);
            range.high = fmax(range.high, o->usd_per_gpu_hour_high);
        }
    }
    return range;
}

static void cost_row(struct text_table *table, const char *name, const struct deployment_choice *c,
                     struct range price)
{
    char layout[PARALLEL_TEXT_MAX];
    struct text *row = text_table_row(table, table->rows == 1);
    cell(&row[0], name);
    if (!c->found) {
        cell(&row[1], c->why_not);
        return;
    }
    double gpus = (double)parallel_gpus(&c->deployment.parallel);
    double rate = c->estimate.output_tokens_per_s / gpus;
    cell(&row[1], parallel_text(&c->deployment.parallel, layout));
    row[2] = text_real(c->estimate.running, 0);
    row[3] = text_real(c->estimate.tpot_s * 1e3, 1);
    row[4] = text_real(rate, 0);
    row[5] = text_real(price.low, 2);
    row[6] = text_real(price.high, 2);
    row[7] = text_real(price_per_mtok(price.low, rate), 3);
    row[8] = text_real(price_per_mtok(price.high, rate), 3);
}

static void cost_json(struct json *json, const char *name, const struct deployment_choice *c,
                      struct range price)
{
    char layout[PARALLEL_TEXT_MAX];
    double gpus = c->found ? (double)parallel_gpus(&c->deployment.parallel) : NAN;
    double rate = c->found ? c->estimate.output_tokens_per_s / gpus : NAN;
    json_out_object(json, NULL);
    json_out_text(json, "gpu", name);
    json_out_bool(json, "feasible", c->found);
    json_out_text(json, "why_not", c->found ? NULL : c->why_not);
    json_out_text(json, "layout", c->found ? parallel_text(&c->deployment.parallel, layout) : NULL);
    json_out_real(json, "gpus", gpus);
    json_out_real(json, "running", c->found ? c->estimate.running : NAN);
    json_out_real(json, "tpot_s", c->found ? c->estimate.tpot_s : NAN);
    json_out_real(json, "output_tokens_per_s_per_gpu", rate);
    json_out_real(json, "usd_per_gpu_hour_low", price.low);
    json_out_real(json, "usd_per_gpu_hour_high", price.high);
    json_out_real(json, "usd_per_mtok_output_low", price_per_mtok(price.low, rate));
    json_out_real(json, "usd_per_mtok_output_high", price_per_mtok(price.high, rate));
    json_out_object_end(json);
}

static bool costs_list(const struct list_values *values, struct arena *arena, struct errors *errors)
{
    double tpot;
    struct serving_load load = {.chunk = 8192};
    bool ok = quantity_read(values->tpot, "tpot", UNIT_TIME, 0.05, 1e-6, 1e3, &tpot, errors);
    ok &= quantity_read(values->prompt, "prompt", UNIT_TOKENS, 1500, 1, 1e8, &load.prompt, errors);
    ok &= quantity_read(values->output, "output", UNIT_TOKENS, 400, 1, 1e8, &load.output, errors);
    const struct llm_spec *llm = catalog_llm(values->model, arena, errors, NULL);
    if (!ok || !llm)
        return false;
    const char *const *names = catalog_names(CATALOG_GPU, arena);
    static const char *const head[] = {"gpu",     "layout", "running",    "TPOT ms", "tok/s/GPU",
                                       "$/h low", "high",   "$/Mtok low", "high"};
    struct text_table table;
    text_table_init(&table, sizeof head / sizeof *head, 1, 2);
    struct text *row = text_table_row(&table, false);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cell(&row[i], head[i]);
    struct json json;
    json_out_init(&json, stdout);
    if (values->json) {
        json_out_object(&json, NULL);
        json_out_text(&json, "model", llm->name);
        json_out_list(&json, "gpus");
    }
    struct precision usual = {-1, -1, -1};
    for (size_t i = 0; names[i]; i++) {
        const struct gpu_spec *gpu = catalog_gpu(names[i], arena, errors, NULL);
        if (!gpu)
            continue;
        struct deployment_choice c = deployment_choose(llm, gpu, &usual, &load, tpot, arena);
        struct range price = price_range(names[i], arena, errors);
        if (values->json)
            cost_json(&json, names[i], &c, price);
        else
            cost_row(&table, names[i], &c, price);
    }
    if (values->json) {
        json_out_list_end(&json);
        json_out_object_end(&json);
    } else {
        printf("%s, %s prompt and %s output tokens, at most %s ms per output token\n\n", llm->name,
               text_plain(load.prompt).s, text_plain(load.output).s, text_plain(tpot * 1e3).s);
        text_table_print(&table, stdout);
        fputs("\nThe layout inside one scale-up domain with the most output tokens/s per GPU, a "
              "full\n"
              "machine; on-demand prices of the catalogue. –: no dated price there.\n",
              stdout);
    }
    text_table_free(&table);
    return errors->error_count == 0;
}

/* ---- models and prices ---------------------------------------------------------------------- */

static void model_json(struct json *json, const char *name, const struct llm_spec *llm)
{
    struct llm_params p = llm_params(llm);
    struct llm_kv kv = llm_kv(llm, STORAGE_BF16);
    json_out_object(json, NULL);
    json_out_text(json, "model", name);
    json_out_text(json, "title", llm->name);
    json_out_real(json, "total_params", p.total);
    json_out_real(json, "active_params", p.active);
    json_out_int(json, "layers", llm->layers);
    json_out_int(json, "experts", llm->moe.experts);
    json_out_int(json, "top_k", llm->moe.top_k);
    json_out_real(json, "kv_bytes_per_token_bf16", kv.per_token + kv.indexer_per_token);
    json_out_real(json, "constant_bytes_per_sequence", kv.window + kv.state);
    json_out_object_end(json);
}

static bool models_list(const struct list_values *values, struct arena *arena,
                        struct errors *errors)
{
    const char *const *names = catalog_names(CATALOG_LLM, arena);
    static const char *const head[] = {"model",      "total B",    "active B",
                                       "layers",     "experts",    "weights",
                                       "weights GB", "KV B/token", "constant MB"};
    struct text_table table;
    text_table_init(&table, sizeof head / sizeof *head, 1, 1);
    struct text *row = text_table_row(&table, false);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cell(&row[i], head[i]);
    struct json json;
    json_out_init(&json, stdout);
    if (values->json) {
        json_out_object(&json, NULL);
        json_out_list(&json, "models");
    }
    for (size_t i = 0; names[i]; i++) {
        const struct llm_spec *llm = catalog_llm(names[i], arena, errors, NULL);
        if (llm && values->json)
            model_json(&json, names[i], llm);
        if (!llm || values->json)
            continue;
        struct llm_params p = llm_params(llm);
        struct llm_kv kv = llm_kv(llm, STORAGE_BF16);
        struct precision none = {-1, -1, -1}, usual = llm_precision(llm, &none);
        row = text_table_row(&table, table.rows == 1);
        cell(&row[0], names[i]);
        row[1] = text_real(p.total / 1e9, 2);
        row[2] = text_real(p.active / 1e9, 2);
        row[3] = text_count((uint64_t)llm->layers);
        if (llm->moe.experts > 0)
            snprintf(row[4].s, sizeof row[4].s, "%lld/%lld+%lld", (long long)llm->moe.experts,
                     (long long)llm->moe.top_k, (long long)llm->moe.shared);
        snprintf(row[5].s, sizeof row[5].s, "%s%s%s", llm_storage_names[usual.weights],
                 usual.experts != usual.weights ? "+" : "",
                 usual.experts != usual.weights ? llm_storage_names[usual.experts] : "");
        row[6] = text_real(memory_weights(llm, &usual).total / 1e9, 1);
        row[7] = text_real(kv.per_token + kv.indexer_per_token, 0);
        row[8] = text_real((kv.window + kv.state) / 1e6, 1);
    }
    if (values->json) {
        json_out_list_end(&json);
        json_out_object_end(&json);
    } else {
        text_table_print(&table, stdout);
        fputs("\nParameters from the shape; experts: routed/chosen+shared. Active: per token, "
              "without\n"
              "the input embedding. KV and constants in BF16.\n",
              stdout);
    }
    text_table_free(&table);
    return errors->error_count == 0;
}

static void offer_row(struct text_table *table, const char *what, const char *provider,
                      const char *kind, struct text a, struct text b, const char *date,
                      const char *source)
{
    struct text *row = text_table_row(table, table->rows == 1);
    cell(&row[0], what);
    cell(&row[1], provider);
    cell(&row[2], kind);
    row[3] = a;
    row[4] = b;
    cell(&row[5], date);
    cell(&row[6], source);
}

static void price_rows(struct text_table *table, const struct price_spec *price)
{
    for (size_t k = 0; k < price->offers.count; k++) {
        const struct price_offer *o = (const struct price_offer *)price->offers.items + k;
        offer_row(table, price->gpu, o->provider, price_kind_names[o->kind],
                  text_real(o->usd_per_gpu_hour_low, 2), text_real(o->usd_per_gpu_hour_high, 2),
                  o->date, o->source);
    }
    for (size_t k = 0; k < price->api.count; k++) {
        const struct price_api *a = (const struct price_api *)price->api.items + k;
        offer_row(table, price->name, a->provider, "$/Mtok in, out",
                  text_plain(a->usd_per_mtok_input), text_plain(a->usd_per_mtok_output), a->date,
                  a->source);
    }
}

static void price_json(struct json *json, const char *name, const struct price_spec *price)
{
    for (size_t k = 0; k < price->offers.count; k++) {
        const struct price_offer *o = (const struct price_offer *)price->offers.items + k;
        json_out_object(json, NULL);
        json_out_text(json, "price", name);
        json_out_text(json, "gpu", price->gpu);
        json_out_text(json, "provider", o->provider);
        json_out_text(json, "kind", price_kind_names[o->kind]);
        json_out_real(json, "usd_per_gpu_hour_low", o->usd_per_gpu_hour_low);
        json_out_real(json, "usd_per_gpu_hour_high", o->usd_per_gpu_hour_high);
        json_out_text(json, "date", o->date);
        json_out_text(json, "source", o->source);
        json_out_object_end(json);
    }
    for (size_t k = 0; k < price->api.count; k++) {
        const struct price_api *a = (const struct price_api *)price->api.items + k;
        json_out_object(json, NULL);
        json_out_text(json, "price", name);
        json_out_text(json, "model", price->model);
        json_out_text(json, "provider", a->provider);
        json_out_real(json, "usd_per_mtok_input", a->usd_per_mtok_input);
        json_out_real(json, "usd_per_mtok_cached", a->usd_per_mtok_cached);
        json_out_real(json, "usd_per_mtok_output", a->usd_per_mtok_output);
        json_out_text(json, "date", a->date);
        json_out_text(json, "source", a->source);
        json_out_object_end(json);
    }
}

static bool prices_list(const struct list_values *values, struct arena *arena,
                        struct errors *errors)
{
    const char *const *names = catalog_names(CATALOG_PRICE, arena);
    static const char *const head[] = {"what", "provider", "kind",  "low $/h",
                                       "high", "date",     "source"};
    struct text_table table;
    text_table_init(&table, sizeof head / sizeof *head, 1, 3);
    struct text *row = text_table_row(&table, false);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cell(&row[i], head[i]);
    struct json json;
    json_out_init(&json, stdout);
    if (values->json) {
        json_out_object(&json, NULL);
        json_out_list(&json, "prices");
    }
    for (size_t i = 0; names[i]; i++) {
        const struct price_spec *price = catalog_price(names[i], arena, errors, NULL);
        if (price && values->json)
            price_json(&json, names[i], price);
        else if (price)
            price_rows(&table, price);
    }
    if (values->json) {
        json_out_list_end(&json);
        json_out_object_end(&json);
    } else {
        text_table_print(&table, stdout);
    }
    text_table_free(&table);
    return errors->error_count == 0;
}

/* ---- cold starts ---------------------------------------------------------------------------- */

/* "weights 94 s, engine_init 200 s": what a preset states. */
static const char *phases_text(const struct cold_start_preset *preset, uint64_t stated,
                               struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; cold_start_fields[i].kind != FIELD_END; i++) {
        const struct field *field = &cold_start_fields[i];
        if ((stated >> i & 1) == 0)
            continue;
        const char *value = "";
        if (field->kind == FIELD_VARIANT) {
            const struct variant_value *phase =
                (const void *)((const char *)&preset->phases + field->offset);
            const struct field *first = phase->type->fields;
            value = strcmp(phase->type->name, "constant") == 0
                        ? field_text(first, (const char *)phase->config + first->offset, arena)
                        : phase->type->name;
        } else {
            value = field_text(field, (const char *)&preset->phases + field->offset, arena);
        }
        text = arena_printf(arena, "%s%s%s %s", text, *text ? ", " : "", field->name, value);
    }
    return text;
}

static bool cold_starts_list(const struct list_values *values, struct arena *arena,
                             struct errors *errors)
{
    const char *const *names = catalog_names(CATALOG_COLD_START, arena);
    struct json json;
    json_out_init(&json, stdout);
    if (values->json) {
        json_out_object(&json, NULL);
        json_out_list(&json, "cold_starts");
    }
    for (size_t i = 0; names[i]; i++) {
        uint64_t stated;
        const struct cold_start_preset *p =
            cold_start_preset_load(names[i], &stated, arena, errors, NULL);
        if (!p)
            continue;
        const char *phases = phases_text(p, stated, arena);
        if (values->json) {
            json_out_object(&json, NULL);
            json_out_text(&json, "preset", names[i]);
            json_out_text(&json, "name", p->name);
            json_out_text(&json, "hardware", p->hardware);
            json_out_text(&json, "engine", p->engine);
            json_out_text(&json, "phases", phases);
            json_out_text(&json, "source", p->source);
            json_out_text(&json, "date", p->date);
            json_out_text(&json, "notes", p->notes);
            json_out_object_end(&json);
        } else {
            printf("%s\n    %s; %s\n    %s\n    %s\n    (%s, %s)\n", names[i], p->name, p->hardware,
                   p->engine, phases, p->source, p->date);
        }
    }
    if (values->json) {
        json_out_list_end(&json);
        json_out_object_end(&json);
    } else {
        fputs("\nFor `cold_start: {preset: NAME}`; phases that a preset does not state keep their "
              "defaults.\n",
              stdout);
    }
    return errors->error_count == 0;
}

/* ---- policies ------------------------------------------------------------------------------- */

static void variants_list(const struct list_values *values, struct json *json, const char *key,
                          const struct variant *const *variants)
{
    if (values->json)
        json_out_list(json, key);
    else
        printf("%s\n", key);
    for (size_t i = 0; variants[i]; i++) {
        if (values->json) {
            json_out_object(json, NULL);
            json_out_text(json, "policy", variants[i]->name);
            json_out_text(json, "doc", variants[i]->doc);
            json_out_object_end(json);
        } else {
            printf("  %-16s %s\n", variants[i]->name, variants[i]->doc);
        }
    }
    if (values->json)
        json_out_list_end(json);
}

static void policies_list(const struct list_values *values)
{
    struct json json;
    json_out_init(&json, stdout);
    if (values->json)
        json_out_object(&json, NULL);
    variants_list(values, &json, "routers", router_variants);
    variants_list(values, &json, "autoscalers", autoscaler_variants);
    if (values->json)
        json_out_object_end(&json);
    else
        fputs("\n`explain fleet.router` and `explain fleet.pools.autoscaler` say what each can be "
              "told.\n",
              stdout);
}

/* What is wrong with the combination of options; NULL: nothing. */
static const char *usage_wrong(const struct list_values *values, const char *what)
{
    if (values->model && strcmp(what, "gpus") != 0)
        return "--model goes with gpus";
    if (!values->model && (values->tpot || values->prompt || values->output))
        return "--tpot, --prompt and --output go with --model";
    return NULL;
}

static int list_run(const void *values_, const struct options_list *operands)
{
    const struct list_values *values = values_;
    const char *what = operands->items[0];
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    static const char *const words[] = {"models", "gpus", "prices",
                                        "cold-starts"}; /* by catalog_kind */
    int kind = 0;
    while (kind < CATALOG_KIND_COUNT && strcmp(what, words[kind]) != 0)
        kind++;
    const char *misused = usage_wrong(values, what);
    int code = COMMAND_OK;
    bool ok = true;
    if (!misused && strcmp(what, "policies") == 0) {
        policies_list(values);
    } else if (kind == CATALOG_KIND_COUNT) {
        fprintf(stderr,
                "fleetsim list: '%s' is not gpus, models, prices, cold-starts or policies\n", what);
        code = COMMAND_BAD_USAGE;
    } else if (misused) {
        fprintf(stderr, "fleetsim list: %s\n", misused);
        code = COMMAND_BAD_USAGE;
    } else if (!catalog_root(&arena)) {
        errors_add(&errors, SEVERITY_ERROR, NULL, "no catalogue: %s", catalog_missing(&arena));
        ok = false;
    } else if (!catalog_names((enum catalog_kind)kind, &arena)[0]) {
        errors_add(&errors, SEVERITY_ERROR, NULL, "the catalogue '%s' has no %s (no %s/*.yaml)",
                   catalog_root(&arena), what, catalog_folders[kind]);
        ok = false;
    } else if (kind == CATALOG_GPU) {
        ok = values->model ? costs_list(values, &arena, &errors)
                           : gpus_list(values, &arena, &errors);
    } else if (kind == CATALOG_LLM) {
        ok = models_list(values, &arena, &errors);
    } else if (kind == CATALOG_PRICE) {
        ok = prices_list(values, &arena, &errors);
    } else {
        ok = cold_starts_list(values, &arena, &errors);
    }
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return code != COMMAND_OK ? code : ok ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_list_command = {
    .name = "list",
    .summary = "the catalogue and the policies; what a model costs on each GPU",
    .operands = "gpus|models|prices|cold-starts|policies",
    .operands_min = 1,
    .operands_max = 1,
    .options = list_specs,
    .options_size = sizeof(struct list_values),
    .text = "With --model, `list gpus` compares the cost of a million output tokens of that model\n"
            "on every GPU under a limit on the time per token, and says why where it cannot be.\n",
    .example = "fleetsim list gpus\n"
               "fleetsim list gpus --model llama-3.1-70b --tpot '50 ms'\n"
               "fleetsim list models --json\n"
               "fleetsim list cold-starts\n",
    .run = list_run,
};
