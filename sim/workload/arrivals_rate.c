#include "sim/workload/arrivals_rate.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/check.h"

static const struct field users_fields[] = {
    {.name = "daily",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_users, daily),
     .max = 1e11,
     .doc = "Users on one day."},
    {.name = "sessions",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_users, sessions),
     .max = 1e6,
     .doc = "Sessions of a user on one day."},
    {.name = "requests_per_session",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_users, requests_per_session),
     .max = 1e6,
     .doc = "Requests in one session."},
    {0}};

const struct field arrivals_rate_fields[] = {
    {.name = "rate",
     .kind = FIELD_REAL,
     .unit = UNIT_RATE,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_rate_config, rate),
     .max = 1e9,
     .doc = "Mean arrivals per second over the day. Exactly one of rate, requests_per_day and "
            "users is given."},
    {.name = "requests_per_day",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_rate_config, requests_per_day),
     .max = 1e14,
     .doc = "Mean arrivals per day."},
    {.name = "users",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct arrivals_rate_config, users),
     .doc = "Mean arrivals per day as daily · sessions · requests_per_session.",
     .fields = users_fields},
    {.name = "curve",
     .kind = FIELD_VARIANT,
     .offset = offsetof(struct arrivals_rate_config, curve),
     .fallback = "flat",
     .doc = "How the rate varies over the local day; mean 1.",
     .variants = curve_variants,
     .tag = "shape",
     .later = curve_later},
    {0}};

enum { SECONDS_PER_DAY = 86400 };
#define RATE_MIN 1e-9 /* per second: one arrival in 32 years */
#define RATE_MAX 1e9

/* a · b, exact unless the fraction outgrows 128 bits: then the nearest short decimal. */
static struct rational product(struct rational a, struct rational b)
{
    struct rational out;
    if (rational_multiply(a, b, &out))
        return out;
    double left = (double)a.numerator / (double)a.denominator;
    double right = (double)b.numerator / (double)b.denominator;
    return rational_from_real(left * right);
}

static bool users_resolve(const struct arrivals_users *users, const struct site *site,
                          struct rational *per_second)
{
    const struct rational per_day = {1, SECONDS_PER_DAY};
    const double values[] = {users->daily, users->sessions, users->requests_per_session};
    static const char *const names[] = {"daily", "sessions", "requests_per_session"};
    struct rational total = per_day;
    bool ok = true;
    for (size_t i = 0; i < 3; i++) {
        if (isnan(values[i]) || values[i] < 1e-6) {
            site_error(site, "arrivals.users",
                       isnan(values[i]) ? "users needs daily, sessions and requests_per_session: "
                                          "%s is missing"
                                        : "users: %s is too small",
                       names[i]);
            ok = false;
        } else {
            total = product(total, rational_from_real(values[i]));
        }
    }
    *per_second = total;
    return ok;
}

static bool rate_resolve(const struct arrivals_rate_config *c, const struct site *site,
                         struct rational *per_second)
{
    bool rate = !isnan(c->rate);
    bool day = !isnan(c->requests_per_day);
    bool users = !isnan(c->users.daily) || !isnan(c->users.sessions) ||
                 !isnan(c->users.requests_per_session);
    int given = rate + day + users;
    if (given != 1) {
        site_error(site, "arrivals", "%s of rate, requests_per_day and users",
                   given ? "only one can be given" : "one must be given");
        return false;
    }
    if (users)
        return users_resolve(&c->users, site, per_second);
    double value = rate ? c->rate : c->requests_per_day / SECONDS_PER_DAY;
    if (!(value >= RATE_MIN && value <= RATE_MAX)) {
        site_error(site, rate ? "arrivals.rate" : "arrivals.requests_per_day",
                   "the rate must be between 1e-9 /s and 1e9 /s");
        return false;
    }
    *per_second = rate ? rational_from_real(c->rate)
                       : product(rational_from_real(c->requests_per_day),
                                 (struct rational){1, SECONDS_PER_DAY});
    return true;
}

bool arrivals_rate_init(struct arrivals_rate *rate, const struct arrivals_rate_config *config,
                        const struct site *site)
{
    bool resolved = rate_resolve(config, site, &rate->per_second);
    bool curved = curve_init(&rate->curve, &config->curve, site);
    if (!resolved || !curved)
        return false;
    double numerator = (double)rate->per_second.numerator;
    double denominator = (double)rate->per_second.denominator;
    rate->daily = numerator * SECONDS_PER_DAY / denominator;
    rate->start_s = 0;
    double mean = numerator / denominator;
    if (!(mean >= RATE_MIN && mean <= RATE_MAX)) {
        site_error(site, "arrivals.users", "the rate must be between 1e-9 /s and 1e9 /s");
        return false;
    }
    return true;
}

void arrivals_rate_start(struct arrivals_rate *rate, int64_t start_unix_s)
{
    int64_t second = start_unix_s % SECONDS_PER_DAY;
    rate->start_s = (uint32_t)(second < 0 ? second + SECONDS_PER_DAY : second);
}

static int64_t local_time(const struct arrivals_rate *rate, int64_t time_ps)
{
    check(time_ps >= 0);
    return time_add(time_ps, rate->start_s * PS_PER_SECOND);
}

double arrivals_rate_at(const struct arrivals_rate *rate, int64_t time_ps)
{
    return rate->daily / SECONDS_PER_DAY * curve_value(&rate->curve, local_time(rate, time_ps));
}

double arrivals_rate_expected(const struct arrivals_rate *rate, int64_t from_ps, int64_t to_ps)
{
    if (to_ps <= from_ps)
        return 0;
    if (curve_is_flat(&rate->curve))
        return rate->daily * ((double)(to_ps - from_ps) / (double)CURVE_DAY_PS);
    return rate->daily * (curve_integral(&rate->curve, local_time(rate, to_ps)) -
                          curve_integral(&rate->curve, local_time(rate, from_ps)));
}
