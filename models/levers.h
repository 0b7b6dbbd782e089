/* Cutting the cost of a token: which multiplier a cut needs, and what stated levers multiply to.
 * Gains are assumptions until they are measured; each carries the check that guards quality. */
#ifndef FLEETSIM_MODELS_LEVERS_H
#define FLEETSIM_MODELS_LEVERS_H

#include <stddef.h>

struct lever {
    const char *name;
    double gain;       /* tokens per dollar, times */
    const char *guard; /* what must hold so that answers do not get worse */
};

/* The levers of a planning exercise, with its illustrative gains. */
enum { LEVERS_COUNT = 5 };
extern const struct lever levers_known[LEVERS_COUNT];

/* The multiplier that a cut of `share` (0.7: 70 %) needs: 1 / (1 − share). */
double levers_required(double share);
/* Product of gains, as if independent. */
double levers_product(const struct lever *levers, size_t count);
/* Sending a share of the requests to a model `cheaper` times cheaper: 1 / (1 − s + s/c). */
double levers_routing(double share, double cheaper);
/* A lower price per GPU-hour. */
double levers_price(double from_usd, double to_usd);

#endif
