/* fleetsim layout: which ways of splitting a model over GPUs fit, and what each costs per step. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/layout.h"
#include "models/moe_load.h"
#include "sim/base/time.h"
#include "sim/cli/command.h"
#include "sim/cli/expert_options.h"
#include "sim/cli/json_out.h"
#include "sim/cli/quantity.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"
#include "sim/run/deployment.h"

enum { LAYOUTS_SHOWN = 24, GPUS_MAX = 4096 };

struct layout_values {
    const char *model, *gpu, *nodes, *gpus, *weights, *experts, *kv, *chunk, *batch, *context,
        *tpot, *efficiency, *dedup, *popularity, *placement, *redundant;
    bool sheet, all, json;
};

#define OPTION(key, hint, text)                                                                    \
    {                                                                                              \
#key, 0, OPTIONS_TEXT, offsetof(struct layout_values, key), hint, text                     \
    }
static const struct options_spec layout_specs[] = {
    OPTION(model, "NAME|PATH", "the model (required)"),
    OPTION(gpu, "NAME|PATH", "the GPU (required)"),
    OPTION(nodes, "N", "servers (1)"),
    OPTION(gpus, "N", "GPUs in all, instead of whole servers"),
    OPTION(weights, "FORMAT", "of the weights: bf16, fp8, nvfp4, mxfp4, int4 (the model's usual)"),
    OPTION(experts, "FORMAT", "of routed experts"),
    OPTION(kv, "FORMAT", "of the KV cache: bf16 or fp8"),
    OPTION(chunk, "N", "prompt tokens of a prefill step (16384)"),
    OPTION(batch, "N", "sequences of a decode step (256)"),
    OPTION(context, "N", "stored tokens per sequence (4096)"),
    OPTION(tpot, "TIME", "limit on the time per output token (50 ms)"),
    OPTION(efficiency, "SHARE", "of the dense peak in the textbook columns (50 %)"),
    OPTION(dedup, "none|gpu|node", "how often a token is sent to experts that sit together (none)"),
    OPTION(popularity, "DIST[:NUMBER]",
           "of experts: uniform, lognormal:1.15, zipf:0.5, dirichlet:1 (steps: balanced)"),
    OPTION(placement, "NAME", "contiguous, round_robin, eplb, eplb_global (contiguous)"),
    OPTION(redundant, "N", "extra copies of experts per layer (0)"),
    {"sheet", 0, OPTIONS_FLAG, offsetof(struct layout_values, sheet), NULL,
     "memory as on the data sheet, not as the driver reports it"},
    {"all", 0, OPTIONS_FLAG, offsetof(struct layout_values, all), NULL,
     "every layout, not the usual ones only"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct layout_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

struct layout_ask {
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
    struct precision precision;
    int64_t gpus;
    double chunk, batch, context, tpot_s, efficiency;
    int dedup;
    struct expert_options experts;
    bool sheet, all;
};

struct layout_row {
    struct parallel parallel;
    struct memory_plan memory;
    struct layout_step prefill;          /* textbook */
    struct roofline_parts decode, chunk; /* fitted */
    double decode_comm_s, chunk_comm_s;
    double decode_busiest, chunk_busiest; /* GPU over mean of expert work */
    double output_rate;                   /* tokens/s per GPU at the batch */
    bool batch_fits;
};

struct layout_result {
    struct layout_row *rows; /* arena */
    size_t count, valid;
    const struct layout_row *best;  /* most output per GPU under the limit; NULL: none */
    const struct layout_row *quiet; /* least communication over computing */
    enum layout_reason reason;
    double crossover;
};

/* ---- options -------------------------------------------------------------------------------- */

