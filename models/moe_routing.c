#include "models/moe_routing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"

/* The integral over t runs over log t, where the trapezoid rule converges geometrically: the edge
 * of the integrand is as wide as 1/√k, and so is a step: the error is e^(−2π²). */
static const double STEP_MAX = 0.5, FIRST = 1e-3, TAIL = 1e-8;
enum { NODES_MAX = 400 };

/* ---- expected shares ------------------------------------------------------------------------ */

/* One set of experts among which k are drawn. */
struct pool {
    const double *rate; /* borrowed: [count], sum 1 */
    size_t count;
    size_t k;
    double step;     /* of log t */
    double *hit;     /* scratch [count]: probability to have come by t */
    double *total;   /* scratch [k]: P(i of all have come), i < k */
    double *cold;    /* scratch [k]: the same of those below one half */
    double *without; /* scratch [k] */
};

static void count_add(double *p, size_t k, double hit)
{
    for (size_t i = k; i-- > 1;) {
        p[i] = p[i] * (1 - hit) + p[i - 1] * hit;
    }
    p[0] *= 1 - hit;
}

static double sum(const double *p, size_t k)
{
    double s = 0;
    for (size_t i = 0; i < k; i++) {
        s += p[i];
    }
    return s;
}

/* P(fewer than k of the others have come): one factor is divided out of the product, which is
 * stable below one half. */
static double others_cold(const struct pool *pool, double hit)
{
    double inverse = 1 / (1 - hit), last = 0, s = 0;
    for (size_t i = 0; i < pool->k; i++) {
        last = (pool->total[i] - hit * last) * inverse;
        s += last;
    }
    return s;
}

/* The same of a likely one: the product is made anew; there are few of them. */
static double others_hot(const struct pool *pool, size_t who)
{
    memcpy(pool->without, pool->cold, pool->k * sizeof *pool->without);
    for (size_t e = 0; e < pool->count; e++) {
        if (e != who && pool->hit[e] >= 0.5) {
            count_add(pool->without, pool->k, pool->hit[e]);
        }
    }
    return sum(pool->without, pool->k);
}

/* Adds one node's part to share[]; P(fewer than k of all have come by t). */
static double node_add(const struct pool *pool, double t, double *share)
{
    for (size_t i = 0; i < pool->k; i++) {
        pool->cold[i] = i == 0;
    }
    for (size_t e = 0; e < pool->count; e++) {
        pool->hit[e] = 1 - detmath_exp(-pool->rate[e] * t);
        if (pool->hit[e] < 0.5) {
            count_add(pool->cold, pool->k, pool->hit[e]);
        }
    }
    memcpy(pool->total, pool->cold, pool->k * sizeof *pool->total);
    for (size_t e = 0; e < pool->count; e++) {
        if (pool->hit[e] >= 0.5) {
            count_add(pool->total, pool->k, pool->hit[e]);
        }
    }
    for (size_t e = 0; e < pool->count; e++) {
        double density = pool->rate[e] * (1 - pool->hit[e]) * t * pool->step;
        if (density > 1e-16) {
            share[e] += density * (pool->hit[e] < 0.5 ? others_cold(pool, pool->hit[e])
                                                      : others_hot(pool, e));
        }
    }
    return sum(pool->total, pool->k);
}

/* Shares of k among the pool's experts, which add up to k. */
static void pool_shares(struct pool *pool, double *share)
{
    memset(share, 0, pool->count * sizeof *share);
    if (pool->count == pool->k) {
        for (size_t e = 0; e < pool->count; e++) {
            share[e] = 1;
        }
        return;
    }
    double t = FIRST * (double)pool->k;
    for (size_t e = 0; e < pool->count; e++) { /* up to half a step before the first node */
        share[e] = pool->rate[e] * t * detmath_exp(-pool->step / 2);
    }
    double grow = detmath_exp(pool->step);
    for (int node = 0; node < NODES_MAX && node_add(pool, t, share) > TAIL; node++) {
        t *= grow;
    }
    double scale = (double)pool->k / sum(share, pool->count);
    for (size_t e = 0; e < pool->count; e++) {
        share[e] = share[e] * scale < 1 ? share[e] * scale : 1;
    }
}

/* A pool over `count` experts; scratch: count + 3k doubles. */
static struct pool pool_over(const double *rate, size_t count, size_t k, double *scratch)
{
    double step = 1 / sqrt((double)k);
    return (struct pool){.rate = rate,
                         .count = count,
                         .k = k,
                         .step = step < STEP_MAX ? step : STEP_MAX,
                         .hit = scratch,
                         .total = scratch + count,
                         .cold = scratch + count + k,
                         .without = scratch + count + 2 * k};
}

/* P(set of groups) for every set of top_groups of them: sums over the orders in which it can be
 * drawn, by dynamic programming over its subsets. */
static double *set_chances(const struct moe_routing *r, const double *weight)
{
    uint32_t sets = 1u << r->groups;
    double *chance = memory_zero(sets, sizeof *chance);
    chance[0] = 1;
    for (uint32_t set = 1; set < sets; set++) {
        if (__builtin_popcount(set) > r->top_groups) {
            continue;
        }
        for (uint32_t g = 0; g < r->groups; g++) {
            if ((set >> g & 1) == 0) {
                continue;
            }
            uint32_t before = set & ~(1u << g);
            double left = 0;
            for (uint32_t h = 0; h < r->groups; h++) {
                left += (before >> h & 1) == 0 ? weight[h] : 0;
            }
            chance[set] += chance[before] * weight[g] / left;
        }
    }
    return chance;
}

