#include "models/plan.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* A fleet of exactly 273 must not become 274 by rounding noise. */
static const double CEIL_SLACK = 1e-9;
enum { VOLUME_STEPS = 400, VOLUME_HALVINGS = 40 };

static double up(double gpus)
{
    return gpus > CEIL_SLACK ? ceil(gpus - CEIL_SLACK) : 0; /* never -0 */
}

/* In whole replicas. */
static double whole(const struct plan_input *in, double gpus)
{
    return up(gpus / in->gpus_per_replica) * in->gpus_per_replica;
}

struct plan_input plan_input_default(void)
{
    return (struct plan_input){.users = NAN,
                               .sessions = 1,
                               .requests = 1,
                               .prompt_tokens = NAN,
                               .output_tokens = NAN,
                               .peak_factor = NAN,
                               .decode_tokens_per_s = NAN,
                               .prefill_tokens_per_s = NAN,
                               .utilization = 0.7,
                               .usd_low = NAN,
                               .usd_high = NAN,
                               .first_token_s = 0.5,
                               .tpot_s = 0.03,
                               .kv_bytes_per_token = NAN,
                               .gpus_per_replica = 1,
                               .month_days = 30};
}

static void estimate_load(const struct plan_input *in, struct plan_result *r)
{
    r->requests_per_day = in->users * in->sessions * in->requests;
    r->average_qps = r->requests_per_day / 86400;
    r->peak_qps = r->average_qps * in->peak_factor;
    r->peak_prefill_tokens_per_s = r->peak_qps * in->prompt_tokens;
    r->peak_decode_tokens_per_s = r->peak_qps * in->output_tokens;
    r->tokens_per_day = r->requests_per_day * (in->prompt_tokens + in->output_tokens);
}

static void estimate_gpus(const struct plan_input *in, const double hourly[PLAN_HOURS],
                          struct plan_result *r)
{
    r->decode_gpus = r->peak_decode_tokens_per_s / in->decode_tokens_per_s;
    r->prefill_gpus = r->peak_prefill_tokens_per_s / in->prefill_tokens_per_s;
    r->gpus_exact = (r->decode_gpus + r->prefill_gpus) / in->utilization;
    /* GPU-seconds of a request, prompt and output. */
    double request_s =
        in->prompt_tokens / in->prefill_tokens_per_s + in->output_tokens / in->decode_tokens_per_s;
    r->replica_qps = in->gpus_per_replica / request_s;
    r->gpus_peak = whole(in, r->gpus_exact);
    r->peak_gpu_hours = r->gpus_peak * PLAN_HOURS;
    double average = r->gpus_exact / in->peak_factor;
    for (int h = 0; h < PLAN_HOURS; h++) {
        r->hourly_gpus[h] = whole(in, average * hourly[h]);
        r->ideal_gpu_hours += r->hourly_gpus[h];
        r->work_gpu_hours += average * hourly[h] * in->utilization;
    }
}

static void estimate_dollars(const struct plan_input *in, struct plan_result *r)
{
    r->usd_day_low = r->ideal_gpu_hours * in->usd_low;
    r->usd_day_high = r->peak_gpu_hours * in->usd_high;
    r->usd_month_low = r->usd_day_low * in->month_days;
    r->usd_month_high = r->usd_day_high * in->month_days;
    r->usd_user_low = r->usd_month_low / in->users;
    r->usd_user_high = r->usd_month_high / in->users;
    r->usd_mtok_low = r->usd_day_low / r->tokens_per_day * 1e6;
    r->usd_mtok_high = r->usd_day_high / r->tokens_per_day * 1e6;
    /* Each kind of token pays for its share of the GPU time. */
    double prefill = r->prefill_gpus / (r->prefill_gpus + r->decode_gpus);
    double input = r->requests_per_day * in->prompt_tokens / 1e6;
    double output = r->requests_per_day * in->output_tokens / 1e6;
    r->usd_input_low = r->usd_day_low * prefill / input;
    r->usd_input_high = r->usd_day_high * prefill / input;
    r->usd_output_low = r->usd_day_low * (1 - prefill) / output;
    r->usd_output_high = r->usd_day_high * (1 - prefill) / output;
}