/* Steps of days are no steps: what --batch, --context and --chunk ask of one GPU at least. */
static bool load_check(const struct layout_ask *ask, struct errors *errors)
{
    static const double longest_s = 1e5;
    double kv = llm_kv_bytes(ask->llm, (enum storage)ask->precision.kv, ask->context);
    double decode = ask->batch * kv / ask->gpu->hbm_bytes_per_s;
    double prompts = ceil(ask->chunk / ask->context);
    double flops = 2 * llm_params(ask->llm).active * ask->chunk +
                   prompts * llm_attention_prefill_flops(ask->llm, ask->chunk / prompts, 0);
    double prefill = flops / ask->gpu->peak_flops[MATH_BF16];
    if (decode > longest_s)
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "%.0f sequences of %.0f tokens are %.0f TB of KV cache, a day and more to read "
                   "once; lower --batch or --context",
                   ask->batch, ask->context, ask->batch * kv / 1e12);
    if (prefill > longest_s)
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "a chunk of %.0f tokens of prompts of %.0f takes a day and more on one GPU; "
                   "lower --chunk or --context",
                   ask->chunk, ask->context);
    return decode <= longest_s && prefill <= longest_s;
}

static bool ask_read(const struct layout_values *v, struct layout_ask *ask, struct arena *arena,
                     struct errors *errors)
{
    static const char *const kv_names[] = {"bf16", "fp8", NULL};
    double nodes, gpus;
    bool ok = quantity_whole(v->nodes, "nodes", UNIT_NONE, 1, 1, GPUS_MAX, &nodes, errors);
    ok &= quantity_whole(v->gpus, "gpus", UNIT_NONE, 0, 1, GPUS_MAX, &gpus, errors);
    ok &= quantity_whole(v->chunk, "chunk", UNIT_TOKENS, 16384, 1, 1e7, &ask->chunk, errors);
    ok &= quantity_whole(v->batch, "batch", UNIT_NONE, 256, 1, 1e6, &ask->batch, errors);
    ok &= quantity_whole(v->context, "context", UNIT_TOKENS, 4096, 1, 1e8, &ask->context, errors);
    ok &= quantity_read(v->tpot, "tpot", UNIT_TIME, 0.05, 1e-6, 1e3, &ask->tpot_s, errors);
    ok &= quantity_read(v->efficiency, "efficiency", UNIT_FRACTION, 0.5, 1e-3, 1, &ask->efficiency,
                        errors);
    struct precision chosen = {-1, -1, -1};
    ok &= quantity_choice(v->weights, "weights", llm_storage_names, &chosen.weights, errors);
    ok &= quantity_choice(v->experts, "experts", llm_storage_names, &chosen.experts, errors);
    ok &= quantity_choice(v->kv, "kv", kv_names, &chosen.kv, errors);
    ask->dedup = DEDUP_NONE;
    ok &= quantity_choice(v->dedup, "dedup", collective_dedup_names, &ask->dedup, errors);
    ask->llm = catalog_llm(v->model, arena, errors, NULL);
    ask->gpu = catalog_gpu(v->gpu, arena, errors, NULL);
    if (!ok || !ask->llm || !ask->gpu)
        return false;
    if (!expert_options_read(v->popularity, v->placement, v->redundant, ask->llm, &ask->experts,
                             arena, errors))
        return false;
    ask->precision = llm_precision(ask->llm, &chosen);
    ask->gpus = v->gpus ? (int64_t)gpus : (int64_t)nodes * ask->gpu->node;
    ask->sheet = v->sheet;
    ask->all = v->all;
    if (ask->gpus > GPUS_MAX) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%lld GPUs: at most %d are tried",
                   (long long)ask->gpus, GPUS_MAX);
        return false;
    }
    return load_check(ask, errors);
}

/* ---- evaluating ----------------------------------------------------------------------------- */

/* Layouts that are deployed: tensor inside a server, and experts whole over all of a stage. */
static bool layout_usual(const struct layout_ask *ask, const struct parallel *p)
{
    if (p->tensor > ask->gpu->domain)
        return false;
    return ask->llm->moe.experts == 0 || p->expert == parallel_stage_gpus(p);
}

