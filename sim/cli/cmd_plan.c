/* fleetsim plan SCENARIO: the closed-form estimate, every assumption on its own line. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "models/moe_load.h"
#include "models/plan.h"
#include "sim/base/time.h"
#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/quantity.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"
#include "sim/run/deployment.h"

/* A reading pace, where no class states a limit. */
static const double tpot_default_s = 0.05;

struct plan_values {
    struct options_list sets;
    const char *model, *gpu, *api, *api_input, *api_output, *cached, *pool;
    bool json;
};

static const struct options_spec plan_specs[] = {
    {"set", 0, OPTIONS_LIST, offsetof(struct plan_values, sets), "KEY=VALUE",
     "change one value, as workload[0].output_tokens.value=800"},
    {"pool", 0, OPTIONS_TEXT, offsetof(struct plan_values, pool), "NAME",
     "which pool is planned (the first)"},
    {"model", 0, OPTIONS_TEXT, offsetof(struct plan_values, model), "NAME|PATH",
     "checks rates and KV cache against this model (the pool's)"},
    {"gpu", 0, OPTIONS_TEXT, offsetof(struct plan_values, gpu), "NAME|PATH",
     "… on this GPU (the pool's)"},
    {"cached", 0, OPTIONS_TEXT, offsetof(struct plan_values, cached), "SHARE",
     "share of prompt tokens found in a prefix cache (0 %)"},
    {"api", 0, OPTIONS_TEXT, offsetof(struct plan_values, api), "NAME|PATH",
     "a price file with an API to compare with"},
    {"api-input", 0, OPTIONS_TEXT, offsetof(struct plan_values, api_input), "$/Mtok",
     "or its price per million prompt tokens"},
    {"api-output", 0, OPTIONS_TEXT, offsetof(struct plan_values, api_output), "$/Mtok",
     "and per million output tokens"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct plan_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

/* What the estimate rests on, beside plan_input. */
struct plan_ask {
    const struct run *run;
    const struct run_config *config;
    const struct pool_config *pool;
    size_t pool_index;
    struct plan_input input;
    bool users_known;
    double hourly[PLAN_HOURS]; /* of the scenario, mean 1 */
    double peak;
    const struct llm_spec *llm; /* NULL: not stated */
    const struct gpu_spec *gpu;
    struct precision precision;
    double cached;
    double tpot_limit_s;
    bool chosen;          /* --model or --gpu, not the pool's own */
    const char *layout;   /* whose rates are predicted; NULL: they are stated */
    double busiest;       /* GPU over mean of expert work at the predicted batch; NaN: not known */
    struct price_api api; /* provider NULL: none */
};

/* ---- reading the scenario ------------------------------------------------------------------- */

/* A real or time of a filled variant by the name in its field table; NaN when it has none. */
static double variant_number(const struct variant_value *value, const char *name)
{
    for (const struct field *f = value->type->fields; f && f->kind != FIELD_END; f++) {
        const char *at = (const char *)value->config + f->offset;
        if (strcmp(f->name ? f->name : "", name) != 0)
            continue;
        if (f->kind == FIELD_REAL)
            return *(const double *)at;
        if (f->kind == FIELD_TIME)
            return time_seconds(*(const int64_t *)at);
    }
    return NAN;
}

/* `users` of the arrivals, where the class states them; false otherwise. */
static bool users_read(const struct variant_value *arrivals, struct plan_input *in)
{
    for (const struct field *f = arrivals->type->fields; f && f->kind != FIELD_END; f++) {
        if (f->kind != FIELD_STRUCT || strcmp(f->name, "users") != 0)
            continue;
        const char *base = (const char *)arrivals->config + f->offset;
        double found[3] = {NAN, NAN, NAN};
        static const char *const names[3] = {"daily", "sessions", "requests_per_session"};
        for (const struct field *u = f->fields; u->kind != FIELD_END; u++)
            for (int i = 0; i < 3; i++)
                if (u->kind == FIELD_REAL && strcmp(u->name, names[i]) == 0)
                    found[i] = *(const double *)(base + u->offset);
        if (!(found[0] > 0) || !(found[1] > 0) || !(found[2] > 0))
            return false;
        in->users = found[0];
        in->sessions = found[1];
        in->requests = found[2];
        return true;
    }
    return false;
}

/* The plan and the simulation's references go by the rates at full hours; says so where the traffic
 * rises well above them in between. */
static void peak_between_hours(const struct plan_ask *ask, struct errors *errors)
{
    enum { MINUTES = 24 * 60 };
    const struct workload *w = run_workload(ask->run);
    double at_hours = 0, most = 0;
    int most_minute = 0;
    for (int m = 0; m < MINUTES; m++) {
        double rate = 0;
        for (size_t c = 0; c < ask->config->workload.count; c++)
            if (config_class_goes_to(config_class(ask->config, c), ask->pool->name))
                rate += workload_rate(w, c, m * (PS_PER_HOUR / 60));
        if (rate > most) {
            most = rate;
            most_minute = m;
        }
        if (m % 60 == 0)
            at_hours = fmax(at_hours, rate);
    }
    if (most > 1.02 * at_hours)
        errors_add(errors, SEVERITY_WARNING, NULL,
                   "the traffic reaches %.4g requests/s at %02d:%02d, %.0f %% above the busiest "
                   "full hour: peak and bars go by full hours",
                   most, most_minute / 60, most_minute % 60, 100 * (most / at_hours - 1));
}

/* Requests of the first day, mean lengths, and the rate at each full hour over their mean. */
static bool traffic_read(struct plan_ask *ask, struct errors *errors)
{
    const struct workload *w = run_workload(ask->run);
    double requests = 0, prompt = 0, output = 0, sum = 0;
    size_t classes = 0, last = 0;
    for (size_t c = 0; c < ask->config->workload.count; c++) {
        if (!config_class_goes_to(config_class(ask->config, c), ask->pool->name))
            continue;
        double n = workload_expected(w, c, 0, PLAN_HOURS * PS_PER_HOUR);
        requests += n;
        prompt += n * workload_mean_prompt(w, c);
        output += n * workload_mean_output(w, c);
        for (int h = 0; h < PLAN_HOURS; h++)
            ask->hourly[h] += workload_rate(w, c, h * PS_PER_HOUR);
        int64_t tpot = config_class(ask->config, c)->slo.tpot_ps;
        if (tpot != FIELD_INT_UNSET)
            ask->tpot_limit_s = fmin(ask->tpot_limit_s, time_seconds(tpot));
        classes++;
        last = c;
    }
    if (!(requests > 0) || !(prompt > 0) || !(output > 0)) {
        errors_add(errors, SEVERITY_ERROR, NULL, "pool '%s' gets no %s on the first day",
                   ask->pool->name,
                   !(requests > 0) ? "requests"
                   : !(prompt > 0) ? "prompt tokens"
                                   : "output tokens");
        return false;
    }
    for (int h = 0; h < PLAN_HOURS; h++)
        sum += ask->hourly[h];
    for (int h = 0; h < PLAN_HOURS; h++) {
        ask->hourly[h] *= PLAN_HOURS / sum;
        ask->peak = ask->hourly[h] > ask->peak ? ask->hourly[h] : ask->peak;
    }
    if (isinf(ask->tpot_limit_s))
        ask->tpot_limit_s = tpot_default_s;
    peak_between_hours(ask, errors);
    struct plan_input *in = &ask->input;
    const struct class_config *class = config_class(ask->config, last);
    ask->users_known = classes == 1 && users_read(&class->traffic.arrivals, in);
    if (!ask->users_known)
        in->users = requests;
    in->prompt_tokens = prompt / requests;
    in->output_tokens = output / requests;
    /* Rounding of the rates by the workload must not show: 3.0000000001 is 3. */
    in->peak_factor = round(ask->peak * 1e9) / 1e9;
    return true;
}

/* The scenario's day, its distance from the mean stretched to another peak. */
static bool curve_stretch(void *self, double peak, double hourly[PLAN_HOURS])
{
    const struct plan_ask *ask = self;
    double own = ask->input.peak_factor, lean = own > 1 ? (peak - 1) / (own - 1) : 0;
    if (own <= 1 && peak != own)
        return false;
    for (int h = 0; h < PLAN_HOURS; h++) {
        hourly[h] = peak == own ? ask->hourly[h] : 1 + (ask->hourly[h] - 1) * lean;
        if (hourly[h] < 0)
            return false;
    }
    return true;
}

/* Max/mean of expert work in the decode batch of the estimate: by the pool's popularity where it
 * states one, else under uniform routing, which the rates do not pay for. */
static double busiest_gpu(const struct plan_ask *ask, const struct deployment_choice *c)
{
    const struct parallel *p = &c->deployment.parallel;
    if (c->deployment.llm->moe.experts == 0 || p->expert == 1)
        return NAN;
    double tokens = ceil(c->estimate.running / (double)p->pipeline);
    const struct roofline_config *config = ask->pool->step_time.config;
    if (!ask->chosen && ask->pool->step_time.type == &step_roofline_variant && config->law)
        return moe_law_factor(config->law, (int64_t)tokens);
    return moe_load_uniform((double)p->expert, tokens * (double)c->deployment.llm->moe.top_k);
}

/* Rates of the fitted model with a batch that just keeps the classes' TPOT: the pool's own layout
 * where its step time is roofline, else the best one of a scale-up domain. */
static bool rates_predict(struct plan_ask *ask, struct arena *arena, struct errors *errors)
{
    struct plan_input *in = &ask->input;
    struct serving_load load = {1, in->prompt_tokens, in->output_tokens,
                                (double)ask->pool->engine.max_num_batched_tokens};
    struct deployment_choice c = {.why_not = "slower than the time per token allows"};
    if (ask->pool->step_time.type == &step_roofline_variant && !ask->chosen) {
        const struct roofline_config *config = ask->pool->step_time.config;
        struct deployment *d = &c.deployment;
        struct roofline *r = arena_alloc(arena, sizeof *r);
        *d = (struct deployment){.llm = config->llm,
                                 .gpu = config->gpu,
                                 .parallel = config->parallel,
                                 .precision = config->precision};
        struct memory_query query = memory_query(d->llm, d->gpu, &d->parallel);
        query.precision = d->precision;
        query.utilization = ask->pool->engine.gpu_memory_utilization;
        query.redundant_experts = config->redundant_experts;
        d->memory = memory_plan(&query);
        c.found = roofline_init(r, config, errors, NULL) &&
                  serving_at_tpot(r, &d->memory, &load, ask->tpot_limit_s, &c.estimate);
    } else {
        c = deployment_choose(ask->llm, ask->gpu, &ask->precision, &load, ask->tpot_limit_s, arena);
    }
    if (!c.found) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%s on %s: %s", ask->llm->name, ask->gpu->name,
                   c.why_not);
        return false;
    }
    ask->busiest = busiest_gpu(ask, &c);
    char layout[PARALLEL_TEXT_MAX];
    ask->layout = arena_copy(arena, parallel_text(&c.deployment.parallel, layout));
    in->gpus_per_replica = (double)parallel_gpus(&c.deployment.parallel);
    /* Each rate alone on the GPU, as the chain takes them: output tokens without prefills. */
    double prefill = in->prompt_tokens / c.estimate.prefill_s;
    double busy = c.estimate.requests_per_s * c.estimate.prefill_s;
    /* Cached prompt tokens take no time: the rate counts them in. */
    in->prefill_tokens_per_s = prefill / in->gpus_per_replica / (1 - ask->cached);
    in->decode_tokens_per_s =
        c.estimate.output_tokens_per_s / (1 - fmin(busy, 0.99)) / in->gpus_per_replica;
    in->tpot_s = c.estimate.tpot_s;
    return true;
}

