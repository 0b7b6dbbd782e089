#include "models/serving.h"

#include <math.h>

#include "sim/base/check.h"

enum { SERVING_ROUNDS = 12, SERVING_CONCURRENCY_MAX = 1 << 20 };

static uint32_t whole(double value)
{
    return value < 1 ? 1 : value > 4e9 ? (uint32_t)4e9 : (uint32_t)(value + 0.5);
}

/* One iteration with `running` decodes of `context` tokens each and `prefills` chunks of `chunk`
 * tokens, each the mean one of its prompt. */
static double iteration_s(const struct roofline *r, double running, double context, double prefills,
                          double chunk, double prompt)
{
    struct step_batch b = {0};
    if (running > 0) {
        b.decodes = whole(running);
        b.decode_kv = (int64_t)(b.decodes * context);
    }
    if (prefills > 0) {
        double tokens = prefills * chunk;
        b.prefills = whole(prefills);
        b.prefill_tokens = whole(tokens);
        b.prefill_pairs = (int64_t)(tokens * prompt / 2);
        b.prefill_kv = (int64_t)(prefills * (prompt - chunk) / 2);
        b.prefill_squares = (int64_t)(tokens * chunk);
    }
    return roofline_parts(r, &b).total_s;
}

struct serving_estimate serving_estimate(const struct roofline *r, const struct memory_plan *plan,
                                         const struct serving_load *load)
{
    check(plan->fits && load->output >= 1 && load->prompt >= 1);
    struct serving_estimate e = {0};
    double outside = time_seconds(r->config.factors.first_token_ps);
    double chunks = ceil(load->prompt / load->chunk), chunk = load->prompt / chunks;
    double context = load->prompt + load->output / 2;
    double held = memory_sequences(plan, &r->config.parallel, context);
    double limit = load->concurrency < held ? load->concurrency : held;
    e.memory_bound = held < load->concurrency;
    e.prefill_s = chunks * iteration_s(r, 0, 0, 1, chunk, load->prompt);
    e.running = limit > 1 ? limit : 1;
    for (int round = 0; round < SERVING_ROUNDS; round++) {
        /* Prefill chunks that fall due per decode iteration. */
        double due = e.running * chunks / load->output;
        double plain = iteration_s(r, e.running, context, 0, 0, 0);
        if (due <= 1)
            e.tpot_s =
                plain + due * (iteration_s(r, e.running, context, 1, chunk, load->prompt) - plain);
        else
            e.tpot_s = iteration_s(r, e.running, context, due, chunk, load->prompt);
        e.ttft_s = outside + e.prefill_s + e.tpot_s / 2;
        double decode_s = load->output * e.tpot_s;
        double next = limit * decode_s / (decode_s + e.ttft_s);
        e.running = 0.5 * (e.running + (next > 1 ? next : 1));
    }
    e.output_tokens_per_s = e.running / e.tpot_s;
    e.requests_per_s = e.output_tokens_per_s / load->output;
    return e;
}

bool serving_at_tpot(const struct roofline *r, const struct memory_plan *plan,
                     const struct serving_load *load, double tpot_limit_s,
                     struct serving_estimate *estimate)
{
    struct serving_load try = *load;
    if (!plan->fits || memory_sequences(plan, &r->config.parallel, load->prompt + load->output) < 1)
        return false;
    double low = 0, high = 1;
    for (;; high *= 2) {
        try.concurrency = high;
        struct serving_estimate e = serving_estimate(r, plan, &try);
        if (e.tpot_s > tpot_limit_s)
            break;
        *estimate = e;
        low = high;
        if (e.memory_bound || high >= SERVING_CONCURRENCY_MAX)
            return true;
    }
    while (high - low > 1) {
        double middle = floor((low + high) / 2);
        try.concurrency = middle;
        struct serving_estimate e = serving_estimate(r, plan, &try);
        if (e.tpot_s > tpot_limit_s) {
            high = middle;
        } else {
            low = middle;
            *estimate = e;
        }
    }
    return low >= 1;
}