/* Whether the redundant copies make whole slots, none of them beside another of the same expert. */
static bool copies_spread(const struct layout_ask *ask, const struct parallel *p)
{
    double extra = ask->experts.redundant;
    return parallel_check(p, ask->llm, (int64_t)extra, NULL, NULL) &&
           (extra <= 0 || extra <= (double)(ask->llm->moe.experts * (p->expert - 1)));
}

static struct memory_query memory_of(const struct layout_ask *ask, const struct parallel *p)
{
    struct memory_query q = memory_query(ask->llm, ask->gpu, p);
    q.precision = ask->precision;
    q.sheet = ask->sheet;
    q.redundant_experts = (int64_t)ask->experts.redundant;
    return q;
}

/* max/mean of expert work in a step of so many tokens, of one microbatch: by the popularity asked
 * for, else under uniform routing. */
static double busiest(const struct layout_ask *ask, const struct parallel *p,
                      const struct moe_law *law, double tokens)
{
    if (law)
        return moe_law_factor(law, (int64_t)ceil(tokens / (double)p->pipeline));
    return moe_load_uniform((double)p->expert, tokens * (double)ask->llm->moe.top_k);
}

static void row_fill(const struct layout_ask *ask, struct layout_row *row, struct roofline *r,
                     struct arena *arena)
{
    enum storage worked =
        (enum storage)(ask->llm->moe.experts > 0 ? ask->precision.experts : ask->precision.weights);
    struct layout_query q = {.llm = ask->llm,
                             .gpu = ask->gpu,
                             .parallel = row->parallel,
                             .tokens = ask->chunk,
                             .flops_per_s = ask->efficiency *
                                            ask->gpu->peak_flops[memory_math(ask->gpu, worked)],
                             .dedup = (enum dedup)ask->dedup,
                             .dispatch_element = 1,
                             .combine_element = 2,
                             .hidden_element = 2};
    row->prefill = layout_step(&q);
    struct deployment d = {.llm = ask->llm,
                           .gpu = ask->gpu,
                           .parallel = row->parallel,
                           .precision = ask->precision,
                           .memory = row->memory};
    struct roofline_config *config = deployment_roofline(&d, arena);
    config->redundant_experts = (int64_t)ask->experts.redundant;
    double most = ask->chunk > ask->batch ? ask->chunk : ask->batch;
    struct moe_experts *experts = expert_options_apply(&ask->experts, config, (int64_t)most);
    if (!roofline_init(r, config, NULL, NULL)) {
        moe_experts_free(experts);
        return;
    }
    struct step_batch decode = {.decodes = (uint32_t)ask->batch,
                                .decode_kv = (int64_t)(ask->batch * ask->context)};
    /* The chunk is made of prompts of `context` tokens. */
    double prompts = ceil(ask->chunk / ask->context), each = ask->chunk / prompts;
    struct step_batch chunk = {.prefills = (uint32_t)prompts,
                               .prefill_tokens = (uint32_t)ask->chunk,
                               .prefill_pairs = (int64_t)(ask->chunk * each / 2),
                               .prefill_squares = (int64_t)(ask->chunk * each)};
    row->decode = roofline_parts(r, &decode);
    row->chunk = roofline_parts(r, &chunk);
    row->decode_comm_s = row->decode.reduce_s + row->decode.exchange_s + row->decode.hop_s;
    row->chunk_comm_s = row->chunk.reduce_s + row->chunk.exchange_s + row->chunk.hop_s;
    row->decode_busiest = busiest(ask, &row->parallel, config->law, ask->batch);
    row->chunk_busiest = busiest(ask, &row->parallel, config->law, ask->chunk);
    moe_experts_free(experts);
    row->output_rate = ask->batch / row->decode.total_s / (double)ask->gpus;
    row->batch_fits = memory_sequences(&row->memory, &row->parallel, ask->context) >= ask->batch;
}