static bool limited(const struct moe_routing *r)
{
    return r->top_groups > 0 && r->top_groups < r->groups && r->groups <= MOE_ROUTING_GROUPS_MAX;
}

/* One set's part: its experts gathered, their shares scattered back. work: 2·experts + scratch. */
static void set_add(const struct moe_routing *r, const double *rate, uint32_t set, double chance,
                    double *work, double *share)
{
    size_t size = (size_t)(r->experts / r->groups), count = 0;
    double *own = work, *own_share = work + r->experts, all = 0;
    for (uint32_t g = 0; g < r->groups; g++) {
        for (size_t i = 0; i < size && (set >> g & 1) != 0; i++) {
            own[count] = rate[g * size + i];
            all += own[count++];
        }
    }
    for (size_t i = 0; i < count; i++) {
        own[i] /= all;
    }
    struct pool pool = pool_over(own, count, (size_t)r->top_k, work + 2 * r->experts);
    pool_shares(&pool, own_share);
    count = 0;
    for (uint32_t g = 0; g < r->groups; g++) {
        for (size_t i = 0; i < size && (set >> g & 1) != 0; i++) {
            share[g * size + i] += chance * own_share[count++];
        }
    }
}

static bool all_alike(const double *rate, size_t count)
{
    for (size_t e = 1; e < count; e++) {
        if (rate[e] != rate[0]) {
            return false;
        }
    }
    return true;
}

void moe_routing_shares(const struct moe_routing *r, const double *popularity, double *share)
{
    check(r->top_k >= 1 && r->top_k <= r->experts && r->top_k <= MOE_ROUTING_TOP_K_MAX);
    size_t experts = (size_t)r->experts, k = (size_t)r->top_k;
    if (all_alike(popularity, experts)) {
        for (size_t e = 0; e < experts; e++) {
            share[e] = (double)k / (double)experts;
        }
        return;
    }
    double *work = memory_alloc((4 * experts + 3 * k) * sizeof *work), *rate = work;
    double all = sum(popularity, experts);
    for (size_t e = 0; e < experts; e++) {
        rate[e] = popularity[e] / all;
    }
    if (!limited(r)) {
        struct pool pool = pool_over(rate, experts, k, work + experts);
        pool_shares(&pool, share);
        free(work);
        return;
    }
    double weight[MOE_ROUTING_GROUPS_MAX];
    size_t size = experts / (size_t)r->groups;
    for (int64_t g = 0; g < r->groups; g++) {
        weight[g] = sum(rate + (size_t)g * size, size);
    }
    double *chance = set_chances(r, weight);
    memset(share, 0, experts * sizeof *share);
    for (uint32_t set = 0; set < 1u << r->groups; set++) {
        if (__builtin_popcount(set) == r->top_groups) {
            set_add(r, rate, set, chance[set], work + experts, share);
        }
    }
    free(chance);
    free(work);
}

/* ---- token by token ------------------------------------------------------------------------- */

void moe_routing_begin(struct moe_routing_draw *router, const struct moe_routing *routing,
                       const double *popularity, uint64_t key)
{
    *router = (struct moe_routing_draw){.routing = *routing, .key = key};
    router->cumulative = memory_alloc((size_t)routing->experts * sizeof *router->cumulative);
    double all = 0;
    for (int64_t e = 0; e < routing->experts; e++) {
        all += popularity[e];
        router->cumulative[e] = all;
    }
}

void moe_routing_end(struct moe_routing_draw *router)
{
    free(router->cumulative);
}

/* The first in [from, to) whose cumulative weight exceeds x. */
static int64_t find(const double *cumulative, int64_t from, int64_t to, double x)
{
    while (to - from > 1) {
        int64_t middle = (from + to) / 2 - 1;
        if (cumulative[middle] > x) {
            to = middle + 1;
        } else {
            from = middle + 1;
        }
    }
    return from;
}

static double before(const struct moe_routing_draw *router, int64_t expert)
{
    return expert > 0 ? router->cumulative[expert - 1] : 0;
}

/* Groups of a token: a set, drawn with rejection of those it has. */
static uint32_t token_groups(const struct moe_routing_draw *router, uint64_t token, uint64_t *draw)
{
    const struct moe_routing *r = &router->routing;
    int64_t size = r->experts / r->groups;
    uint32_t set = 0;
    while (__builtin_popcount(set) < r->top_groups) {
        struct rng_pair bits = rng_draw(router->key, token, (*draw)++);
        double x = rng_unit(bits.a) * router->cumulative[r->experts - 1];
        set |= 1u << (find(router->cumulative, 0, r->experts, x) / size);
    }
    return set;
}

void moe_routing_token(const struct moe_routing_draw *router, uint64_t token, int32_t *experts)
{
    const struct moe_routing *r = &router->routing;
    int64_t size = r->experts / r->groups;
    uint64_t draw = 0;
    bool grouped = limited(r);
    uint32_t set = grouped ? token_groups(router, token, &draw) : 0;
    for (int64_t found = 0; found < r->top_k;) {
        struct rng_pair bits = rng_draw(router->key, token, draw++);
        double x = rng_unit(bits.a) * router->cumulative[r->experts - 1];
        int64_t e = find(router->cumulative, 0, r->experts, x);
        bool taken = grouped && (set >> (e / size) & 1) == 0;
        for (int64_t i = 0; i < found && !taken; i++) {
            taken = experts[i] == e;
        }
        if (!taken && router->cumulative[e] > before(router, e)) {
            experts[found++] = (int32_t)e;
        }
    }
}
