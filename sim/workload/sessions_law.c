#include "sim/workload/sessions_law.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"

enum { TURNS_STATED_MAX = 10000, TURNS_MEAN_MAX = 1000 };
static const double THINK_MAX_S = 8640000;

/* ---- turns: constant ---- */

struct turns_constant_config {
    int64_t value;
};

static const struct field turns_constant_fields[] = {
    {.name = "value",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct turns_constant_config, value),
     .min = 1,
     .max = TURNS_STATED_MAX,
     .doc = "Turns of every conversation."},
    {0}};

static bool turns_constant_init(struct sessions_law_turns *law, const void *config,
                                const struct site *site)
{
    (void)site;
    law->min = law->max = (uint32_t)((const struct turns_constant_config *)config)->value;
    return true;
}

/* ---- turns: uniform, and constant as its narrowest case ---- */

struct turns_uniform_config {
    int64_t min, max;
};

static const struct field turns_uniform_fields[] = {
    {.name = "min",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct turns_uniform_config, min),
     .min = 1,
     .max = TURNS_STATED_MAX,
     .doc = "Fewest."},
    {.name = "max",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct turns_uniform_config, max),
     .min = 1,
     .max = TURNS_STATED_MAX,
     .doc = "Most."},
    {0}};

static bool turns_uniform_init(struct sessions_law_turns *law, const void *config,
                               const struct site *site)
{
    const struct turns_uniform_config *c = config;
    law->min = (uint32_t)c->min;
    law->max = (uint32_t)c->max;
    if (law->min > law->max) {
        site_error(site, "sessions.turns", "min is above max");
        return false;
    }
    return true;
}

static uint32_t between(uint32_t min, uint32_t max, uint64_t bits)
{
    return min + (uint32_t)((unsigned __int128)((uint64_t)max - min + 1) * bits >> 64);
}

static uint32_t turns_uniform_draw(const struct sessions_law_turns *law, uint64_t bits)
{
    return between(law->min, law->max, bits);
}

static double turns_uniform_over(const struct sessions_law_turns *law, uint32_t i)
{
    if (i < law->min)
        return 1;
    return i < law->max ? (double)(law->max - i) / ((double)law->max - law->min + 1) : 0;
}

static uint32_t turns_uniform_draw_over(const struct sessions_law_turns *law, uint32_t i,
                                        uint64_t bits)
{
    return between(law->min > i ? law->min : i + 1, law->max, bits);
}

/* E[n²] = variance + mean², the variance of w values in a row being (w² − 1) / 12. */
static void turns_uniform_means(struct sessions_law_turns *law)
{
    double width = (double)law->max - law->min + 1;
    law->mean = ((double)law->min + law->max) / 2;
    double square = (width * width - 1) / 12 + law->mean * law->mean;
    law->mean_pairs = (square - law->mean) / 2;
}

static const struct sessions_law_turns_type turns_constant_type = {
    .init = turns_constant_init,
    .draw = turns_uniform_draw,
    .over = turns_uniform_over,
    .draw_over = turns_uniform_draw_over,
};
static const struct sessions_law_turns_type turns_uniform_type = {
    .init = turns_uniform_init,
    .draw = turns_uniform_draw,
    .over = turns_uniform_over,
    .draw_over = turns_uniform_draw_over,
};

/* ---- turns: geometric, ⌈scale · E⌉ with E a unit exponential ---- */

struct turns_geometric_config {
    double mean;
};

static const struct field turns_geometric_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct turns_geometric_config, mean),
     .min = 1,
     .max = TURNS_MEAN_MAX,
     .doc = "Mean; after each turn the conversation is over with probability 1/mean."},
    {0}};

/* The longest one is beyond e^−65 of all at the highest mean. */
static bool turns_geometric_init(struct sessions_law_turns *law, const void *config,
                                 const struct site *site)
{
    (void)site;
    law->mean = ((const struct turns_geometric_config *)config)->mean;
    law->mean_pairs = law->mean * (law->mean - 1);
    law->scale = law->mean > 1 ? -1 / detmath_log(1 - 1 / law->mean) : 0;
    law->min = 1;
    law->max = law->mean > 1 ? SESSIONS_LAW_TURNS_MAX : 1;
    return true;
}

static uint32_t turns_geometric_draw(const struct sessions_law_turns *law, uint64_t bits)
{
    double turns = ceil(-detmath_log(rng_unit_open(bits)) * law->scale);
    return turns < 1 ? 1 : turns < law->max ? (uint32_t)turns : law->max;
}