/* Rates per GPU: of `rate`, else of the fitted model under the class's TPOT. */
static bool rates_read(struct plan_ask *ask, struct arena *arena, struct errors *errors)
{
    struct plan_input *in = &ask->input;
    double gpus = (double)config_gpus_per_replica(ask->pool);
    in->gpus_per_replica = gpus;
    in->utilization = ask->pool->target_utilization;
    double decode = variant_number(&ask->pool->step_time, "decode_tokens_per_s");
    double prefill = variant_number(&ask->pool->step_time, "prefill_tokens_per_s");
    if (!isnan(decode) && !isnan(prefill)) {
        double step = variant_number(&ask->pool->step_time, "min_step");
        in->decode_tokens_per_s = decode / gpus;
        in->prefill_tokens_per_s = prefill / gpus;
        in->tpot_s = step > 0 ? step : in->tpot_s;
        return true;
    }
    if (!ask->llm || !ask->gpu) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "plan needs rates: a step_time of model rate, or a model and a gpu");
        return false;
    }
    return rates_predict(ask, arena, errors);
}

static bool models_read(struct plan_ask *ask, const struct plan_values *v, struct arena *arena,
                        struct errors *errors)
{
    const char *model = v->model ? v->model : ask->pool->model;
    const char *gpu = v->gpu ? v->gpu : ask->pool->gpu;
    size_t before = errors->error_count;
    ask->chosen = v->model || v->gpu;
    if (!v->model && ask->pool->step_time.type == &step_roofline_variant) {
        /* Resolved when the run was opened, relative to the scenario. */
        const struct roofline_config *config = ask->pool->step_time.config;
        ask->llm = config->llm;
        model = NULL;
        ask->gpu = v->gpu ? NULL : config->gpu;
        gpu = v->gpu;
    }
    if (model)
        ask->llm = catalog_llm(model, arena, errors, NULL);
    if (gpu)
        ask->gpu = catalog_gpu(gpu, arena, errors, NULL);
    if (ask->llm) {
        struct precision usual = {-1, -1, -1};
        ask->precision = llm_precision(ask->llm, v->model ? &usual : &ask->pool->precision);
        struct llm_kv kv = llm_kv(ask->llm, (enum storage)ask->precision.kv);
        ask->input.kv_bytes_per_token = kv.per_token + kv.indexer_per_token;
    }
    return errors->error_count == before;
}

