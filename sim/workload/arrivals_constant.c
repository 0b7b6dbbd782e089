/* constant: arrivals evenly spaced in expected count. Arrival number k comes at Λ⁻¹(k): the first
 * one at the class's start, and under a flat curve one every 1/rate seconds, each stamp rounded
 * by itself from an exact fraction. */
#include "sim/workload/arrivals.h"

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/workload/arrivals_rate.h"

#include <stdlib.h>

/* k · step, kept as whole + part/unit ps with 0 ≤ part < unit: nothing is ever rounded in it. */
struct ticker {
    uint128 step_ps, step_part; /* step_part < unit */
    uint128 unit;
    uint128 whole_ps, part;
};

struct constant {
    struct arrivals_rate rate;
    struct intensity intensity; /* owned; not flat */
    struct ticker ticker;       /* flat */
    uint64_t quanta;            /* to the next arrival: none before the first */
    int64_t horizon_ps;
    bool flat;
};

/* The step is 1e12 · denominator / numerator ps. */
static struct ticker ticker_make(struct rational per_second)
{
    const struct rational second = {(uint128)PS_PER_SECOND, 1};
    struct rational gap = {per_second.denominator, per_second.numerator};
    struct rational step;
    if (!rational_multiply(gap, second, &step))
        step = rational_from_real((double)gap.numerator * (double)PS_PER_SECOND /
                                  (double)gap.denominator);
    struct ticker t = {.unit = step.denominator};
    t.step_ps = step.numerator / step.denominator;
    t.step_part = step.numerator % step.denominator;
    /* Half a ps ahead: cutting off then rounds to nearest. */
    t.part = step.denominator / 2;
    return t;
}

static inline void ticker_step(struct ticker *t)
{
    t->whole_ps += t->step_ps;
    if (t->part >= t->unit - t->step_part) {
        t->part -= t->unit - t->step_part;
        t->whole_ps++;
    } else {
        t->part += t->step_part;
    }
}

static void *constant_open(const void *config, const struct arrivals_setup *setup)
{
    struct constant *c = memory_zero(1, sizeof *c);
    if (!arrivals_rate_init(&c->rate, config, setup)) {
        free(c);
        return NULL;
    }
    c->flat = arrivals_rate_is_flat(&c->rate);
    return c;
}

static void constant_close(void *self)
{
    struct constant *c = self;
    intensity_free(&c->intensity);
    arrivals_rate_free(&c->rate);
    free(c);
}

static bool constant_start(void *self, int64_t start_unix_s, int64_t horizon_ps,
                           struct errors *errors)
{
    struct constant *c = self;
    if (!arrivals_rate_start(&c->rate, start_unix_s, horizon_ps, errors))
        return false;
    c->horizon_ps = horizon_ps < c->rate.to_ps ? horizon_ps : c->rate.to_ps;
    if (c->flat) {
        c->ticker = ticker_make(c->rate.per_second);
        c->ticker.whole_ps = (uint128)c->rate.from_ps;
    } else {
        intensity_init(&c->intensity, &c->rate.curve, c->rate.daily, &c->rate.timeline);
    }
    return true;
}

static size_t constant_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    (void)errors;
    struct constant *c = self;
    size_t count = 0;
    if (c->flat) {
        for (; count < max && c->ticker.whole_ps < (uint128)c->horizon_ps; count++) {
            out[count].arrival_ps = (int64_t)c->ticker.whole_ps;
            ticker_step(&c->ticker);
        }
        return count;
    }
    for (; count < max; count++) {
        int64_t time_ps = intensity_advance(&c->intensity, c->quanta, c->horizon_ps);
        if (time_ps == TIME_NEVER)
            break;
        out[count].arrival_ps = time_ps;
        c->quanta = (uint64_t)c->intensity.per_arrival;
    }
    return count;
}

static double constant_rate(const void *self, int64_t time_ps)
{
    return arrivals_rate_at(&((const struct constant *)self)->rate, time_ps);
}

static double constant_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    return arrivals_rate_expected(&((const struct constant *)self)->rate, from_ps, to_ps);
}

static const struct arrivals_type constant_type = {
    .open = constant_open,
    .close = constant_close,
    .start = constant_start,
    .fill = constant_fill,
    .rate = constant_rate,
    .expected = constant_expected,
};

const struct variant arrivals_constant_variant = {
    .name = "constant",
    .doc =
        "Evenly spaced arrivals, the first at the class's start: every 1/rate under a flat curve.",
    .fields = arrivals_rate_fields,
    .size = sizeof(struct arrivals_rate_config),
    .ops = &constant_type,
};
