#include "sim/fleet/cold_start.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/base/time.h"

static int64_t seconds_ps(double seconds)
{
    return (int64_t)ceil(seconds * (double)PS_PER_SECOND);
}

/* ---- constant -----------------------------------------------------------------------------------
 */

struct constant_config {
    int64_t value_ps;
};

static const struct field constant_fields[] = {
    {.name = "value",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct constant_config, value_ps),
     .max = 86400,
     .doc = "The time; a bare time in place of the mapping says the same"},
    {0},
};

static int64_t constant_quantile(const void *config, double u)
{
    (void)u;
    return ((const struct constant_config *)config)->value_ps;
}

static int64_t constant_mean(const void *config)
{
    return ((const struct constant_config *)config)->value_ps;
}

static const struct cold_start_time constant_time = {.quantile = constant_quantile,
                                                     .mean = constant_mean};
static const struct variant constant_variant = {.name = "constant",
                                                .doc = "The same at every launch",
                                                .fields = constant_fields,
                                                .size = sizeof(struct constant_config),
                                                .ops = &constant_time};

/* ---- lognormal ----------------------------------------------------------------------------------
 */

struct lognormal_config {
    int64_t mean_ps;
    double sigma;
};

static const struct field lognormal_fields[] = {
    {.name = "mean",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct lognormal_config, mean_ps),
     .max = 86400,
     .doc = "The mean time"},
    {.name = "sigma",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct lognormal_config, sigma),
     .min = 0.001,
     .max = 3,
     .doc = "Standard deviation of the logarithm of the time"},
    {0},
};

static int64_t lognormal_quantile(const void *config_, double u)
{
    const struct lognormal_config *config = config_;
    double z = detmath_normal_quantile(u);
    double factor = detmath_exp(config->sigma * z - config->sigma * config->sigma / 2);
    return (int64_t)fmin(ceil((double)config->mean_ps * factor), 1e18);
}

static int64_t lognormal_mean(const void *config)
{
    return ((const struct lognormal_config *)config)->mean_ps;
}

static const struct cold_start_time lognormal_time = {.quantile = lognormal_quantile,
                                                      .mean = lognormal_mean};
static const struct variant lognormal_variant = {.name = "lognormal",
                                                 .doc = "Log-normal, drawn at every launch",
                                                 .fields = lognormal_fields,
                                                 .size = sizeof(struct lognormal_config),
                                                 .ops = &lognormal_time};

/* ---- empirical ----------------------------------------------------------------------------------
 */

struct empirical_config {
    struct field_list values; /* int64_t, ps */
};

static const struct field empirical_item = {.kind = FIELD_TIME, .max = 86400, .doc = "A time"};
static const struct field empirical_fields[] = {
    {.name = "values",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct empirical_config, values),
     .item = &empirical_item,
     .item_size = sizeof(int64_t),
     .min = 1,
     .max = 10000,
     .doc = "Times as measured; each is equally likely"},
    {0},
};

static int64_t empirical_quantile(const void *config_, double u)
{
    const struct empirical_config *config = config_;
    size_t i = (size_t)(u * (double)config->values.count);
    i = i < config->values.count ? i : config->values.count - 1;
    return ((const int64_t *)config->values.items)[i];
}

static int64_t empirical_mean(const void *config_)
{
    const struct empirical_config *config = config_;
    int128 sum = 0;
    for (size_t i = 0; i < config->values.count; i++) {
        sum += ((const int64_t *)config->values.items)[i];
    }
    return (int64_t)(sum / (int128)config->values.count);
}

static const struct cold_start_time empirical_time = {.quantile = empirical_quantile,
                                                      .mean = empirical_mean};
static const struct variant empirical_variant = {.name = "empirical",
                                                 .doc = "One of the times given, at every launch",
                                                 .fields = empirical_fields,
                                                 .size = sizeof(struct empirical_config),
                                                 .ops = &empirical_time};

/* ---- weights over a source's bandwidth ----------------------------------------------------------
 */

struct source_config {
    double bytes; /* NaN: the model's */
    double bandwidth, per_replica;
};

#define SOURCE_FIELDS(fallback_, what)                                                             \
    {.name = "bytes",                                                                              \
     .kind = FIELD_REAL,                                                                           \
     .unit = UNIT_BYTES,                                                                           \
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,                                                     \
     .offset = offsetof(struct source_config, bytes),                                              \
     .max = 1e15,                                                                                  \
     .doc = "Bytes to load; by default the weights of the pool's model"},                          \
    {                                                                                              \
        .name = "bandwidth", .kind = FIELD_REAL, .unit = UNIT_BYTES_PER_S,                         \
        .flags = FIELD_MIN_OPEN, .offset = offsetof(struct source_config, bandwidth),              \
        .fallback = fallback_, .max = 1e15, .doc = what                                            \
    }

