#include "sim/run/capacity_arrivals.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/workload/arrivals.h"

struct poisson {
    const struct capacity_arrivals_config *config; /* borrowed */
    uint64_t key, number;                          /* of the next arrival */
    double gap_ps;                                 /* mean */
    int64_t time_ps, horizon_ps;
};

static void *arrivals_open(const void *config, const struct arrivals_setup *setup)
{
    struct poisson *p = memory_zero(1, sizeof *p);
    p->config = config;
    p->gap_ps = (double)PS_PER_SECOND / p->config->rate;
    p->key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                     (uint32_t)setup->site.class_index);
    return p;
}

static bool arrivals_start(void *self, int64_t start_unix_s, int64_t horizon_ps,
                           struct errors *errors)
{
    struct poisson *p = self;
    (void)start_unix_s, (void)errors;
    p->horizon_ps = horizon_ps;
    return true;
}

static size_t arrivals_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    struct poisson *p = self;
    (void)errors;
    for (size_t count = 0; count < max; count++) {
        double gap_ps = -detmath_log(rng_unit_open(rng_draw(p->key, p->number, 0).a)) * p->gap_ps;
        if (gap_ps >= (double)(p->horizon_ps - p->time_ps)) {
            p->time_ps = p->horizon_ps;
            return count;
        }
        p->time_ps += (int64_t)gap_ps;
        out[count].arrival_ps = p->time_ps;
        if (p->config->rows != NULL) {
            const struct capacity_row *row = &p->config->rows[p->number % p->config->row_count];
            out[count].prompt_tokens = row->prompt_tokens;
            out[count].output_tokens = row->output_tokens;
        }
        p->number++;
    }
    return max;
}

static double arrivals_rate(const void *self, int64_t time_ps)
{
    (void)time_ps;
    return ((const struct poisson *)self)->config->rate;
}

static double arrivals_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    return arrivals_rate(self, 0) * (double)(to_ps - from_ps) / (double)PS_PER_SECOND;
}

static void arrivals_tokens(const void *self, double *mean_prompt, double *mean_output,
                            uint64_t *skipped)
{
    const struct capacity_arrivals_config *config = ((const struct poisson *)self)->config;
    *mean_prompt = *mean_output = 0;
    *skipped = 0;
    for (size_t i = 0; i < config->row_count; i++) {
        *mean_prompt += config->rows[i].prompt_tokens / (double)config->row_count;
        *mean_output += config->rows[i].output_tokens / (double)config->row_count;
    }
}

#define ARRIVALS_OPS                                                                               \
    .open = arrivals_open, .close = free, .start = arrivals_start, .fill = arrivals_fill,          \
    .rate = arrivals_rate, .expected = arrivals_expected

static const struct arrivals_type drawn_type = {ARRIVALS_OPS};
static const struct arrivals_type rows_type = {ARRIVALS_OPS, .tokens = arrivals_tokens};
static const struct field no_fields[] = {{0}};

const struct variant capacity_arrivals_drawn = {
    .name = "capacity",
    .doc = "Poisson arrivals of a trial.",
    .fields = no_fields,
    .size = sizeof(struct capacity_arrivals_config),
    .ops = &drawn_type,
};
const struct variant capacity_arrivals_rows = {
    .name = "capacity_rows",
    .doc = "Poisson arrivals of a trial, with a trace's lengths.",
    .fields = no_fields,
    .size = sizeof(struct capacity_arrivals_config),
    .ops = &rows_type,
};
