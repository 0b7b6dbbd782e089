/* What `poisson` and `constant` share: how much traffic a class has, given in one of three ways,
 * and its curve. */
#ifndef FLEETSIM_SIM_WORKLOAD_ARRIVALS_RATE_H
#define FLEETSIM_SIM_WORKLOAD_ARRIVALS_RATE_H

#include "sim/base/field.h"
#include "sim/workload/arrivals.h"
#include "sim/workload/curve.h"
#include "sim/workload/rational.h"

struct arrivals_users {
    double daily;
    double sessions;
    double requests_per_session;
};

struct arrivals_rate_config {
    double rate;
    double requests_per_day;
    struct arrivals_users users;
    struct variant_value curve;
};
extern const struct field arrivals_rate_fields[];

/* The traffic of one class, resolved. */
struct arrivals_rate {
    struct curve curve;
    struct rational per_second; /* mean rate, exact as written */
    double daily;               /* mean arrivals per day */
    uint32_t start_s;           /* time 0 as a second of the local day: set by _start */
};

/* False after reporting: none or several of the three ways, a bad curve. */
bool arrivals_rate_init(struct arrivals_rate *rate, const struct arrivals_rate_config *config,
                        const struct site *site);
void arrivals_rate_start(struct arrivals_rate *rate, int64_t start_unix_s);
/* λ(t) in 1/s, t ≥ 0 since the scenario's start. */
double arrivals_rate_at(const struct arrivals_rate *rate, int64_t time_ps);
/* ∫ λ over [from, to), 0 ≤ from. */
double arrivals_rate_expected(const struct arrivals_rate *rate, int64_t from_ps, int64_t to_ps);

#endif