static int row_compare(const void *a_, const void *b_)
{
    const struct layout_row *a = a_, *b = b_;
    if (a->batch_fits != b->batch_fits)
        return a->batch_fits ? -1 : 1;
    return (a->output_rate < b->output_rate) - (a->output_rate > b->output_rate);
}

static double comm_ratio(const struct layout_row *row)
{
    double computing = row->chunk.total_s - row->chunk_comm_s;
    return row->prefill.collectives > 0 ? row->prefill.ratio : row->chunk_comm_s / computing;
}

static void evaluate(const struct layout_ask *ask, struct layout_result *out, struct arena *arena)
{
    struct parallel_list list = parallel_enumerate(ask->llm, ask->gpus, arena);
    struct roofline *r = arena_alloc(arena, sizeof *r);
    *out = (struct layout_result){.rows = arena_alloc(arena, (list.count + 1) * sizeof *out->rows)};
    for (size_t i = 0; i < list.count; i++) {
        struct layout_row row = {.parallel = list.items[i]};
        if (!ask->all && !layout_usual(ask, &row.parallel))
            continue;
        if (!copies_spread(ask, &row.parallel))
            continue;
        out->valid++;
        struct memory_query q = memory_of(ask, &row.parallel);
        row.memory = memory_plan(&q);
        if (!row.memory.fits)
            continue;
        row_fill(ask, &row, r, arena);
        out->rows[out->count++] = row;
    }
    qsort(out->rows, out->count, sizeof *out->rows, row_compare);
    for (size_t i = 0; i < out->count; i++) {
        const struct layout_row *row = &out->rows[i];
        if (!out->best && row->batch_fits && row->decode.total_s <= ask->tpot_s)
            out->best = row;
        if (row->batch_fits && (!out->quiet || comm_ratio(row) < comm_ratio(out->quiet)))
            out->quiet = row;
    }
    struct parallel one = {1, 1, 1, 1};
    struct memory_query q = memory_of(ask, &one);
    double kv = ask->batch * llm_kv_bytes(ask->llm, (enum storage)ask->precision.kv, ask->context);
    out->reason = layout_reason(&q, kv, ask->tpot_s);
    if (ask->llm->moe.experts > 0) {
        struct exchange_shape shape =
            collective_exchange_shape(parallel_domain_ranks(ask->gpus, ask->gpu));
        struct exchange x = collective_exchange(ask->gpu, ask->llm, &shape);
        out->crossover = collective_exchange_crossover(&x);
    }
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_memory(const struct layout_ask *ask, const struct layout_result *result)
{
    struct memory_weights w = memory_weights(ask->llm, &ask->precision);
    double hbm = hardware_hbm(ask->gpu, !ask->sheet), all = hbm * (double)ask->gpus;
    printf("%s on %lld x %s\n", ask->llm->name, (long long)ask->gpus, ask->gpu->name);
    printf("  weights   %s GB (%s%s%s)", text_real(w.total / 1e9, 1).s,
           llm_storage_names[ask->precision.weights], ask->llm->moe.experts > 0 ? ", experts " : "",
           ask->llm->moe.experts > 0 ? llm_storage_names[ask->precision.experts] : "");
    if (w.experts > 0)
        printf(": experts %s, the rest %s", text_real(w.experts / 1e9, 1).s,
               text_real(w.rest / 1e9, 1).s);
    printf("\n  memory    %lld x %s = %s GB (%s)\n", (long long)ask->gpus,
           text_real(hbm / 1e9, 1).s, text_real(all / 1e9, 1).s,
           ask->sheet ? "data sheet" : "as the driver reports it; --sheet for the data sheet");
    struct llm_kv kv = llm_kv(ask->llm, (enum storage)ask->precision.kv);
    printf("  KV        %s B per token (%s), %s MB per sequence whatever its length\n",
           text_real(kv.per_token + kv.indexer_per_token, 0).s,
           llm_storage_names[ask->precision.kv], text_real((kv.window + kv.state) / 1e6, 1).s);
    printf("  split because: %s\n", layout_reason_names[result->reason]);
    if (w.total > all)
        printf("  does not fit: the weights alone exceed all memory by %s GB\n",
               text_real((w.total - all) / 1e9, 1).s);
    else
        printf("  %zu of %zu layouts fit%s\n", result->count, result->valid,
               ask->all ? "" : " (usual ones; --all for every division)");
}

static void print_rows(const struct layout_ask *ask, const struct layout_result *result)
{
    static const char *const head[2][13] = {{"", "weights", "KV", "prefill", "", "", "", "decode",
                                             "", "", "all-to-", "busiest", "tok/s"},
                                            {"layout", "GB/GPU", "sequences", "compute", "comm.",
                                             "ratio", "chunk ms", "step ms", "comm. ms", "share",
                                             "alls", "GPU", "per GPU"}};
    struct text_table table;
    text_table_init(&table, 13, 2, 1);
    for (int h = 0; h < 2; h++) {
        struct text *row = text_table_row(&table, false);
        for (int i = 0; i < 13; i++)
            snprintf(row[i].s, sizeof row[i].s, "%s", head[h][i]);
    }
    for (size_t i = 0; i < result->count && i < LAYOUTS_SHOWN; i++) {
        const struct layout_row *l = &result->rows[i];
        struct text *row = text_table_row(&table, i == 0);
        char layout[PARALLEL_TEXT_MAX];
        snprintf(row[0].s, sizeof row[0].s, "%.46s", parallel_text(&l->parallel, layout));
        row[1] = text_real((l->memory.weight_rest + l->memory.weight_expert) / 1e9, 1);
        row[2] = text_real(memory_sequences(&l->memory, &l->parallel, ask->context), 0);
        row[3] = text_real(l->prefill.compute_s * 1e3, 3);
        row[4] = text_real(l->prefill.exchange_s * 1e3, 3);
        row[5] = text_percent(l->prefill.ratio, 1);
        row[6] = text_real(l->chunk.total_s * 1e3, 0);
        row[7] = text_real(l->decode.total_s * 1e3, 1);
        row[8] = text_real(l->decode_comm_s * 1e3, 1);
        row[9] = text_percent(l->decode_comm_s / l->decode.total_s, 0);
        row[10] = text_real(l->prefill.collectives, 0);
        row[11] = text_real(l->decode_busiest, 2);
        row[12] = text_real(l->output_rate, 1);
    }
    text_table_print(&table, stdout);
    text_table_free(&table);
    if (result->count > LAYOUTS_SHOWN)
        printf("… and %zu more (--json has all)\n", result->count - LAYOUTS_SHOWN);
    printf(
        "\nprefill: one layer of a chunk of %s tokens, ms: 2 x active / layers at %s of the dense "
        "peak, all-to-all at line rate\n(dedup: %s), their ratio in %%; chunk ms: the whole chunk "
        "by the fitted model. decode: %s sequences at %s stored\ntokens by the fitted model, ms, "
        "and the share of messages in %%; all-to-alls per token; busiest GPU / mean of expert\n"
        "load at this batch, %s.\n",
        text_real(ask->chunk, 0).s, text_plain(ask->efficiency).s,
        collective_dedup_names[ask->dedup], text_real(ask->batch, 0).s,
        text_real(ask->context, 0).s,
        ask->experts.given ? "paid by every MoE layer of the fitted steps" : "uniform routing");
    if (ask->experts.given)
        printf("experts: popularity %s, placed %s, %s redundant copies per layer; a mean over %d "
               "drawn groups of layers.\n",
               ask->experts.popularity, moe_placement_names[ask->experts.config.placement],
               text_real(ask->experts.redundant, 0).s, (int)ask->experts.config.layer_groups);
}

/* When nothing meets the limit: the fastest layout that at least holds the batch, or NULL. */
static const struct layout_row *nearest_row(const struct layout_result *result)
{
    const struct layout_row *best = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct layout_row *l = &result->rows[i];
        if (l->batch_fits && (best == NULL || l->decode.total_s < best->decode.total_s)) {
            best = l;
        }
    }
    return best;
}