static bool api_read(struct plan_ask *ask, const struct plan_values *v, struct arena *arena,
                     struct errors *errors)
{
    if (!quantity_read(v->cached, "cached", UNIT_FRACTION, 0, 0, 0.999, &ask->cached, errors))
        return false;
    if (v->api) {
        const struct price_spec *price = catalog_price(v->api, arena, errors, NULL);
        if (price && price->api.count == 0)
            errors_add(errors, SEVERITY_ERROR, NULL, "--api '%s' has no API prices", v->api);
        if (!price || price->api.count == 0)
            return false;
        ask->api = *(const struct price_api *)price->api.items;
    }
    if (!v->api_input && !v->api_output)
        return true;
    if (!v->api_input || !v->api_output) {
        errors_add(errors, SEVERITY_ERROR, NULL, "--api-input and --api-output go together");
        return false;
    }
    ask->api = (struct price_api){.provider = "as stated"};
    return quantity_read(v->api_input, "api-input", UNIT_USD_PER_MTOK, 0, 0, 1e6,
                         &ask->api.usd_per_mtok_input, errors) &&
           quantity_read(v->api_output, "api-output", UNIT_USD_PER_MTOK, 0, 0, 1e6,
                         &ask->api.usd_per_mtok_output, errors);
}

static bool pool_find(struct plan_ask *ask, const char *name, struct errors *errors)
{
    for (size_t p = 0; p < ask->config->fleet.pools.count; p++) {
        ask->pool = config_pool(ask->config, p);
        ask->pool_index = p;
        if (!name || strcmp(ask->pool->name, name) == 0)
            return true;
    }
    errors_add(errors, SEVERITY_ERROR, NULL, "there is no pool '%s'", name);
    return false;
}

