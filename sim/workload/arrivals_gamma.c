/* gamma: a renewal process in expected count. Arrival number k comes at Λ⁻¹(G₀ + … + G_k), G_i
 * gamma-distributed with mean 1 and the wanted coefficient of variation; G₀ is a residual gap, as
 * if arrivals had come for ever, so that every interval holds exactly ∫λ on average. G_i hangs on
 * (seed, replication, class, i) only. */
#include "sim/workload/arrivals.h"

#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/workload/arrivals_rate.h"

struct gamma_config {
    struct arrivals_rate_config rate;
    double cv;
};

/* Those of arrivals_rate_fields, and cv. */
static const struct field gamma_fields[] = {
    {.name = "rate",
     .kind = FIELD_INLINE,
     .offset = offsetof(struct gamma_config, rate),
     .doc = "How much traffic.",
     .fields = arrivals_rate_fields},
    {.name = "cv",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct gamma_config, cv),
     .min = 0.05,
     .max = 30,
     .doc = "Standard deviation over mean of the gaps, where the rate is constant: 1 is poisson, "
            "above 1 comes in bursts."},
    {0}};

struct gamma {
    struct arrivals_rate rate;
    struct intensity intensity; /* owned */
    double shape, scale;        /* scale · shape = 1 */
    uint64_t key;
    uint64_t number; /* of the next arrival */
    int64_t horizon_ps;
};

static void *gamma_open(const void *config, const struct arrivals_setup *setup)
{
    const struct gamma_config *c = config;
    struct gamma *g = memory_zero(1, sizeof *g);
    if (!arrivals_rate_init(&g->rate, &c->rate, setup)) {
        free(g);
        return NULL;
    }
    g->shape = 1 / (c->cv * c->cv);
    g->scale = c->cv * c->cv;
    g->key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                     (uint32_t)setup->site.class_index);
    return g;
}

static void gamma_close(void *self)
{
    struct gamma *g = self;
    intensity_free(&g->intensity);
    arrivals_rate_free(&g->rate);
    free(g);
}

static bool gamma_start(void *self, int64_t start_unix_s, int64_t horizon_ps, struct errors *errors)
{
    struct gamma *g = self;
    if (!arrivals_rate_start(&g->rate, start_unix_s, horizon_ps, errors))
        return false;
    intensity_init(&g->intensity, &g->rate.curve, g->rate.daily, &g->rate.timeline);
    g->horizon_ps = horizon_ps;
    return true;
}

/* A gamma variate of shape ≥ 1 and scale 1 by G. Marsaglia and W. W. Tsang, "A simple method for
 * generating gamma variables" (2000); attempt n uses draw n of the entity, from 1. */
static double gamma_variate(uint64_t key, uint64_t number, double shape)
{
    double d = shape - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (uint64_t attempt = 1;; attempt++) {
        struct rng_pair bits = rng_draw(key, number, attempt);
        double x = detmath_normal_quantile(rng_unit_open(bits.a));
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (detmath_log(rng_unit_open(bits.b)) < 0.5 * x * x + d - d * v + d * detmath_log(v))
            return d * v;
    }
}

/* The gap before arrival `number`, in expected arrivals. Draw 0 gives what no attempt may share. */
static double gap_of(const struct gamma *g, uint64_t number)
{
    double u = rng_unit_open(rng_draw(g->key, number, 0).a);
    if (number == 0) /* a residual gap: uniform on a length-biased one, which has shape + 1 */
        return u * g->scale * gamma_variate(g->key, number, g->shape + 1);
    if (g->shape >= 1)
        return g->scale * gamma_variate(g->key, number, g->shape);
    /* Shape a < 1 is shape a + 1 times U^(1/a), as the same paper has it. */
    return g->scale * gamma_variate(g->key, number, g->shape + 1) *
           detmath_exp(detmath_log(u) / g->shape);
}

static int64_t gap_advance(struct gamma *g, double gap)
{
    const double stride = 32; /* within 2^62 quanta (intensity.h) */
    while (gap > stride) {
        uint64_t quanta = (uint64_t)(stride * g->intensity.per_arrival);
        if (intensity_advance(&g->intensity, quanta, g->horizon_ps) == TIME_NEVER)
            return TIME_NEVER;
        gap -= stride;
    }
    uint64_t quanta = (uint64_t)(gap * g->intensity.per_arrival + 0.5);
    return intensity_advance(&g->intensity, quanta, g->horizon_ps);
}

static size_t gamma_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    (void)errors;
    struct gamma *g = self;
    size_t count = 0;
    while (count < max) {
        int64_t time_ps = gap_advance(g, gap_of(g, g->number));
        if (time_ps == TIME_NEVER)
            break;
        out[count++].arrival_ps = time_ps;
        g->number++;
    }
    return count;
}

static double gamma_rate(const void *self, int64_t time_ps)
{
    return arrivals_rate_at(&((const struct gamma *)self)->rate, time_ps);
}

static double gamma_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    return arrivals_rate_expected(&((const struct gamma *)self)->rate, from_ps, to_ps);
}

static const struct arrivals_type gamma_type = {
    .open = gamma_open,
    .close = gamma_close,
    .start = gamma_start,
    .fill = gamma_fill,
    .rate = gamma_rate,
    .expected = gamma_expected,
};

const struct variant arrivals_gamma_variant = {
    .name = "gamma",
    .doc = "Gaps of a gamma distribution with a given cv: burstier than poisson above 1, more "
           "even below.",
    .fields = gamma_fields,
    .size = sizeof(struct gamma_config),
    .ops = &gamma_type,
};