static void print_no_recommendation(const struct layout_ask *ask,
                                    const struct layout_result *result)
{
    char text[PARALLEL_TEXT_MAX];
    const struct layout_row *l = nearest_row(result);
    printf("\nNo layout holds %s sequences of %s tokens within %s ms per token.\n",
           text_real(ask->batch, 0).s, text_real(ask->context, 0).s,
           text_plain(ask->tpot_s * 1e3).s);
    if (l == NULL) {
        printf(
            "None holds them at all: fewer sequences (--batch), shorter ones (--context), or more "
            "GPUs.\n");
    } else {
        printf(
            "Nearest: %s holds them at %s ms: it is the fastest that does. Lower --batch, or allow "
            "--tpot '%s ms'.\n",
            parallel_text(&l->parallel, text), text_real(l->decode.total_s * 1e3, 1).s,
            text_real(ceil(l->decode.total_s * 1e3), 0).s);
    }
}

static void print_recommendation(const struct layout_ask *ask, const struct layout_result *result)
{
    char best[PARALLEL_TEXT_MAX], quiet[PARALLEL_TEXT_MAX];
    if (result->crossover > 0)
        printf("\nAn all-to-all inside the domain turns from latency-bound to bandwidth-bound at "
               "about "
               "%s MB per GPU.\n",
               text_real(result->crossover / 1e6, 1).s);
    if (!result->best) {
        print_no_recommendation(ask, result);
        return;
    }
    parallel_text(&result->best->parallel, best);
    parallel_text(&result->quiet->parallel, quiet);
    printf("\nRecommended: %s: the most output per GPU (%s tok/s) within %s ms per token.\n", best,
           text_real(result->best->output_rate, 1).s, text_plain(ask->tpot_s * 1e3).s);
    if (result->quiet == result->best)
        printf("It also communicates least for its computing.\n");
    else
        printf(
            "Least communication for its computing: %s (%s %% against %s %% in prefill); prefer it "
            "when messages cannot be\noverlapped or the network is shared.\n",
            quiet, text_percent(comm_ratio(result->quiet), 1).s,
            text_percent(comm_ratio(result->best), 1).s);
}