static bool ask_read(struct plan_ask *ask, const struct plan_values *v, struct arena *arena,
                     struct errors *errors)
{
    ask->config = run_config(ask->run);
    ask->tpot_limit_s = INFINITY;
    ask->input = plan_input_default();
    ask->input.curve = (struct plan_curve){curve_stretch, ask};
    if (!pool_find(ask, v->pool, errors))
        return false;
    bool ok = models_read(ask, v, arena, errors);
    ok &= api_read(ask, v, arena, errors);
    if (!ok || !traffic_read(ask, errors) || !rates_read(ask, arena, errors))
        return false;
    const struct price_config *price = &ask->pool->price;
    double usd = price->usd_per_gpu_hour;
    ask->input.usd_low = isnan(price->low) ? usd : price->low;
    ask->input.usd_high = isnan(price->high) ? usd : price->high;
    return true;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void line(const char *what, const char *value, const char *note)
{
    fputs("  ", stdout);
    text_left(stdout, 30, what);
    text_right(stdout, 16, value);
    printf("%s%s\n", note[0] ? "  " : "", note);
}

static void print_assumptions(const struct plan_ask *ask)
{
    const struct plan_input *in = &ask->input;
    fputs("assumptions (change any with --set)\n", stdout);
    if (ask->users_known) {
        line("daily active users", text_real(in->users, 0).s, "");
        line("sessions per user", text_plain(in->sessions).s, "");
        line("requests per session", text_plain(in->requests).s, "");
    } else {
        line("requests per day", text_real(in->users, 0).s, "the scenario states no users");
    }
    line("prompt tokens", text_plain(in->prompt_tokens).s, "mean per request");
    line("output tokens", text_plain(in->output_tokens).s, "mean per request");
    line("peak factor", text_plain(in->peak_factor).s,
         "largest of the rates at 24 full hours, over their mean");
    if (ask->layout) {
        char note[128];
        snprintf(note, sizeof note, "of %.40s on %.40s; rates by the fitted model", ask->llm->name,
                 ask->gpu->name);
        line("layout", ask->layout, note);
    }
    if (!isnan(ask->busiest))
        line("busiest GPU over mean", text_real(ask->busiest, 2).s,
             "of expert work in that batch; every MoE layer waits for it");
    line("decode tokens/s per GPU", text_real(in->decode_tokens_per_s, 0).s, "");
    char cached[96] = "";
    if (ask->cached > 0)
        snprintf(cached, sizeof cached, "%s %% of them cached", text_percent(ask->cached, 0).s);
    line("prefill tokens/s per GPU", text_real(in->prefill_tokens_per_s, 0).s, cached);
    line("time per output token", text_short(in->tpot_s * 1e3).s, "ms");
    line("queue and prefill", text_plain(in->first_token_s).s, "s, for Little's law");
    line("target utilisation", text_percent(in->utilization, 0).s, "%");
    line("$ per GPU-hour, low", text_real(in->usd_low, 2).s, "");
    line("$ per GPU-hour, high", text_real(in->usd_high, 2).s, "");
}

/* A small need must not read as none: 272.8, 3.25, 0.0417. */
static struct text need_text(double need)
{
    return need < 10 ? text_short(need) : text_real(need, 1);
}

static void print_chain(const struct plan_ask *ask, const struct plan_result *r)
{
    char note[160];
    fputs("\nchain\n", stdout);
    line("requests per day", text_real(r->requests_per_day, 0).s, "");
    line("average requests/s", need_text(r->average_qps).s, "");
    line("peak requests/s", need_text(r->peak_qps).s, "");
    line("peak prefill tokens/s", text_real(r->peak_prefill_tokens_per_s, 0).s, "");
    line("peak decode tokens/s", text_real(r->peak_decode_tokens_per_s, 0).s, "");
    line("GPUs for decode", need_text(r->decode_gpus).s, "at 100 %");
    line("GPUs for prefill", need_text(r->prefill_gpus).s, "at 100 %");
    line("requests/s per replica", text_short(r->replica_qps).s,
         "at 100 %: what `capacity` of the pool means");
    snprintf(note, sizeof note, "%s at the target utilisation, rounded up",
             need_text(r->gpus_exact).s);
    if (ask->input.gpus_per_replica > 1)
        snprintf(note, sizeof note, "%s at the target utilisation, in whole replicas of %s",
                 need_text(r->gpus_exact).s, text_plain(ask->input.gpus_per_replica).s);
    line("GPUs at peak", text_real(r->gpus_peak, 0).s, note);
    line("GPU-hours/day, for the peak", text_real(r->peak_gpu_hours, 0).s, "");
    line("GPU-hours/day, ideal scaling", text_real(r->ideal_gpu_hours, 0).s,
         "the sum of the bars below");
    fputs("\nGPUs by hour\n", stdout);
    for (int h = 0; h < PLAN_HOURS; h++) {
        printf("  %02d  ", h);
        text_right(stdout, 7, text_real(r->hourly_gpus[h], 0).s);
        int bars = (int)(50 * r->hourly_gpus[h] / r->gpus_peak + 0.5);
        for (int i = 0; i < bars; i++)
            fputs(i == 0 ? "  █" : "█", stdout);
        fputc('\n', stdout);
    }
    (void)ask;
}

static void money_row(struct text_table *table, const char *what, double low, double high,
                      int decimals)
{
    struct text *row = text_table_row(table, table->rows == 1);
    snprintf(row[0].s, sizeof row[0].s, "%s", what);
    row[1] = text_real(low, decimals);
    row[2] = text_real(high, decimals);
}

static void print_dollars(const struct plan_ask *ask, const struct plan_result *r)
{
    struct text_table table;
    text_table_init(&table, 3, 1, 1);
    struct text *row = text_table_row(&table, false);
    snprintf(row[0].s, sizeof row[0].s, "dollars");
    snprintf(row[1].s, sizeof row[1].s, "ideal, low price");
    snprintf(row[2].s, sizeof row[2].s, "peak, high price");
    money_row(&table, "per day", r->usd_day_low, r->usd_day_high, 0);
    money_row(&table, "per month of 30 days", r->usd_month_low, r->usd_month_high, 0);
    if (ask->users_known)
        money_row(&table, "per user and month", r->usd_user_low, r->usd_user_high, 4);
    money_row(&table, "per million tokens", r->usd_mtok_low, r->usd_mtok_high, 4);
    money_row(&table, "  prompt tokens", r->usd_input_low, r->usd_input_high, 4);
    money_row(&table, "  output tokens", r->usd_output_low, r->usd_output_high, 4);
    fputc('\n', stdout);
    text_table_print(&table, stdout);
    text_table_free(&table);
    printf("%s tokens per day. Real autoscaling lands between the two: cold starts keep it from\n"
           "following the curve. Prompt and output tokens pay for their share of the GPU time.\n",
           text_real(r->tokens_per_day, 0).s);
}

static void print_cross_check(const struct plan_ask *ask, const struct plan_result *r)
{
    char note[192];
    fputs("\ncross-check (Little's law)\n", stdout);
    line("seconds in the system", text_short(r->seconds_in_system).s, "");
    line("concurrent streams at peak", text_real(r->streams, 0).s, "");
    snprintf(note, sizeof note, "%s are implied by decode rate x time per token",
             text_real(r->streams_implied, 1).s);
    line("streams per GPU", text_real(r->streams_per_gpu, 1).s, note);
    if (isnan(r->kv_total)) {
        line("KV cache", TEXT_UNDEFINED, "state a model (--model) for it");
        return;
    }
    snprintf(note, sizeof note, "MB at the final length (%s MiB)",
             text_real(r->kv_per_stream / 1048576, 1).s);
    line("KV per stream", text_real(r->kv_per_stream / 1e6, 1).s, note);
    snprintf(note, sizeof note, "TB (%s TiB): %s streams x %s MB",
             text_real(r->kv_total / 1099511627776.0, 2).s, text_real(r->streams, 0).s,
             text_real(r->kv_per_stream / 1e6, 1).s);
    line("KV in all", text_real(r->kv_total / 1e12, 2).s, note);
    snprintf(note, sizeof note, "GB (%s GiB)", text_real(r->kv_per_gpu / 1073741824.0, 2).s);
    line("KV per GPU", text_real(r->kv_per_gpu / 1e9, 2).s, note);
    if (!ask->gpu)
        return;
    double weights = memory_weights(ask->llm, &ask->precision).total / ask->input.gpus_per_replica;
    double room = 0.9 * hardware_hbm(ask->gpu, true) - weights;
    snprintf(note, sizeof note, "GB beside %s GB of weights on %s: %s",
             text_real(weights / 1e9, 1).s, ask->gpu->name,
             room >= r->kv_per_gpu ? "it fits" : "it does not fit");
    line("room for KV per GPU", text_real(room / 1e9, 1).s, note);
}

static void print_api(const struct plan_ask *ask)
{
    struct plan_break_even b;
    if (!ask->api.provider || !plan_against_api(&ask->input, &ask->api, &b))
        return;
    printf("\nagainst the API %s: $%s in, $%s out per million tokens\n", ask->api.provider,
           text_plain(ask->api.usd_per_mtok_input).s, text_plain(ask->api.usd_per_mtok_output).s);
    printf("  the same day costs $%s there, $%s to $%s on own GPUs\n",
           text_real(b.api_usd_day, 0).s, text_real(b.self_usd_day_low, 0).s,
           text_real(b.self_usd_day_high, 0).s);
    printf(
        "  own GPUs break even at %s %% utilisation of all paid hours at the low price, %s %% at "
        "the high one%s\n",
        text_percent(b.utilization_low, 1).s, text_percent(b.utilization_high, 1).s,
        b.utilization_high > 1 ? " (more than 100 %: never)" : "");
    fputs("  own GPUs are cheaper from this many requests a day, idle hours of whole replicas "
          "included\n",
          stdout);
    line("  ideal scaling, low price", text_real(b.requests_low, 0).s,
         isnan(b.requests_low) ? "at no volume" : "");
    line("  peak, high price", text_real(b.requests_high, 0).s,
         isnan(b.requests_high) ? "at no volume" : "");
}

static void print_sensitivity(const struct plan_ask *ask)
{
    struct plan_sensitivity s[PLAN_ASSUMPTIONS];
    size_t count = plan_sensitivity(&ask->input, s);
    struct text_table table;
    text_table_init(&table, 4, 1, 1);
    static const char *const head[] = {"each changed by", "-50 %: $/month", "+50 %: $/month",
                                       "swing"};
    struct text *row = text_table_row(&table, false);
    for (int i = 0; i < 4; i++)
        snprintf(row[i].s, sizeof row[i].s, "%s", head[i]);
    for (size_t i = 0; i < count; i++) {
        bool of_users = strstr(s[i].assumption, "session") || strstr(s[i].assumption, "users");
        if (of_users && !ask->users_known && i > 0 && !strstr(s[i].assumption, "users"))
            continue;
        row = text_table_row(&table, table.rows == 1);
        snprintf(row[0].s, sizeof row[0].s, "%s",
                 !ask->users_known && of_users ? "requests per day" : s[i].assumption);
        row[1] = text_real(s[i].usd_less, 0);
        row[2] = text_real(s[i].usd_more, 0);
        snprintf(row[3].s, sizeof row[3].s, "%.40s %%", text_percent(s[i].swing, 0).s);
    }
    fputs("\nwhat moves the answer (mean of the two bounds, per month)\n", stdout);
    text_table_print(&table, stdout);
    text_table_free(&table);
}

static void json_range(struct json *json, const char *key, double low, double high)
{
    json_out_object(json, key);
    json_out_real(json, "low", low);
    json_out_real(json, "high", high);
    json_out_object_end(json);
}

static void json_assumptions(struct json *json, const struct plan_ask *ask)
{
    const struct plan_input *in = &ask->input;
    json_out_object(json, "assumptions");
    json_out_real(json, "users", ask->users_known ? in->users : NAN);
    json_out_real(json, "sessions", ask->users_known ? in->sessions : NAN);
    json_out_real(json, "requests_per_session", ask->users_known ? in->requests : NAN);
    json_out_real(json, "prompt_tokens", in->prompt_tokens);
    json_out_real(json, "output_tokens", in->output_tokens);
    json_out_real(json, "peak_factor", in->peak_factor);
    json_out_real(json, "decode_tokens_per_s_per_gpu", in->decode_tokens_per_s);
    json_out_real(json, "prefill_tokens_per_s_per_gpu", in->prefill_tokens_per_s);
    json_out_real(json, "tpot_s", in->tpot_s);
    json_out_real(json, "utilization", in->utilization);
    json_range(json, "usd_per_gpu_hour", in->usd_low, in->usd_high);
    json_out_object_end(json);
}

static void print_json(const struct plan_ask *ask, const struct plan_result *r)
{
    struct json json;
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "scenario", ask->config->name);
    json_out_text(&json, "pool", ask->pool->name);
    json_out_text(&json, "layout", ask->layout);
    json_out_real(&json, "busiest_over_mean", ask->busiest);
    json_assumptions(&json, ask);
    json_out_real(&json, "requests_per_day", r->requests_per_day);
    json_out_real(&json, "average_requests_per_s", r->average_qps);
    json_out_real(&json, "peak_requests_per_s", r->peak_qps);
    json_out_real(&json, "peak_prefill_tokens_per_s", r->peak_prefill_tokens_per_s);
    json_out_real(&json, "peak_decode_tokens_per_s", r->peak_decode_tokens_per_s);
    json_out_real(&json, "gpus_exact", r->gpus_exact);
    json_out_real(&json, "gpus_peak", r->gpus_peak);
    json_out_real(&json, "gpus_per_replica", ask->input.gpus_per_replica);
    json_out_real(&json, "replica_requests_per_s", r->replica_qps);
    json_out_real(&json, "gpu_hours_peak", r->peak_gpu_hours);
    json_out_real(&json, "gpu_hours_ideal", r->ideal_gpu_hours);
    json_out_list(&json, "hourly_gpus");
    for (int h = 0; h < PLAN_HOURS; h++)
        json_out_real(&json, NULL, r->hourly_gpus[h]);
    json_out_list_end(&json);
    json_range(&json, "usd_per_day", r->usd_day_low, r->usd_day_high);
    json_range(&json, "usd_per_month", r->usd_month_low, r->usd_month_high);
    json_range(&json, "usd_per_user_month", ask->users_known ? r->usd_user_low : NAN,
               ask->users_known ? r->usd_user_high : NAN);
    json_range(&json, "usd_per_mtok", r->usd_mtok_low, r->usd_mtok_high);
    json_range(&json, "usd_per_mtok_input", r->usd_input_low, r->usd_input_high);
    json_range(&json, "usd_per_mtok_output", r->usd_output_low, r->usd_output_high);
    json_out_real(&json, "streams", r->streams);
    json_out_real(&json, "kv_bytes", r->kv_total);
    json_out_real(&json, "kv_bytes_per_gpu", r->kv_per_gpu);
    struct plan_break_even b;
    if (ask->api.provider && plan_against_api(&ask->input, &ask->api, &b)) {
        json_out_object(&json, "api");
        json_out_real(&json, "usd_per_day", b.api_usd_day);
        json_range(&json, "break_even_utilization", b.utilization_low, b.utilization_high);
        json_range(&json, "break_even_requests_per_day", b.requests_low, b.requests_high);
        json_out_object_end(&json);
    }
    struct plan_sensitivity s[PLAN_ASSUMPTIONS];
    json_out_list(&json, "sensitivity");
    for (size_t i = 0, count = plan_sensitivity(&ask->input, s); i < count; i++) {
        json_out_object(&json, NULL);
        json_out_text(&json, "assumption", s[i].assumption);
        json_out_real(&json, "base", s[i].base);
        json_out_real(&json, "usd_per_month_less", s[i].usd_less);
        json_out_real(&json, "usd_per_month_more", s[i].usd_more);
        json_out_real(&json, "swing", s[i].swing);
        json_out_object_end(&json);
    }
    json_out_list_end(&json);
    json_out_object_end(&json);
}

