/* What the processes with a rate share: how much traffic a class has, given in one of three ways,
 * its curve, spikes and time zone. */
#ifndef FLEETSIM_SIM_WORKLOAD_ARRIVALS_RATE_H
#define FLEETSIM_SIM_WORKLOAD_ARRIVALS_RATE_H

#include "sim/base/field.h"
#include "sim/workload/arrivals.h"
#include "sim/workload/curve.h"
#include "sim/workload/rational.h"
#include "sim/workload/timeline.h"

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
    struct field_list spikes; /* of struct timeline_spike */
};
/* How rates vary: the keys `curve` and `spikes`, for a table of another struct. */
#define ARRIVALS_RATE_SHAPE_FIELDS(type)                                                           \
    {.name = "curve",                                                                              \
     .kind = FIELD_VARIANT,                                                                        \
     .offset = offsetof(type, curve),                                                              \
     .fallback = "flat",                                                                           \
     .doc = "How the rate varies over the local day or week; mean 1.",                             \
     .variants = curve_variants,                                                                   \
     .tag = "shape"},                                                                              \
    {                                                                                              \
        .name = "spikes", .kind = FIELD_LIST, .offset = offsetof(type, spikes), .max = 1000,       \
        .doc = "Flash crowds, or outages: times in which the rate is multiplied. They come on "    \
               "top of the mean.",                                                                 \
        .item = &arrivals_rate_spike_item, .item_size = sizeof(struct timeline_spike)              \
    }
extern const struct field arrivals_rate_spike_item;
extern const struct field arrivals_rate_fields[];

/* The traffic of one class, resolved. */
struct arrivals_rate {
    struct curve curve;
    struct rational per_second;      /* mean rate, exact as written */
    double daily;                    /* mean arrivals per day */
    const struct field_list *spikes; /* borrowed from the config */
    struct zone zone;
    int64_t from_ps, to_ps;   /* of the class; to TIME_NEVER: without end */
    struct timeline timeline; /* owned; empty before _start */
    struct site site;         /* for errors at _start */
};

/* False after reporting: none or several of the three ways, a bad curve, zone, start or end. */
bool arrivals_rate_init(struct arrivals_rate *rate, const struct arrivals_rate_config *config,
                        const struct arrivals_setup *setup);
/* The same with the mean rate given, in 1/s. */
bool arrivals_rate_init_mean(struct arrivals_rate *rate, struct rational per_second,
                             const struct variant_value *curve, const struct field_list *spikes,
                             const struct arrivals_setup *setup);
void arrivals_rate_free(struct arrivals_rate *rate);
/* False after reporting: rules of the time zone are not known so far back or ahead. */
bool arrivals_rate_start(struct arrivals_rate *rate, int64_t start_unix_s, int64_t horizon_ps,
                         struct errors *errors);
/* Whether the rate is one number from the class's start to its end. */
bool arrivals_rate_is_flat(const struct arrivals_rate *rate);
/* λ(t) in 1/s, t ≥ 0 since the scenario's start. */
double arrivals_rate_at(const struct arrivals_rate *rate, int64_t time_ps);
/* ∫ λ over [from, to), 0 ≤ from. */
double arrivals_rate_expected(const struct arrivals_rate *rate, int64_t from_ps, int64_t to_ps);

#endif