static double turns_geometric_over(const struct sessions_law_turns *law, uint32_t i)
{
    if (i == 0)
        return 1;
    return i < law->max ? detmath_exp(-(double)i / law->scale) : 0;
}

/* It has no memory. */
static uint32_t turns_geometric_draw_over(const struct sessions_law_turns *law, uint32_t i,
                                          uint64_t bits)
{
    uint32_t turns = i + turns_geometric_draw(law, bits);
    return turns < law->max ? turns : law->max;
}

static const struct sessions_law_turns_type turns_geometric_type = {
    .init = turns_geometric_init,
    .draw = turns_geometric_draw,
    .over = turns_geometric_over,
    .draw_over = turns_geometric_draw_over,
};

static const struct variant turns_constant_variant = {
    .name = "constant",
    .doc = "The same number every time.",
    .fields = turns_constant_fields,
    .size = sizeof(struct turns_constant_config),
    .ops = &turns_constant_type,
};
static const struct variant turns_uniform_variant = {
    .name = "uniform",
    .doc = "Every whole number from min to max alike.",
    .fields = turns_uniform_fields,
    .size = sizeof(struct turns_uniform_config),
    .ops = &turns_uniform_type,
};
static const struct variant turns_geometric_variant = {
    .name = "geometric",
    .doc = "After every turn the same chance that it was the last.",
    .fields = turns_geometric_fields,
    .size = sizeof(struct turns_geometric_config),
    .ops = &turns_geometric_type,
};

const struct variant *const sessions_law_turns_variants[] = {
    &turns_constant_variant, &turns_uniform_variant, &turns_geometric_variant, NULL};

bool sessions_law_turns_init(struct sessions_law_turns *law, const struct variant_value *value,
                             const struct site *site)
{
    check(value->type);
    *law = (struct sessions_law_turns){.type = value->type->ops};
    if (!law->type->init(law, value->config, site))
        return false;
    if (law->type != &turns_geometric_type)
        turns_uniform_means(law);
    return true;
}

/* ---- think times: constant ---- */

struct think_constant_config {
    int64_t value_ps;
};

static const struct field think_constant_fields[] = {
    {.name = "value",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct think_constant_config, value_ps),
     .min = 0,
     .max = THINK_MAX_S,
     .doc = "The same time every time."},
    {0}};

static bool think_constant_init(struct sessions_law_think *law, const void *config,
                                const struct site *site)
{
    (void)site;
    law->a = law->b = (double)((const struct think_constant_config *)config)->value_ps;
    law->mean_s = law->a / PS_PER_SECOND;
    return true;
}

static double think_uniform_draw(const struct sessions_law_think *law, uint64_t bits)
{
    return law->a + rng_unit(bits) * (law->b - law->a);
}

/* The think time that is met has a density ∝ t on [a, b]. */
static double think_uniform_rest(const struct sessions_law_think *law, struct rng_pair bits)
{
    double low = law->a * law->a, high = law->b * law->b;
    return sqrt(low + rng_unit(bits.a) * (high - low)) * rng_unit(bits.b);
}

static const struct sessions_law_think_type think_constant_type = {
    .init = think_constant_init, .draw_ps = think_uniform_draw, .rest_ps = think_uniform_rest};

/* ---- think times: uniform ---- */

struct think_uniform_config {
    int64_t min_ps, max_ps;
};

static const struct field think_uniform_fields[] = {
    {.name = "min",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct think_uniform_config, min_ps),
     .min = 0,
     .max = THINK_MAX_S,
     .doc = "Shortest."},
    {.name = "max",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct think_uniform_config, max_ps),
     .min = 0,
     .max = THINK_MAX_S,
     .doc = "Longest."},
    {0}};

static bool think_uniform_init(struct sessions_law_think *law, const void *config,
                               const struct site *site)
{
    const struct think_uniform_config *c = config;
    if (c->min_ps > c->max_ps) {
        site_error(site, "sessions.think_time", "min is above max");
        return false;
    }
    law->a = (double)c->min_ps;
    law->b = (double)c->max_ps;
    law->mean_s = (law->a + law->b) / 2 / PS_PER_SECOND;
    return true;
}

static const struct sessions_law_think_type think_uniform_type = {
    .init = think_uniform_init, .draw_ps = think_uniform_draw, .rest_ps = think_uniform_rest};

/* ---- think times: exponential ---- */

struct think_exponential_config {
    int64_t mean_ps;
};

