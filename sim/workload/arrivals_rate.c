#include "sim/workload/arrivals_rate.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/check.h"
#include "sim/base/time.h"

static const struct field spike_fields[] = {
    {.name = "at",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct timeline_spike, at_ps),
     .min = 0,
     .max = 8640000,
     .doc = "When it begins, since the scenario's start."},
    {.name = "duration",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct timeline_spike, duration_ps),
     .min = 0,
     .max = 8640000,
     .doc = "How long it lasts."},
    {.name = "factor",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct timeline_spike, factor),
     .min = 0,
     .max = 10000,
     .doc = "What the rate is multiplied by in it; 0: nothing comes."},
    {0}};
const struct field arrivals_rate_spike_item = {.kind = FIELD_STRUCT, .fields = spike_fields};

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
     .doc = "Requests in one session; where the class has sessions, their mean turns."},
    {0}};

const struct field arrivals_rate_fields[] = {
    {.name = "rate",
     .kind = FIELD_REAL,
     .unit = UNIT_RATE,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_rate_config, rate),
     .max = 1e9,
     .doc =
         "Mean arrivals per second over the day; with sessions, starts of conversations. Exactly "
         "one of rate, requests_per_day and users is given."},
    {.name = "requests_per_day",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct arrivals_rate_config, requests_per_day),
     .max = 1e14,
     .doc = "Mean requests per day; with sessions that many over their mean turns start."},
    {.name = "users",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct arrivals_rate_config, users),
     .doc = "Mean requests per day as daily · sessions · requests_per_session.",
     .fields = users_fields},
    ARRIVALS_RATE_SHAPE_FIELDS(struct arrivals_rate_config),
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

