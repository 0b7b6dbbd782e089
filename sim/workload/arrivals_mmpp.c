/* mmpp: a Poisson process whose rate is that of a hidden state. States follow one another in the
 * order given, the first after the last; each holds for an exponential time. Arrivals of the
 * fastest state are drawn and thinned to the present one's rate. Candidate i hangs on (seed,
 * replication, class, i) only, the length of stay n on n only; the first state is drawn by the
 * share of time that each takes, so that every interval holds exactly ∫λ on average. */
#include "sim/workload/arrivals.h"

#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/workload/arrivals_rate.h"

struct mmpp_state {
    double rate;
    int64_t holding_ps;
};

struct mmpp_config {
    struct field_list states; /* of struct mmpp_state */
    struct variant_value curve;
    struct field_list spikes; /* of struct timeline_spike */
};

static const struct field state_fields[] = {
    {.name = "rate",
     .kind = FIELD_REAL,
     .unit = UNIT_RATE,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct mmpp_state, rate),
     .min = 0,
     .max = 1e9,
     .doc = "Arrivals per second in this state, where the curve is 1."},
    {.name = "mean_holding",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct mmpp_state, holding_ps),
     .min = 0.001,
     .max = 8640000,
     .doc = "Mean time in this state."},
    {0}};
static const struct field state_item = {.kind = FIELD_STRUCT, .fields = state_fields};
static const struct field mmpp_fields[] = {
    {.name = "states",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct mmpp_config, states),
     .min = 2,
     .max = 64,
     .doc = "Hidden states, which follow one another in this order, round and round. The mean rate "
            "is that of the states, weighted by mean_holding.",
     .item = &state_item,
     .item_size = sizeof(struct mmpp_state)},
    ARRIVALS_RATE_SHAPE_FIELDS(struct mmpp_config),
    {0}};

/* Draws of one entity: of candidate arrivals and of stays. */
enum { DRAW_CANDIDATE, DRAW_STAY };

struct mmpp {
    struct arrivals_rate rate;       /* the mean */
    struct intensity intensity;      /* owned; at the fastest state's rate */
    const struct mmpp_state *states; /* borrowed from the config */
    size_t state_count;
    double rate_max;
    uint64_t key;
    uint64_t number; /* of the next candidate */
    uint64_t stay;   /* number of the present stay */
    size_t state;    /* in it */
    int64_t until_ps;
    int64_t horizon_ps;
};

static bool states_check(struct mmpp *m, const struct site *site, double *mean)
{
    double holding = 0, arrivals = 0;
    for (size_t i = 0; i < m->state_count; i++) {
        holding += time_seconds(m->states[i].holding_ps);
        arrivals += m->states[i].rate * time_seconds(m->states[i].holding_ps);
        m->rate_max = m->states[i].rate > m->rate_max ? m->states[i].rate : m->rate_max;
    }
    *mean = arrivals / holding;
    if (*mean >= 1e-9)
        return true;
    site_error(site, "arrivals.states", "the mean rate must be at least 1e-9 /s");
    return false;
}

static void *mmpp_open(const void *config, const struct arrivals_setup *setup)
{
    const struct mmpp_config *c = config;
    struct mmpp *m = memory_zero(1, sizeof *m);
    m->states = c->states.items;
    m->state_count = c->states.count;
    double mean = 0;
    if (!states_check(m, &setup->site, &mean) ||
        !arrivals_rate_init_mean(&m->rate, rational_from_real(mean), &c->curve, &c->spikes,
                                 setup)) {
        free(m);
        return NULL;
    }
    m->key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                     (uint32_t)setup->site.class_index);
    return m;
}

static void mmpp_close(void *self)
{
    struct mmpp *m = self;
    intensity_free(&m->intensity);
    arrivals_rate_free(&m->rate);
    free(m);
}

/* Draws when the present stay ends: at least a ps later. */
static void stay_draw(struct mmpp *m, int64_t from_ps)
{
    double unit = -detmath_log(rng_unit_open(rng_draw(m->key, m->stay, DRAW_STAY).a));
    double length = unit * (double)m->states[m->state].holding_ps;
    double left = (double)(TIME_NEVER - from_ps) - 1024;
    m->until_ps = length < left ? from_ps + 1 + (int64_t)length : TIME_NEVER;
}

/* The state at time 0, by the share of time. The rest of an exponential stay is exponential. */
static void first_state(struct mmpp *m)
{
    double total = 0;
    for (size_t i = 0; i < m->state_count; i++)
        total += time_seconds(m->states[i].holding_ps);
    double at = rng_unit(rng_draw(m->key, 0, DRAW_STAY).b) * total;
    m->state = 0;
    while (m->state + 1 < m->state_count && at >= time_seconds(m->states[m->state].holding_ps))
        at -= time_seconds(m->states[m->state++].holding_ps);
    m->stay = 0;
    stay_draw(m, 0);
}

static bool mmpp_start(void *self, int64_t start_unix_s, int64_t horizon_ps, struct errors *errors)
{
    struct mmpp *m = self;
    if (!arrivals_rate_start(&m->rate, start_unix_s, horizon_ps, errors))
        return false;
    intensity_init(&m->intensity, &m->rate.curve, m->rate_max * 86400, &m->rate.timeline);
    m->horizon_ps = horizon_ps;
    first_state(m);
    return true;
}

static size_t mmpp_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    (void)errors;
    struct mmpp *m = self;
    double per_arrival = m->intensity.per_arrival;
    size_t count = 0;
    while (count < max) {
        struct rng_pair bits = rng_draw(m->key, m->number, DRAW_CANDIDATE);
        uint64_t quanta = (uint64_t)(-detmath_log(rng_unit_open(bits.a)) * per_arrival + 0.5);
        int64_t time_ps = intensity_advance(&m->intensity, quanta, m->horizon_ps);
        if (time_ps == TIME_NEVER)
            break;
        m->number++;
        while (m->until_ps <= time_ps) {
            m->stay++;
            m->state = m->state + 1 < m->state_count ? m->state + 1 : 0;
            stay_draw(m, m->until_ps);
        }
        if (rng_unit(bits.b) * m->rate_max < m->states[m->state].rate)
            out[count++].arrival_ps = time_ps;
    }
    return count;
}

static double mmpp_rate(const void *self, int64_t time_ps)
{
    return arrivals_rate_at(&((const struct mmpp *)self)->rate, time_ps);
}

static double mmpp_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    return arrivals_rate_expected(&((const struct mmpp *)self)->rate, from_ps, to_ps);
}

static const struct arrivals_type mmpp_type = {
    .open = mmpp_open,
    .close = mmpp_close,
    .start = mmpp_start,
    .fill = mmpp_fill,
    .rate = mmpp_rate,
    .expected = mmpp_expected,
};

const struct variant arrivals_mmpp_variant = {
    .name = "mmpp",
    .doc = "A Markov-modulated Poisson process: the rate jumps between hidden states.",
    .fields = mmpp_fields,
    .size = sizeof(struct mmpp_config),
    .ops = &mmpp_type,
};
