/* What one replica delivers in steady state at a fixed number of requests in flight: a closed form
 * over a step model, for tables and for comparison with measurements. The engine simulates the same
 * thing; this answers in microseconds. */
#ifndef FLEETSIM_MODELS_SERVING_H
#define FLEETSIM_MODELS_SERVING_H

#include <stdbool.h>

#include "models/memory.h"
#include "models/roofline.h"

struct serving_load {
    double concurrency; /* requests in flight, waiting ones included */
    double prompt;      /* mean prompt tokens */
    double output;      /* mean output tokens */
    double chunk;       /* prompt tokens one iteration may take */
};

struct serving_estimate {
    double running; /* requests decoding at once */
    double tpot_s;  /* mean time per output token: decode iterations and their share of prefills */
    double prefill_s; /* one prompt alone on the replica */
    double ttft_s;    /* without queueing: outside the engine, half an iteration, prefill */
    double output_tokens_per_s; /* of the replica */
    double requests_per_s;
    bool memory_bound; /* the KV pool holds fewer requests than are in flight */
};

/* plan: of the same layout; its pool caps what runs at once. plan->fits must hold. */
struct serving_estimate serving_estimate(const struct roofline *r, const struct memory_plan *plan,
                                         const struct serving_load *load);

/* The largest concurrency whose TPOT stays at or below the limit, and its estimate; false when even
 * one request is slower, or the replica cannot hold one. */
bool serving_at_tpot(const struct roofline *r, const struct memory_plan *plan,
                     const struct serving_load *load, double tpot_limit_s,
                     struct serving_estimate *estimate);

#endif