/* The class's keys time_zone, start and end. */
static bool class_resolve(struct arrivals_rate *rate, const struct arrivals_setup *setup)
{
    const struct site *site = &setup->site;
    const struct traffic_config *class = setup->config->classes[site->class_index];
    rate->from_ps = class->start_ps;
    rate->to_ps = class->end_ps == FIELD_INT_UNSET ? TIME_NEVER : class->end_ps;
    bool ok = true;
    if (rate->to_ps <= rate->from_ps) {
        site_error(site, "end", "the class ends before it starts");
        ok = false;
    }
    if (!zone_parse(class->time_zone, &rate->zone)) {
        const char *near = errors_nearest(class->time_zone, zone_names);
        site_error(site, "time_zone",
                   "unknown time zone '%s'%s%s%s: an offset such as +05:30, or a name of those in "
                   "`fleetsim explain time_zone`",
                   class->time_zone, near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
        ok = false;
    }
    return ok;
}

bool arrivals_rate_init_mean(struct arrivals_rate *rate, struct rational per_second,
                             const struct variant_value *curve, const struct field_list *spikes,
                             const struct arrivals_setup *setup)
{
    rate->per_second = per_second;
    rate->daily = (double)per_second.numerator * SECONDS_PER_DAY / (double)per_second.denominator;
    rate->spikes = spikes;
    rate->site = setup->site;
    rate->timeline = (struct timeline){0};
    bool curved = curve_init(&rate->curve, curve, &setup->site);
    return class_resolve(rate, setup) && curved;
}

/* Where the class has sessions its arrivals are their starts: the requests of a day over the mean
 * turns. False after reporting. */
static bool starts_resolve(const struct arrivals_rate_config *c, const struct arrivals_setup *setup,
                           struct rational *per_second)
{
    const struct traffic_config *class = setup->config->classes[setup->site.class_index];
    double turns = sessions_config_turns(&class->sessions);
    if (isnan(turns) || !isnan(c->rate))
        return true;
    double stated = c->users.requests_per_session;
    if (fabs(stated - turns) > 1e-9 * turns) {
        site_error(&setup->site, "arrivals.users",
                   "requests_per_session is %g, the mean turns of the sessions are %g", stated,
                   turns);
        return false;
    }
    struct rational mean = rational_from_real(turns);
    *per_second = product(*per_second, (struct rational){mean.denominator, mean.numerator});
    return true;
}

bool arrivals_rate_init(struct arrivals_rate *rate, const struct arrivals_rate_config *config,
                        const struct arrivals_setup *setup)
{
    struct rational per_second = {1, 1};
    bool resolved = rate_resolve(config, &setup->site, &per_second) &&
                    starts_resolve(config, setup, &per_second);
    bool ok = arrivals_rate_init_mean(rate, per_second, &config->curve, &config->spikes, setup);
    if (!resolved || !ok)
        return false;
    double mean = (double)per_second.numerator / (double)per_second.denominator;
    if (!(mean >= RATE_MIN && mean <= RATE_MAX)) {
        site_error(&setup->site, "arrivals.users", "the rate must be between 1e-9 /s and 1e9 /s");
        return false;
    }
    return true;
}

void arrivals_rate_free(struct arrivals_rate *rate)
{
    timeline_free(&rate->timeline);
}

bool arrivals_rate_start(struct arrivals_rate *rate, int64_t start_unix_s, int64_t horizon_ps,
                         struct errors *errors)
{
    if (rate->zone.rule != ZONE_FIXED &&
        (start_unix_s < zone_days(ZONE_YEAR_MIN, 1, 1) * SECONDS_PER_DAY ||
         start_unix_s >= zone_days(ZONE_YEAR_MAX, 1, 1) * SECONDS_PER_DAY)) {
        struct site site = rate->site;
        site.errors = errors;
        site_error(&site, "time_zone",
                   "the daylight-saving rules of %s are known for scenarios that start from %d to "
                   "%d: give an offset such as -05:00",
                   rate->zone.name, ZONE_YEAR_MIN, ZONE_YEAR_MAX);
        return false;
    }
    struct timeline_setup setup = {.start_unix_s = start_unix_s,
                                   .horizon_ps = horizon_ps,
                                   .zone = &rate->zone,
                                   .spikes = rate->spikes,
                                   .from_ps = rate->from_ps,
                                   .to_ps = rate->to_ps};
    timeline_init(&rate->timeline, &setup);
    return true;
}

bool arrivals_rate_is_flat(const struct arrivals_rate *rate)
{
    return curve_is_flat(&rate->curve) && rate->spikes->count == 0;
}

double arrivals_rate_at(const struct arrivals_rate *rate, int64_t time_ps)
{
    const struct timeline_piece *piece = timeline_at(&rate->timeline, time_ps);
    int64_t weeks;
    int64_t local_ps = timeline_local(piece, time_ps, &weeks);
    return rate->daily / SECONDS_PER_DAY * piece->factor * curve_value(&rate->curve, local_ps);
}

/* ∫ λ over [from, to) within one piece. */
static double piece_expected(const struct arrivals_rate *rate, const struct timeline_piece *piece,
                             int64_t from_ps, int64_t to_ps)
{
    if (curve_is_flat(&rate->curve))
        return rate->daily * piece->factor * ((double)(to_ps - from_ps) / (double)CURVE_DAY_PS);
    int64_t weeks_from, weeks_to;
    int64_t from = timeline_local(piece, from_ps, &weeks_from);
    int64_t to = timeline_local(piece, to_ps, &weeks_to);
    double days = curve_integral(&rate->curve, to) - curve_integral(&rate->curve, from);
    return rate->daily * piece->factor * (days + CURVE_DAYS_MAX * (double)(weeks_to - weeks_from));
}

double arrivals_rate_expected(const struct arrivals_rate *rate, int64_t from_ps, int64_t to_ps)
{
    double sum = 0;
    for (size_t i = 0; i < rate->timeline.count; i++) {
        const struct timeline_piece *piece = &rate->timeline.pieces[i];
        int64_t begin = piece->from_ps > from_ps ? piece->from_ps : from_ps;
        int64_t end = i + 1 < rate->timeline.count ? piece[1].from_ps : to_ps;
        end = end > to_ps ? to_ps : end;
        if (begin < end)
            sum += piece_expected(rate, piece, begin, end);
    }
    return sum;
}