static void print_json(const struct layout_ask *ask, const struct layout_result *result)
{
    struct json json;
    struct memory_weights w = memory_weights(ask->llm, &ask->precision);
    char text[PARALLEL_TEXT_MAX];
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "model", ask->llm->name);
    json_out_text(&json, "gpu", ask->gpu->name);
    json_out_int(&json, "gpus", ask->gpus);
    json_out_real(&json, "weight_bytes", w.total);
    json_out_real(&json, "expert_bytes", w.experts);
    json_out_real(&json, "memory_bytes", hardware_hbm(ask->gpu, !ask->sheet) * (double)ask->gpus);
    json_out_bool(&json, "fits", result->count > 0);
    json_out_text(&json, "reason", layout_reason_names[result->reason]);
    json_out_real(&json, "crossover_bytes", result->crossover > 0 ? result->crossover : NAN);
    json_out_text(&json, "recommended",
                  result->best ? parallel_text(&result->best->parallel, text) : NULL);
    json_out_list(&json, "layouts");
    for (size_t i = 0; i < result->count; i++) {
        const struct layout_row *l = &result->rows[i];
        json_out_object(&json, NULL);
        json_out_text(&json, "layout", parallel_text(&l->parallel, text));
        json_out_int(&json, "tensor", l->parallel.tensor);
        json_out_int(&json, "pipeline", l->parallel.pipeline);
        json_out_int(&json, "expert", l->parallel.expert);
        json_out_int(&json, "attention_data", l->parallel.attention_data);
        json_out_real(&json, "weight_bytes_per_gpu",
                      l->memory.weight_rest + l->memory.weight_expert);
        json_out_real(&json, "kv_tokens", l->memory.kv_tokens);
        json_out_real(&json, "sequences", memory_sequences(&l->memory, &l->parallel, ask->context));
        json_out_real(&json, "prefill_layer_compute_s", l->prefill.compute_s);
        json_out_real(&json, "prefill_layer_exchange_s", l->prefill.exchange_s);
        json_out_real(&json, "prefill_ratio", l->prefill.ratio);
        json_out_real(&json, "link_bytes_per_layer", l->prefill.link_bytes);
        json_out_real(&json, "network_bytes_per_layer", l->prefill.network_bytes);
        json_out_real(&json, "collectives_per_token", l->prefill.collectives);
        json_out_real(&json, "boundary_bytes", l->prefill.boundary_bytes);
        json_out_real(&json, "boundary_s", l->prefill.boundary_s);
        json_out_real(&json, "chunk_s", l->chunk.total_s);
        json_out_real(&json, "decode_step_s", l->decode.total_s);
        json_out_real(&json, "decode_communication_s", l->decode_comm_s);
        json_out_real(&json, "output_tokens_per_s_per_gpu", l->output_rate);
        json_out_bool(&json, "batch_fits", l->batch_fits);
        json_out_real(&json, "decode_busiest_over_mean", l->decode_busiest);
        json_out_real(&json, "chunk_busiest_over_mean", l->chunk_busiest);
        json_out_object_end(&json);
    }
    json_out_list_end(&json);
    json_out_object_end(&json);
}