static const struct field local_nvme_fields[] = {
    SOURCE_FIELDS("12.6 GB/s", "Of the replica's own disks"), {0}};
static const struct field page_cache_fields[] = {
    SOURCE_FIELDS("52 GB/s", "From the memory of the replica's own host"), {0}};
static const struct field peer_fields[] = {
    SOURCE_FIELDS("80 GB/s", "From the GPUs of a replica that has them; a chain or tree of peers "
                             "makes it almost independent of how many load"),
    {0}};
static const struct field object_store_fields[] = {
    SOURCE_FIELDS("100 GB/s", "Of the store, divided among the pool's replicas that load at once"),
    {.name = "per_replica",
     .kind = FIELD_REAL,
     .unit = UNIT_BYTES_PER_S,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct source_config, per_replica),
     .fallback = "4.5 GB/s",
     .max = 1e15,
     .doc = "What one replica can draw from it, alone"},
    {0}};

static double *source_bytes(void *config)
{
    return &((struct source_config *)config)->bytes;
}

static int64_t local_mean(const void *config_)
{
    const struct source_config *config = config_;
    return seconds_ps(config->bytes / config->bandwidth);
}

static int64_t local_quantile(const void *config, double u)
{
    (void)u;
    return local_mean(config);
}

static int64_t store_mean(const void *config_)
{
    const struct source_config *config = config_;
    return seconds_ps(config->bytes / fmin(config->bandwidth, config->per_replica));
}

static int64_t store_quantile(const void *config, double u)
{
    (void)u;
    return store_mean(config);
}

static void store_shared(const void *config_, double *bandwidth, double *own_limit, double *bytes)
{
    const struct source_config *config = config_;
    *bandwidth = config->bandwidth;
    *own_limit = config->per_replica;
    *bytes = config->bytes;
}

static const struct cold_start_time local_time = {
    .quantile = local_quantile, .mean = local_mean, .bytes = source_bytes};
static const struct cold_start_time store_time = {
    .quantile = store_quantile, .mean = store_mean, .shared = store_shared, .bytes = source_bytes};

#define SOURCE_VARIANT(name_, doc_, ops_)                                                          \
    static const struct variant name_##_variant = {.name = #name_,                                 \
                                                   .doc = doc_,                                    \
                                                   .fields = name_##_fields,                       \
                                                   .size = sizeof(struct source_config),           \
                                                   .ops = &ops_}
SOURCE_VARIANT(object_store, "From a store whose bandwidth all who load at once divide",
               store_time);
SOURCE_VARIANT(local_nvme, "From the replica's own disks", local_time);
SOURCE_VARIANT(page_cache, "From the memory of the replica's own host", local_time);
SOURCE_VARIANT(peer, "From the GPUs of another replica", local_time);

/* ---- the mapping --------------------------------------------------------------------------------
 */

static const struct variant *const time_variants[] = {&constant_variant, &lognormal_variant,
                                                      &empirical_variant, NULL};
static const struct variant *const weights_variants[] = {
    &constant_variant,   &lognormal_variant,  &empirical_variant, &object_store_variant,
    &local_nvme_variant, &page_cache_variant, &peer_variant,      NULL};

#define PHASE(name_, fallback_, doc_)                                                              \
    {                                                                                              \
        .name = #name_, .kind = FIELD_VARIANT,                                                     \
        .offset = offsetof(struct cold_start_config, name_), .fallback = fallback_,                \
        .variants = time_variants, .tag = "dist", .bare = "constant", .doc = doc_                  \
    }