static bool plan_with(const struct plan_values *values, const char *scenario, struct arena *arena,
                      struct errors *errors)
{
    struct run *run = setup_open(scenario, &values->sets, NULL, NULL, arena, errors);
    struct plan_ask ask = {.run = run, .busiest = NAN};
    struct plan_result r;
    bool ok = run && ask_read(&ask, values, arena, errors) && plan_estimate(&ask.input, &r);
    if (ok && ask.llm && ask.gpu)
        plan_warn_physics(&ask.input, ask.llm, ask.gpu, &ask.precision, ask.cached, errors, NULL);
    if (ok && values->json) {
        print_json(&ask, &r);
    } else if (ok) {
        printf("%s, pool %s: an estimate in closed form\n\n", ask.config->name, ask.pool->name);
        print_assumptions(&ask);
        print_chain(&ask, &r);
        print_dollars(&ask, &r);
        print_cross_check(&ask, &r);
        print_api(&ask);
        print_sensitivity(&ask);
    }
    run_free(run);
    return ok;
}

static int plan_run(const void *values, const struct options_list *operands)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    bool ok = plan_with(values, operands->items[0], &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return ok ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_plan_command = {
    .name = "plan",
    .summary = "the closed-form estimate of a scenario, every assumption on its own line",
    .operands = "SCENARIO",
    .operands_min = 1,
    .operands_max = 1,
    .options = plan_specs,
    .options_size = sizeof(struct plan_values),
    .text =
        "Users to requests to tokens per second to GPUs to dollars, for one day, without\n"
        "simulating; which assumption moves the answer most; with --model and --gpu whether the\n"
        "rates are physically possible; with --api when own GPUs pay.\n",
    .example = "fleetsim plan chat-1m --model llama-3.1-70b --gpu h200-sxm\n"
               "fleetsim plan chat-1m --set workload[0].output_tokens.value=800 --json\n"
               "fleetsim plan chat-1m --api-input 0.20 --api-output 0.80\n",
    .run = plan_run,
};