static bool layout_with(const struct layout_values *values, struct arena *arena,
                        struct errors *errors)
{
    struct layout_ask ask;
    struct layout_result result;
    if (!ask_read(values, &ask, arena, errors))
        return false;
    memory_warn_math(ask.llm, ask.gpu, &ask.precision, errors, NULL);
    evaluate(&ask, &result, arena);
    if (result.valid == 0) {
        errors_add(errors, SEVERITY_ERROR, NULL, "no %slayout of %lld GPUs divides '%s'%s",
                   ask.all ? "" : "usual ", (long long)ask.gpus, ask.llm->name,
                   ask.all ? "" : "; --all tries every division");
        return false;
    }
    if (values->json) {
        print_json(&ask, &result);
        return true;
    }
    print_memory(&ask, &result);
    if (result.count > 0) {
        putchar('\n');
        print_rows(&ask, &result);
        print_recommendation(&ask, &result);
    }
    return true;
}

static int layout_run(const void *values_, const struct options_list *operands)
{
    const struct layout_values *values = values_;
    (void)operands;
    if (!values->model || !values->gpu) {
        fputs("fleetsim layout: give --model and --gpu\n`fleetsim help layout` shows how it is "
              "used\n",
              stderr);
        return COMMAND_BAD_USAGE;
    }
    if (values->nodes && values->gpus) {
        fputs("fleetsim layout: --nodes and --gpus contradict each other: give one\n", stderr);
        return COMMAND_BAD_USAGE;
    }
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    bool ok = layout_with(values, &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return ok ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_layout_command = {
    .name = "layout",
    .summary = "which ways of splitting a model over GPUs fit, and what each costs per step",
    .operands = NULL,
    .operands_min = 0,
    .operands_max = 0,
    .options = layout_specs,
    .options_size = sizeof(struct layout_values),
    .text =
        "Tensor (TP), pipeline (PP), expert (EP) and attention-data (DP) parallel layouts of all\n"
        "the GPUs: memory, one layer of a prefill chunk by the textbook, whole steps by the\n"
        "fitted model, sorted by output per GPU.\n",
    .example = "fleetsim layout --model kimi-k3 --gpu h200-sxm --nodes 2\n"
               "fleetsim layout --model llama-3.1-70b --gpu h100-sxm --gpus 2 --batch 64\n",
    .run = layout_run,
};
