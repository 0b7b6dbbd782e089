/* Which experts a token goes to: top_k of them without replacement, drawn one after the other with
 * probability proportional to what is left of the popularity (the k smallest of exponential clocks
 * with these rates: softmax scores plus Gumbel noise). With node-limited routing a token first
 * draws top_groups of the groups in the same way, by their summed popularity, and then its experts
 * among theirs. */
#ifndef FLEETSIM_MODELS_MOE_ROUTING_H
#define FLEETSIM_MODELS_MOE_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

struct moe_routing {
    int64_t experts;
    int64_t top_k;      /* ≤ experts */
    int64_t groups;     /* divides experts; 1: no limit */
    int64_t top_groups; /* groups · top_groups ≥ top_k experts */
};

/* Node-limited routing is taken into account for up to so many groups. */
enum { MOE_ROUTING_GROUPS_MAX = 16 };
/* Most experts of a token. */
enum { MOE_ROUTING_TOP_K_MAX = 128 };

/* share[e]: probability that a token goes to expert e; they sum to top_k. popularity: any positive
 * weights, [experts]. Exact up to a quadrature error below 1e-4:
 *     share(e) = ∫ w e^(−w t) P(fewer than k of the others by t) dt
 * with the Poisson-binomial count of the others; with groups, the sum over the sets of groups. */
void moe_routing_shares(const struct moe_routing *routing, const double *popularity, double *share);

/* Draws the experts of tokens one by one: the same law, for tests and small batches. */
struct moe_routing_draw {
    struct moe_routing routing;
    double *cumulative; /* owned: [experts], of the popularity */
    uint64_t key;       /* rng_key */
};
void moe_routing_begin(struct moe_routing_draw *router, const struct moe_routing *routing,
                       const double *popularity, uint64_t key);
void moe_routing_end(struct moe_routing_draw *router);
/* experts: [top_k], distinct, in the order drawn. */
void moe_routing_token(const struct moe_routing_draw *router, uint64_t token, int32_t *experts);

#endif
