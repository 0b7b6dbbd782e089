#include "models/levers.h"

const struct lever levers_known[LEVERS_COUNT] = {
    {"BF16 to FP8 weights and FP8 KV cache", 1.6, "evaluation suite and logit agreement with BF16"},
    {"Prefix caching with cache-aware routing", 1.25, "none needed: outputs are identical"},
    {"Speculative decoding at moderate batch", 1.3, "none needed if verification is exact"},
    {"Half of the requests to a model 5 times cheaper", 1 / 0.6,
     "router accuracy; non-inferiority test on routed traffic"},
    {"Committed price, $3.00 to $2.20", 3.00 / 2.20, "none needed: contracts"},
};

double levers_required(double share)
{
    return 1 / (1 - share);
}

double levers_product(const struct lever *levers, size_t count)
{
    double product = 1;
    for (size_t i = 0; i < count; i++)
        product *= levers[i].gain;
    return product;
}

double levers_routing(double share, double cheaper)
{
    return 1 / (1 - share + share / cheaper);
}

double levers_price(double from_usd, double to_usd)
{
    return from_usd / to_usd;
}
