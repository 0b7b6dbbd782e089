#include "sim/run/need.h"

#include <math.h>

#include "sim/base/check.h"

static const double SLACK = 1e-9;

double need_of(const struct need_rule *rule, double rate)
{
    double units = ceil(rate / rule->capacity - SLACK);
    if (isnan(units)) {
        return NAN; /* fmin and fmax would drop it */
    }
    return rule->base + rule->unit * fmin(fmax(units, rule->least), rule->most);
}

/* What replicas serve: their units' capacity. */
static double served(const struct need_rule *rule, double replicas)
{
    return (replicas - rule->base) / rule->unit * rule->capacity;
}

static struct need_total follow(const struct need_rule *rule, const double *rates, size_t count,
                                size_t lag)
{
    struct need_total total = {.trough = INFINITY};
    double demand = 0, above = 0;
    check(count > 0);
    for (size_t hour = 0; hour < count; hour++) {
        double replicas = need_of(rule, rates[hour < lag ? hour : hour - lag]);
        double over = rates[hour] - served(rule, replicas);
        total.replica_hours += replicas;
        total.peak = fmax(total.peak, replicas);
        total.trough = fmin(total.trough, replicas);
        total.hours_short += over > SLACK * rule->capacity;
        above += fmax(over, 0);
        demand += rates[hour];
    }
    total.demand_short = demand > 0 ? above / demand : 0;
    return total;
}

struct need_total need_oracle(const struct need_rule *rule, const double *rates, size_t count)
{
    return follow(rule, rates, count, 0);
}

struct need_total need_last_hour(const struct need_rule *rule, const double *rates, size_t count)
{
    return follow(rule, rates, count, 1);
}