const struct field cold_start_fields[] = {
    {.name = "preset",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct cold_start_config, preset),
     .doc = "A measured cold start of the catalogue (`list cold-starts`), or a file like those: "
            "what it states holds unless it is stated here"},
    PHASE(provision, "60 s", "Until a node with free GPUs is there"),
    PHASE(image_pull, "60 s", "Until the container image is on it"),
    {.name = "weights",
     .kind = FIELD_VARIANT,
     .offset = offsetof(struct cold_start_config, weights),
     .fallback = "60 s",
     .variants = weights_variants,
     .tag = "source",
     .bare = "constant",
     .doc = "Loading the weights: a time, or where they come from"},
    PHASE(engine_init, "60 s", "Starting the engine: memory profiling, compilation, graph capture"),
    {.name = "engine_init_cached",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct cold_start_config, engine_init_cached),
     .variants = time_variants,
     .tag = "dist",
     .bare = "constant",
     .doc = "The same once a replica of the pool has been ready before and what it compiled is "
            "kept; by default no shorter"},
    PHASE(warm_up, "0 s", "Warm-up requests before it is put into service"),
    {.name = "shortage",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct cold_start_config, shortage),
     .fallback = "0 %",
     .max = 1,
     .doc = "Share of launches that meet a shortage of GPUs and wait shortage_wait more"},
    PHASE(shortage_wait, "15 min", "How much longer provisioning takes in a shortage"),
    {.name = "failure",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct cold_start_config, failure),
     .fallback = "0 %",
     .max = 0.99,
     .doc = "Share of launches that end with provisioning, for want of GPUs"},
    {.name = "slow_start_time",
     .kind = FIELD_TIME,
     .offset = offsetof(struct cold_start_config, slow_start_ps),
     .fallback = "0 s",
     .max = 86400,
     .doc = "For how long after it is ready a new replica's iterations take slow_start_factor "
            "times as long; those ready from the start are warm"},
    {.name = "slow_start_factor",
     .kind = FIELD_INT,
     .offset = offsetof(struct cold_start_config, slow_start_factor),
     .fallback = "1",
     .min = 1,
     .max = 1000,
     .doc = "How many times as long its first iterations take (measured: 20 to 25 for 30 to 60 s)"},
    {0},
};

/* ---- launches -----------------------------------------------------------------------------------
 */

/* Which draw of a launch is whose. */
enum {
    DRAW_PROVISION,
    DRAW_IMAGE,
    DRAW_WEIGHTS,
    DRAW_INIT,
    DRAW_WARM_UP,
    DRAW_SHORTAGE,
    DRAW_WAIT,
    DRAW_FAILURE
};

struct launch {
    uint64_t key, number;
};

static double chance(const struct launch *launch, uint64_t draw)
{
    return rng_unit_open(rng_draw(launch->key, launch->number, draw).a);
}

static int64_t lasts(const struct variant_value *phase, const struct launch *launch, uint64_t draw)
{
    if (phase->type == NULL) {
        return 0;
    }
    const struct cold_start_time *time = phase->type->ops;
    return time->quantile(phase->config, chance(launch, draw));
}

static int64_t mean(const struct variant_value *phase)
{
    return phase->type == NULL
               ? 0
               : ((const struct cold_start_time *)phase->type->ops)->mean(phase->config);
}

static const struct variant_value *init_phase(const struct cold_start_config *config, bool cached)
{
    bool shorter = cached && config->engine_init_cached.type != NULL;
    return shorter ? &config->engine_init_cached : &config->engine_init;
}

void cold_start_draw(const struct cold_start_config *config, uint64_t key, uint64_t number,
                     bool cached, struct cold_start_course *course)
{
    struct launch launch = {key, number};
    double bandwidth, limit, bytes;
    course->provisioning_ps = time_add(lasts(&config->provision, &launch, DRAW_PROVISION),
                                       lasts(&config->image_pull, &launch, DRAW_IMAGE));
    if (chance(&launch, DRAW_SHORTAGE) < config->shortage) {
        course->provisioning_ps =
            time_add(course->provisioning_ps, lasts(&config->shortage_wait, &launch, DRAW_WAIT));
    }
    course->fails = chance(&launch, DRAW_FAILURE) < config->failure;
    course->weights_ps = cold_start_store(config, &bandwidth, &limit, &bytes)
                             ? 0
                             : lasts(&config->weights, &launch, DRAW_WEIGHTS);
    course->loading_ps = time_add(lasts(init_phase(config, cached), &launch, DRAW_INIT),
                                  lasts(&config->warm_up, &launch, DRAW_WARM_UP));
}

int64_t cold_start_expected(const struct cold_start_config *config)
{
    int64_t sum = time_add(mean(&config->provision), mean(&config->image_pull));
    sum = time_add(sum, mean(&config->weights));
    sum = time_add(sum, mean(init_phase(config, true)));
    return time_add(sum, mean(&config->warm_up));
}

bool cold_start_store(const struct cold_start_config *config, double *bandwidth, double *own_limit,
                      double *bytes)
{
    const struct variant_value *weights = &config->weights;
    const struct cold_start_time *time = weights->type != NULL ? weights->type->ops : NULL;
    if (time == NULL || time->shared == NULL) {
        return false;
    }
    time->shared(weights->config, bandwidth, own_limit, bytes);
    return true;
}

bool cold_start_size(struct cold_start_config *config, double bytes)
{
    const struct cold_start_time *time = config->weights.type->ops;
    if (time->bytes == NULL) {
        return true;
    }
    double *size = time->bytes(config->weights.config);
    *size = isnan(*size) ? bytes : *size;
    return !isnan(*size);
}