static void estimate_streams(const struct plan_input *in, struct plan_result *r)
{
    r->seconds_in_system = in->first_token_s + in->output_tokens * in->tpot_s;
    r->streams = r->peak_qps * r->seconds_in_system;
    r->streams_per_gpu = r->streams / r->gpus_peak;
    r->streams_implied = in->decode_tokens_per_s * in->tpot_s;
    r->kv_per_stream = in->kv_bytes_per_token * (in->prompt_tokens + in->output_tokens);
    r->kv_total = r->kv_per_stream * r->streams;
    r->kv_per_gpu = r->kv_total / r->gpus_peak;
}

bool plan_estimate(const struct plan_input *in, struct plan_result *r)
{
    double hourly[PLAN_HOURS];
    *r = (struct plan_result){0};
    if (!in->curve.fill(in->curve.self, in->peak_factor, hourly))
        return false;
    estimate_load(in, r);
    estimate_gpus(in, hourly, r);
    estimate_dollars(in, r);
    estimate_streams(in, r);
    return true;
}

/* ---- break-even ----------------------------------------------------------------------------- */

/* Dollars of a day at `volume` times the traffic: whole replicas, at least one, following the curve
 * (low) or the peak (high). */
static double own_usd(const struct plan_input *in, const struct plan_result *r,
                      const double hourly[PLAN_HOURS], double volume, bool high)
{
    double average = r->gpus_exact / in->peak_factor * volume, hours = 0, most = 0;
    for (int h = 0; h < PLAN_HOURS; h++) {
        double gpus = fmax(whole(in, average * hourly[h]), in->gpus_per_replica);
        hours += gpus;
        most = gpus > most ? gpus : most;
    }
    return high ? most * PLAN_HOURS * in->usd_high : hours * in->usd_low;
}

/* The volume from which on own GPUs stay cheaper: the last crossing on a fine logarithmic grid,
 * then halved; NaN when none. */
static double volume_of(const struct plan_input *in, const struct plan_result *r,
                        const double hourly[PLAN_HOURS], double api_usd, bool high)
{
    double found = NAN, at = 1e6;
    for (int step = 0; step < VOLUME_STEPS; step++, at /= 1.1) {
        if (own_usd(in, r, hourly, at, high) > api_usd * at)
            break;
        found = at;
    }
    if (isnan(found))
        return NAN;
    double low = found / 1.1, up_to = found;
    for (int i = 0; i < VOLUME_HALVINGS; i++) {
        double middle = 0.5 * (low + up_to);
        if (own_usd(in, r, hourly, middle, high) > api_usd * middle)
            low = middle;
        else
            up_to = middle;
    }
    return up_to;
}

bool plan_against_api(const struct plan_input *in, const struct price_api *api,
                      struct plan_break_even *b)
{
    struct plan_result r;
    double hourly[PLAN_HOURS];
    if (!plan_estimate(in, &r) || !in->curve.fill(in->curve.self, in->peak_factor, hourly))
        return false;
    *b = (struct plan_break_even){0};
    b->api_usd_day = r.requests_per_day / 1e6 *
                     (in->prompt_tokens * api->usd_per_mtok_input +
                      in->output_tokens * api->usd_per_mtok_output);
    b->self_usd_day_low = r.usd_day_low;
    b->self_usd_day_high = r.usd_day_high;
    b->utilization_low = r.work_gpu_hours * in->usd_low / b->api_usd_day;
    b->utilization_high = r.work_gpu_hours * in->usd_high / b->api_usd_day;
    b->requests_low = r.requests_per_day * volume_of(in, &r, hourly, b->api_usd_day, false);
    b->requests_high = r.requests_per_day * volume_of(in, &r, hourly, b->api_usd_day, true);
    return true;
}

/* ---- sensitivity ---------------------------------------------------------------------------- */

static double month_usd(const struct plan_input *in)
{
    struct plan_result r;
    if (in->utilization > 1 || in->peak_factor < 1 || !plan_estimate(in, &r))
        return NAN;
    return 0.5 * (r.usd_month_low + r.usd_month_high);
}

static int swing_compare(const void *a, const void *b)
{
    double x = ((const struct plan_sensitivity *)a)->swing;
    double y = ((const struct plan_sensitivity *)b)->swing;
    return (x < y) - (x > y);
}