static const struct field think_exponential_fields[] = {
    {.name = "mean",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct think_exponential_config, mean_ps),
     .min = 0,
     .max = THINK_MAX_S,
     .doc = "Mean."},
    {0}};

static bool think_exponential_init(struct sessions_law_think *law, const void *config,
                                   const struct site *site)
{
    (void)site;
    law->a = (double)((const struct think_exponential_config *)config)->mean_ps;
    law->mean_s = law->a / PS_PER_SECOND;
    return true;
}

static double think_exponential_draw(const struct sessions_law_think *law, uint64_t bits)
{
    return -detmath_log(rng_unit_open(bits)) * law->a;
}

/* It has no memory. */
static double think_exponential_rest(const struct sessions_law_think *law, struct rng_pair bits)
{
    return think_exponential_draw(law, bits.a);
}

static const struct sessions_law_think_type think_exponential_type = {
    .init = think_exponential_init,
    .draw_ps = think_exponential_draw,
    .rest_ps = think_exponential_rest};

/* ---- think times: log-normal ---- */

struct think_lognormal_config {
    int64_t mean_ps;
    double cv;
};

static const struct field think_lognormal_fields[] = {
    {.name = "mean",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct think_lognormal_config, mean_ps),
     .min = 0,
     .max = THINK_MAX_S,
     .doc = "Mean."},
    {.name = "cv",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct think_lognormal_config, cv),
     .min = 0.001,
     .max = 100,
     .doc = "Standard deviation over mean."},
    {0}};

static bool think_lognormal_init(struct sessions_law_think *law, const void *config,
                                 const struct site *site)
{
    (void)site;
    const struct think_lognormal_config *c = config;
    double variance = detmath_log(1 + c->cv * c->cv);
    law->b = sqrt(variance);
    law->a = detmath_log((double)c->mean_ps) - variance / 2;
    law->mean_s = (double)c->mean_ps / PS_PER_SECOND;
    return true;
}

static double think_lognormal_draw(const struct sessions_law_think *law, uint64_t bits)
{
    return detmath_exp(law->a + law->b * detmath_normal_quantile(rng_unit_open(bits)));
}

/* Weighted by its length a log-normal is one again, with its median e^σ² times as long. */
static double think_lognormal_rest(const struct sessions_law_think *law, struct rng_pair bits)
{
    double z = detmath_normal_quantile(rng_unit_open(bits.a));
    return detmath_exp(law->a + law->b * (law->b + z)) * rng_unit(bits.b);
}

static const struct sessions_law_think_type think_lognormal_type = {
    .init = think_lognormal_init, .draw_ps = think_lognormal_draw, .rest_ps = think_lognormal_rest};

static const struct variant think_constant_variant = {
    .name = "constant",
    .doc = "The same time every time.",
    .fields = think_constant_fields,
    .size = sizeof(struct think_constant_config),
    .ops = &think_constant_type,
};
static const struct variant think_uniform_variant = {
    .name = "uniform",
    .doc = "Evenly between min and max.",
    .fields = think_uniform_fields,
    .size = sizeof(struct think_uniform_config),
    .ops = &think_uniform_type,
};
static const struct variant think_exponential_variant = {
    .name = "exponential",
    .doc = "Memoryless.",
    .fields = think_exponential_fields,
    .size = sizeof(struct think_exponential_config),
    .ops = &think_exponential_type,
};
static const struct variant think_lognormal_variant = {
    .name = "lognormal",
    .doc = "Log-normal: now and then a long pause.",
    .fields = think_lognormal_fields,
    .size = sizeof(struct think_lognormal_config),
    .ops = &think_lognormal_type,
};

const struct variant *const sessions_law_think_variants[] = {
    &think_constant_variant, &think_uniform_variant, &think_exponential_variant,
    &think_lognormal_variant, NULL};

bool sessions_law_think_init(struct sessions_law_think *law, const struct variant_value *value,
                             const struct site *site)
{
    check(value->type);
    *law = (struct sessions_law_think){.type = value->type->ops};
    return law->type->init(law, value->config, site);
}

static int64_t whole_ps(double ps)
{
    if (!(ps < (double)HORIZON_MAX_PS))
        return HORIZON_MAX_PS;
    return ps < 1 ? 1 : (int64_t)ps;
}

int64_t sessions_law_think_draw(const struct sessions_law_think *law, uint64_t bits)
{
    return whole_ps(law->type->draw_ps(law, bits));
}

int64_t sessions_law_think_rest(const struct sessions_law_think *law, struct rng_pair bits)
{
    return whole_ps(law->type->rest_ps(law, bits));
}
