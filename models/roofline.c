#include "models/roofline.h"

#include <math.h>

#include "models/memory.h"
#include "models/moe_load.h"
#include "models/piece.h"

/* A coefficient beyond this is no iteration. */
static const double longest_s = 8.64e6;

static double slower(double a, double b)
{
    return a > b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- preparing ------------------------------------------------------------------------------ */

struct roofline_factors roofline_default_factors(const struct llm_spec *llm)
{
    /* In microseconds and milliseconds; docs/validation.md says how they were found. */
    const int64_t us = INT64_C(1000000), ms = 1000 * us;
    struct roofline_factors dense = {.bandwidth = 0.91,
                                     .compute = 0.65,
                                     .attention = 0.6,
                                     .expert_rows = 0,
                                     .layer_overhead_ps = 55 * us,
                                     .sequence_overhead_ps = 15 * us,
                                     .prefill_overhead_ps = 200 * us,
                                     .first_token_ps = 75 * ms};
    struct roofline_factors moe = {.bandwidth = 0.95,
                                   .compute = 0.65,
                                   .attention = 0.6,
                                   .expert_rows = 192,
                                   .layer_overhead_ps = 87 * us + us / 2,
                                   .sequence_overhead_ps = 34 * us,
                                   .prefill_overhead_ps = 0,
                                   .first_token_ps = 190 * ms};
    return llm->moe.experts > 0 ? moe : dense;
}

void roofline_fill_factors(struct roofline_factors *f, const struct llm_spec *llm)
{
    struct roofline_factors d = roofline_default_factors(llm);
    f->bandwidth = isnan(f->bandwidth) ? d.bandwidth : f->bandwidth;
    f->compute = isnan(f->compute) ? d.compute : f->compute;
    f->attention = isnan(f->attention) ? d.attention : f->attention;
    f->expert_rows = isnan(f->expert_rows) ? d.expert_rows : f->expert_rows;
    if (f->layer_overhead_ps == FIELD_INT_UNSET)
        f->layer_overhead_ps = d.layer_overhead_ps;
    if (f->sequence_overhead_ps == FIELD_INT_UNSET)
        f->sequence_overhead_ps = d.sequence_overhead_ps;
    if (f->prefill_overhead_ps == FIELD_INT_UNSET)
        f->prefill_overhead_ps = d.prefill_overhead_ps;
    if (f->first_token_ps == FIELD_INT_UNSET)
        f->first_token_ps = d.first_token_ps;
}

static double storage_bytes(int storage)
{
    return llm_storage_bits((enum storage)storage) / 8;
}

static double embedding_element(int storage)
{
    return slower(storage_bytes(storage), storage_bytes(STORAGE_BF16));
}

/* Grouped GEMMs compute whole tiles. A kernel that widens stored weights (4 bits computed in BF16)
 * takes tiles that are smaller in that ratio: it is built for streaming. */
static double tile_rows(const struct roofline_config *c)
{
    static const double math_bits[MATH_COUNT] = {16, 8, 4};
    enum storage stored = (enum storage)c->precision.experts;
    double ratio = llm_storage_bits(stored) / math_bits[memory_math(c->gpu, stored)];
    return c->factors.expert_rows * (ratio < 1 ? ratio : 1);
}

static void prepare_weights(struct roofline *r)
{
    const struct roofline_config *c = &r->config;
    const struct llm_spec *llm = c->llm;
    struct llm_params p = llm_params(llm);
    double tensor = (double)c->parallel.tensor, stage = (double)parallel_stage_gpus(&c->parallel);
    double share = r->stage_layers / (double)llm->layers;
    double stream = c->factors.bandwidth * c->gpu->hbm_bytes_per_s;
    const double *peak = c->gpu->peak_flops;
    double body = (p.active - p.head - (double)(llm->moe.layers * llm->moe.top_k) * p.expert) *
                  share / tensor;
    double math = peak[memory_math(c->gpu, (enum storage)c->precision.weights)];
    r->body_stream_s = body * storage_bytes(c->precision.weights) / stream;
    r->body_token_s = 2 * body / (c->factors.compute * math);
    r->head_stream_s = p.head / tensor * embedding_element(c->precision.weights) / stream;
    r->head_token_s = 2 * p.head / tensor / (c->factors.compute * peak[MATH_BF16]);
    double expert = p.expert * r->moe_layers / stage * c->expert_imbalance;
    math = peak[memory_math(c->gpu, (enum storage)c->precision.experts)];
    r->expert_stream_s = expert * storage_bytes(c->precision.experts) / stream;
    r->expert_token_s = 2 * expert / (c->factors.compute * math);
    r->expert_rows = tile_rows(c);
    for (size_t i = 0; i < sizeof r->distinct / sizeof *r->distinct; i++)
        r->distinct[i] = llm_distinct_experts(llm, (double)i);
}

static void add_term(struct roofline *r, double decode_s, double read_s, double pair_s, int64_t cap)
{
    for (size_t i = 0; i < r->term_count; i++) {
        struct roofline_term *t = &r->terms[i];
        if (t->cap == cap) {
            t->decode_s += decode_s;
            t->read_s += read_s;
            t->pair_s += pair_s;
            return;
        }
    }
    check(r->term_count < ROOFLINE_TERMS_MAX);
    r->terms[r->term_count++] = (struct roofline_term){decode_s, read_s, pair_s, cap};
}

/* Attention of one group of layers, on one GPU: each rank of a tensor group reads its KV heads. */
static void prepare_group(struct roofline *r, const struct attention_group *g)
{
    const struct roofline_config *c = &r->config;
    double tensor = (double)c->parallel.tensor, split = (double)llm_group_kv_split(g);
    double layers = (double)parallel_stage_layers(&c->parallel, g->layers);
    double stream = c->factors.bandwidth * c->gpu->hbm_bytes_per_s;
    double math = c->factors.attention * c->gpu->peak_flops[MATH_BF16];
    double parts = tensor < split ? tensor : split;
    double read = layers * llm_group_kv_bytes(g, (enum storage)c->precision.kv) / parts / stream;
    double decode = layers * llm_group_flops_per_pair(g, false) / tensor / math;
    double pair = layers * llm_group_flops_per_pair(g, true) / tensor / math;
    double compress = (double)g->compress;
    if (g->kind == ATTENTION_LINEAR) {
        r->sequence_s += 2 * layers * llm_group_state_bytes(g) / parts / stream;
        r->query_s += layers * llm_group_flops_per_query(g) / tensor / math;
        return;
    }
    if (g->window > 0)
        add_term(r, slower(read, decode), read, pair, g->window);
    if (g->window == 0 || g->compress > 1)
        add_term(r, slower(read, decode) / compress, read / compress, pair / compress,
                 g->top_k * g->compress);
    if (g->indexer_layers > 0) {
        double own = (double)parallel_stage_layers(&c->parallel, g->indexer_layers) / compress;
        double keys = own * (double)g->indexer_bytes / stream;
        double flops = own * 2 * (double)(g->indexer_heads * g->indexer_dim) / tensor / math;
        add_term(r, slower(keys, flops), keys, flops, 0);
    }
}

static void prepare_messages(struct roofline *r)
{
    const struct roofline_config *c = &r->config;
    const struct llm_spec *llm = c->llm;
    double attention = 0;
    for (size_t i = 0; i < llm->attention.count; i++)
        attention += (double)parallel_stage_layers(&c->parallel, llm_group(llm, i)->layers);
    double dense = (double)parallel_stage_layers(&c->parallel, llm->dense_layers);
    r->token_bytes = 2 * (double)llm->hidden;
    r->reduce = collective_all_reduce_plan(c->gpu, c->parallel.tensor);
    r->wide_reduce = collective_all_reduce_plan(c->gpu, parallel_stage_gpus(&c->parallel));
    r->reduces = attention + dense;
    if (c->parallel.attention_data == 1) {
        r->reduces += r->moe_layers; /* every rank has every token: experts end in a reduction */
    } else if (r->moe_layers > 0 && c->parallel.expert == 1) {
        r->wide_reduces = r->moe_layers;
    } else if (r->moe_layers > 0) {
        struct exchange_shape shape = collective_exchange_shape(parallel_stage_gpus(&c->parallel));
        shape.dedup = (enum dedup)c->dedup;
        shape.measured = c->measured;
        r->exchange = collective_exchange(c->gpu, llm, &shape);
        r->exchanges = true;
    }
    r->hop_network = parallel_gpus(&c->parallel) > c->gpu->domain;
}

bool roofline_init(struct roofline *r, const struct roofline_config *config, struct errors *errors,
                   const struct source_pos *where)
{
    *r = (struct roofline){.config = *config};
    const struct llm_spec *llm = config->llm;
    if (!parallel_check(&config->parallel, llm, config->redundant_experts, errors, where))
        return false;
    roofline_fill_factors(&r->config.factors, llm);
    const struct roofline_factors *f = &r->config.factors;
    r->stage_layers = (double)parallel_stage_layers(&config->parallel, llm->layers);
    r->moe_layers = (double)parallel_stage_layers(&config->parallel, llm->moe.layers);
    r->layer_s = r->stage_layers * time_seconds(f->layer_overhead_ps);
    r->prefill_layer_s = r->stage_layers * time_seconds(f->prefill_overhead_ps);
    prepare_weights(r);
    for (size_t i = 0; i < llm->attention.count; i++)
        prepare_group(r, llm_group(llm, i));
    prepare_messages(r);
    return true;
}

/* ---- one batch ------------------------------------------------------------------------------ */

/* The batch as the slowest GPU sees it: one of `pipeline` microbatches, the fullest attention
 * copy. */
struct share {
    double tokens;       /* of a microbatch, whole stage */
    double rank_decodes; /* of the fullest attention copy */
    double rank_tokens;
    double rank_prefills;
    double decode_part; /* of the microbatch's decode KV that the slowest copy reads */
    double prefill_part;
};

static struct share share_of(const struct roofline *r, const struct step_batch *b)
{
    const struct roofline_config *c = &r->config;
    int64_t pipeline = c->parallel.pipeline, attention = c->parallel.attention_data;
    double copies = (double)attention;
    struct share s = {0};
    int64_t decodes = ceil_div(b->decodes, pipeline),
            prompt = ceil_div(b->prefill_tokens, pipeline);
    int64_t prefills = ceil_div(b->prefills, attention);
    s.tokens = (double)(decodes + prompt);
    s.rank_decodes = (double)ceil_div(decodes, attention);
    s.rank_prefills = (double)prefills;
    s.rank_tokens = s.rank_decodes;
    if (b->prefills > 0) {
        s.prefill_part = s.rank_prefills / (double)b->prefills;
        s.rank_tokens += (double)ceil_div(prompt * prefills, b->prefills);
    }
    s.decode_part = 1 / copies;
    /* The slowest copy of every microbatch, so that a sequence more never makes a step faster. */
    if (copies > 1 && decodes > 0)
        s.decode_part =
            s.rank_decodes * (double)pipeline / (double)b->decodes *
            moe_load_attention(copies, s.rank_decodes, c->length_cv, c->random_assignment);
    return s;
}

static double distinct_experts(const struct roofline *r, double tokens)
{
    size_t last = sizeof r->distinct / sizeof *r->distinct - 1;
    if (tokens <= (double)last)
        return r->distinct[(size_t)tokens];
    return llm_distinct_experts(r->config.llm, tokens);
}

/* What the busiest GPU does in MoE layers, as the tokens of a balanced one: pairs computed, tokens
 * received, distinct experts of all streamed. Dense layers and attention know no busiest GPU. */
static struct moe_busiest busiest_experts(const struct roofline *r, double tokens)
{
    if (r->config.law == NULL)
        return (struct moe_busiest){tokens, tokens, distinct_experts(r, tokens)};
    struct moe_busiest b = moe_law_at(r->config.law, (int64_t)tokens);
    if (r->config.dedup == DEDUP_NONE)
        b.visits = b.pairs;
    return b;
}

/* Everything that does not depend on the contexts; one microbatch through one stage. */
static struct roofline_parts constant_parts(const struct roofline *r, const struct step_batch *b,
                                            const struct share *s)
{
    const struct roofline_config *c = &r->config;
    struct roofline_parts p = {0};
    p.weights_s = slower(r->body_stream_s, s->rank_tokens * r->body_token_s) +
                  slower(r->head_stream_s, (s->rank_decodes + s->rank_prefills) * r->head_token_s);
    struct moe_busiest busiest = {0};
    if (r->moe_layers > 0) {
        busiest = busiest_experts(r, s->tokens);
        double pairs =
            busiest.pairs * (double)c->llm->moe.top_k + busiest.distinct * r->expert_rows;
        p.experts_s = slower(busiest.distinct * r->expert_stream_s, pairs * r->expert_token_s);
    }
    p.attention_s = s->rank_decodes * r->sequence_s + s->rank_tokens * r->query_s;
    p.overhead_s = r->layer_s + s->rank_decodes * time_seconds(c->factors.sequence_overhead_ps);
    if (b->prefill_tokens > 0)
        p.overhead_s += r->prefill_layer_s;
    double bytes = s->rank_tokens * r->token_bytes;
    if (c->parallel.tensor > 1)
        p.reduce_s = r->reduces * collective_all_reduce_s(c->gpu, c->parallel.tensor, bytes, NULL);
    if (r->wide_reduces > 0)
        p.reduce_s += r->wide_reduces * collective_all_reduce_plan_s(
                                            &r->wide_reduce, s->tokens * r->token_bytes, NULL);
    if (r->exchanges) {
        double sent = s->rank_tokens / (double)c->parallel.tensor;
        if (r->config.law != NULL) /* the busiest receives more; latency stays */
            sent *= busiest.visits / s->tokens;
        struct exchange_time t = collective_exchange_s(&r->exchange, sent);
        p.exchange_s = r->moe_layers * c->expert_imbalance * (t.dispatch_s + t.combine_s);
    }
    if (c->parallel.pipeline > 1)
        p.hop_s = collective_hop_s(c->gpu, parallel_stage_gpus(&c->parallel),
                                   s->tokens * r->token_bytes, r->hop_network);
    return p;
}

static void parts_times(struct roofline_parts *p, double factor)
{
    p->weights_s *= factor;
    p->experts_s *= factor;
    p->attention_s *= factor;
    p->overhead_s *= factor;
    p->reduce_s *= factor;
    p->exchange_s *= factor;
    p->hop_s *= factor;
}

static double parts_compute(const struct roofline_parts *p)
{
    return p->weights_s + p->experts_s + p->attention_s + p->overhead_s + p->reduce_s + p->hop_s;
}

/* Nearest picosecond of a time ≥ 0. Not ps, which is exact in its last digit and
 * slower: this rounds a model's coefficient, several times per span. */
static int64_t ps(double seconds)
{
    check_msg(seconds < longest_s, "an iteration of more than 100 days");
    return (int64_t)(seconds * 1e12 + 0.5);
}

/* Attention over stored tokens, in picoseconds, as a function of the iteration; `scale` as of
 * overlap. */
static struct piece attention_piece(const struct roofline *r, const struct step_batch *b,
                                    const struct share *s, double scale)
{
    struct piece sum = piece_constant(0);
    struct piece stored = piece_line(b->decode_kv, b->decodes);
    struct piece pairs = piece_line(b->prefill_pairs, b->prefill_squares);
    struct piece prefix = piece_line(b->prefill_kv, b->prefill_tokens);
    for (size_t i = 0; i < r->term_count; i++) {
        const struct roofline_term *t = &r->terms[i];
        struct piece seen = stored, scored = pairs, read = prefix;
        if (t->cap > 0) {
            seen = piece_min(seen, piece_constant(t->cap * (int64_t)b->decodes));
            scored = piece_min(scored, piece_constant(t->cap * (int64_t)b->prefill_tokens));
            read = piece_min(read, piece_constant(t->cap * (int64_t)b->prefills));
        }
        if (b->decodes > 0)
            sum = piece_add(
                sum, piece_weigh(seen, b->decodes, scale * t->decode_s * s->decode_part, ps));
        if (b->prefills > 0) {
            double part = scale * s->prefill_part;
            scored = piece_weigh(scored, b->prefill_squares, part * t->pair_s, ps);
            read = piece_weigh(read, b->prefill_tokens, part * t->read_s, ps);
            sum = piece_add(sum, piece_max(scored, read));
        }
    }
    return sum;
}

void roofline_law(const struct roofline *r, const struct step_batch *b, struct step_law *law)
{
    struct share s = share_of(r, b);
    struct roofline_parts p = constant_parts(r, b, &s);
    parts_times(&p, (double)r->config.parallel.pipeline);
    double overlap = p.exchange_s > 0 ? r->config.overlap : 0;
    double fixed = parts_compute(&p);
    struct piece step = piece_add(piece_constant(ps(fixed)), attention_piece(r, b, &s, 1));
    if (overlap > 0) {
        /* C + X − η·min(C, X), on the side where the batch is now, up to where C passes X. */
        struct piece x = piece_constant(ps(p.exchange_s));
        if (step.base > x.base) {
            step = piece_add(step, piece_constant(ps((1 - overlap) * p.exchange_s)));
        } else {
            uint32_t until = piece_sooner(step.valid, piece_crossing(step, x));
            step = piece_add(piece_constant(ps((1 - overlap) * fixed)),
                             attention_piece(r, b, &s, 1 - overlap));
            step = piece_add(step, x);
            step.valid = piece_sooner(step.valid, until);
        }
    } else {
        step = piece_add(step, piece_constant(ps(p.exchange_s)));
    }
    *law = (struct step_law){step.base > 0 ? step.base : 1, step.slope, step.valid};
}

struct roofline_parts roofline_parts(const struct roofline *r, const struct step_batch *b)
{
    struct share s = share_of(r, b);
    struct roofline_parts p = constant_parts(r, b, &s);
    parts_times(&p, (double)r->config.parallel.pipeline);
    p.attention_s += time_seconds(attention_piece(r, b, &s, 1).base);
    double c = parts_compute(&p), x = p.exchange_s;
    p.total_s = c + x - r->config.overlap * (c < x ? c : x);
    return p;
}
