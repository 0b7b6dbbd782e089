/* How many replicas a demand needs, hour by hour, and what the two simplest ways of following it
 * cost: knowing each hour's demand (the oracle), and using the last hour's. The plan, the reference
 * ideal and the policy ideal go by it. */
#ifndef FLEETSIM_SIM_RUN_NEED_H
#define FLEETSIM_SIM_RUN_NEED_H

#include <stddef.h>
#include <stdint.h>

/* replicas(rate) = base + unit × k, k = ceil(rate / capacity) within [least, most]. A plain fleet
 * has unit 1, base 0; one that grows by whole deployment units, as an expert-parallel one, more. */
struct need_rule {
    double capacity; /* demand that one unit serves, in the rate's own unit; > 0 */
    double least, most;
    double unit, base;
};

/* Replicas for a demand; NaN when rate or capacity is. Rounding noise orders nothing: a quotient
 * within 1e-9 above a whole number is that number. */
double need_of(const struct need_rule *rule, double rate);

/* A plain fleet without limits. */
static inline double need_plain(double rate, double capacity)
{
    struct need_rule rule = {.capacity = capacity, .most = 1e18, .unit = 1};
    return need_of(&rule, rate);
}

struct need_total {
    double replica_hours; /* Σ over hours */
    double peak, trough;  /* replicas */
    size_t hours_short;   /* hours whose demand is above what their replicas serve */
    double demand_short;  /* of all demand, the share above it */
};

/* Every hour's own need; nothing is ever short unless `most` binds. count ≥ 1. */
struct need_total need_oracle(const struct need_rule *rule, const double *rates, size_t count);
/* The need of the hour before; the first hour has its own. */
struct need_total need_last_hour(const struct need_rule *rule, const double *rates, size_t count);

#endif