size_t plan_sensitivity(const struct plan_input *in, struct plan_sensitivity out[PLAN_ASSUMPTIONS])
{
    static const struct {
        const char *name;
        size_t offset;
    } assumptions[PLAN_ASSUMPTIONS] = {
        {"daily active users", offsetof(struct plan_input, users)},
        {"sessions per user", offsetof(struct plan_input, sessions)},
        {"requests per session", offsetof(struct plan_input, requests)},
        {"prompt tokens", offsetof(struct plan_input, prompt_tokens)},
        {"output tokens", offsetof(struct plan_input, output_tokens)},
        {"peak factor", offsetof(struct plan_input, peak_factor)},
        {"decode tokens/s per GPU", offsetof(struct plan_input, decode_tokens_per_s)},
        {"prefill tokens/s per GPU", offsetof(struct plan_input, prefill_tokens_per_s)},
        {"target utilisation", offsetof(struct plan_input, utilization)},
        {"price per GPU-hour", offsetof(struct plan_input, usd_low)},
    };
    double base = month_usd(in);
    for (size_t i = 0; i < PLAN_ASSUMPTIONS; i++) {
        struct plan_input changed[2] = {*in, *in};
        for (int side = 0; side < 2; side++) {
            double factor = side ? 1.5 : 0.5;
            *(double *)((char *)&changed[side] + assumptions[i].offset) *= factor;
            if (assumptions[i].offset == offsetof(struct plan_input, usd_low))
                changed[side].usd_high *= factor;
        }
        struct plan_sensitivity s = {
            .assumption = assumptions[i].name,
            .base = *(const double *)((const char *)in + assumptions[i].offset),
            .usd_less = month_usd(&changed[0]),
            .usd_more = month_usd(&changed[1])};
        double less = isnan(s.usd_less) ? base : s.usd_less;
        double more = isnan(s.usd_more) ? base : s.usd_more;
        s.swing = fabs(more - less) / base;
        out[i] = s;
    }
    qsort(out, PLAN_ASSUMPTIONS, sizeof *out, swing_compare);
    return PLAN_ASSUMPTIONS;
}

/* ---- physics -------------------------------------------------------------------------------- */

static double flops_per_token(const struct llm_spec *llm, double context)
{
    return 2 * llm_params(llm).active + llm_attention_prefill_flops(llm, context, 0) / context;
}

double plan_prefill_limit(const struct llm_spec *llm, const struct gpu_spec *gpu,
                          const struct precision *p, double context)
{
    double peak = gpu->peak_flops[memory_math(gpu, (enum storage)p->weights)];
    return peak / flops_per_token(llm, context);
}

size_t plan_warn_physics(const struct plan_input *in, const struct llm_spec *llm,
                         const struct gpu_spec *gpu, const struct precision *p, double cached,
                         struct errors *errors, const struct source_pos *where)
{
    size_t before = errors->warning_count;
    enum math math = memory_math(gpu, (enum storage)p->weights);
    double peak = gpu->peak_flops[math], computed = in->prefill_tokens_per_s * (1 - cached);
    double needed = 2 * llm_params(llm).active * computed;
    double limit = plan_prefill_limit(llm, gpu, p, in->prompt_tokens);
    if (computed > limit)
        errors_add(errors, SEVERITY_WARNING, where,
                   "%.0f prefill tokens/s per GPU for %s needs %.2f PFLOP/s, and %s has %.2f "
                   "PFLOP/s of dense %s: at most %.0f tokens/s with attention, or a prefix-hit "
                   "share of %.0f %%",
                   in->prefill_tokens_per_s, llm->name, needed / 1e15, gpu->name, peak / 1e15,
                   hardware_math_names[math], limit, 100 * (1 - limit / in->prefill_tokens_per_s));
    /* A decode iteration streams one GPU's share of the weights and its streams' KV. */
    double weights = memory_weights(llm, p).total / in->gpus_per_replica;
    double streams = in->decode_tokens_per_s * in->tpot_s;
    double context = in->prompt_tokens + in->output_tokens / 2;
    double step = (weights + streams * llm_kv_bytes(llm, (enum storage)p->kv, context)) /
                  gpu->hbm_bytes_per_s;
    if (llm->moe.experts == 0 && step > in->tpot_s)
        errors_add(errors, SEVERITY_WARNING, where,
                   "%.0f decode tokens/s per GPU at %.0f ms per token means %.0f streams, and "
                   "reading %.1f GB of weights and their KV on %s takes %.1f ms",
                   in->decode_tokens_per_s, in->tpot_s * 1e3, streams, weights / 1e9, gpu->name,
                   step * 1e3);
    return errors->warning_count - before;
}
