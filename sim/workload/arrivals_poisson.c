/* poisson: independent arrivals at rate λ(t). Arrival number k comes at Λ⁻¹(E₀ + … + E_k), E_i unit
 * exponentials; E_i hangs on (seed, replication, class, i) only, so that nothing else a scenario
 * changes can move a draw, and a change of rate or curve stretches the same arrivals. */
#include "sim/workload/arrivals.h"

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/workload/arrivals_rate.h"

#include <stdlib.h>

struct poisson {
    struct arrivals_rate rate;
    struct intensity intensity;
    uint64_t key;
    uint64_t number; /* of the next arrival */
    int64_t horizon_ps;
};

static void *poisson_open(const void *config, const struct arrivals_setup *setup)
{
    struct poisson *p = memory_zero(1, sizeof *p);
    if (!arrivals_rate_init(&p->rate, config, setup)) {
        free(p);
        return NULL;
    }
    p->key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                     (uint32_t)setup->site.class_index);
    return p;
}

static void poisson_close(void *self)
{
    struct poisson *p = self;
    intensity_free(&p->intensity);
    arrivals_rate_free(&p->rate);
    free(p);
}

static bool poisson_start(void *self, int64_t start_unix_s, int64_t horizon_ps,
                          struct errors *errors)
{
    struct poisson *p = self;
    if (!arrivals_rate_start(&p->rate, start_unix_s, horizon_ps, errors))
        return false;
    intensity_init(&p->intensity, &p->rate.curve, p->rate.daily, &p->rate.timeline);
    p->horizon_ps = horizon_ps;
    return true;
}

static size_t poisson_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    (void)errors;
    struct poisson *p = self;
    double per_arrival = p->intensity.per_arrival;
    uint64_t number = p->number;
    size_t count = 0;
    while (count < max) {
        double unit[2] = {rng_unit_open(rng_draw(p->key, number, 0).a),
                          rng_unit_open(rng_draw(p->key, number + 1, 0).a)};
        detmath_log_pair(unit);
        for (int i = 0; i < 2 && count < max; i++) {
            uint64_t quanta = (uint64_t)(-unit[i] * per_arrival + 0.5);
            int64_t time_ps = intensity_advance(&p->intensity, quanta, p->horizon_ps);
            if (time_ps == TIME_NEVER) {
                p->number = number;
                return count;
            }
            out[count++].arrival_ps = time_ps;
            number++;
        }
    }
    p->number = number;
    return count;
}

static double poisson_rate(const void *self, int64_t time_ps)
{
    return arrivals_rate_at(&((const struct poisson *)self)->rate, time_ps);
}

static double poisson_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    return arrivals_rate_expected(&((const struct poisson *)self)->rate, from_ps, to_ps);
}

static const struct arrivals_type poisson_type = {
    .open = poisson_open,
    .close = poisson_close,
    .start = poisson_start,
    .fill = poisson_fill,
    .rate = poisson_rate,
    .expected = poisson_expected,
};

const struct variant arrivals_poisson_variant = {
    .name = "poisson",
    .doc = "Independent arrivals: a Poisson process with the curve's rate.",
    .fields = arrivals_rate_fields,
    .size = sizeof(struct arrivals_rate_config),
    .ops = &poisson_type,
};
