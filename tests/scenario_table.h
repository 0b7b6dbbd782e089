/* A made-up scenario that uses every kind of field, shared by the tests of field tables, of
 * scenario files and of their fuzz target. */
#ifndef FLEETSIM_TESTS_SCENARIO_TABLE_H
#define FLEETSIM_TESTS_SCENARIO_TABLE_H

#include <stddef.h>

#include "sim/base/field.h"

struct table_common {
    int64_t interval_ps;
    int64_t replicas_min, replicas_max;
};
struct table_fixed {
    int64_t replicas;
};
struct table_target {
    struct table_common common;
    int metric;
    double target;
    double tolerance;
};
struct table_signals {
    int64_t delay_ps;
    bool count_own;
};
struct table_weighted {
    struct table_signals signals;
    struct field_list weights; /* double */
};
struct table_engine {
    int64_t block_size;
    int64_t blocks;
    double memory_share;
    bool prefix_caching;
    const char *note;
};
struct table_pool {
    const char *name;
    int64_t max_queue;
    struct table_engine engine;
    struct variant_value autoscaler;
    double price_per_hour;
    double price_low;
    struct field_list hourly; /* double, 24 or none */
};
struct table_root {
    const char *name;
    const char *description;
    int64_t seed;
    int64_t start_s;
    int64_t horizon_ps;
    bool drain;
    int role;
    int tier;
    const char *file;
    struct variant_value router;
    struct variant_value lengths;
    struct field_list pools;  /* struct table_pool */
    struct field_list tags;   /* const char * */
    struct field_list stages; /* struct variant_value */
    struct field_list matrix; /* struct field_list of int64_t */
    struct table_engine fallback_engine;
    double rate;
};

static const char *const table_metrics[] = {"concurrency", "utilization", "queue", NULL};
static const char *const table_metrics_later[] = {"slo", NULL};
static const char *const table_roles[] = {"unified", "prefill", "decode", NULL};

static const struct field table_common_fields[] = {
    {.name = "interval",
     .kind = FIELD_TIME,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct table_common, interval_ps),
     .fallback = "15 s",
     .max = 3600,
     .doc = "time between decisions"},
    {.name = "min_replicas",
     .kind = FIELD_INT,
     .offset = offsetof(struct table_common, replicas_min),
     .fallback = "1",
     .min = 0,
     .max = 10000,
     .doc = "never fewer"},
    {.name = "max_replicas",
     .kind = FIELD_INT,
     .flags = FIELD_UNLIMITED,
     .offset = offsetof(struct table_common, replicas_max),
     .fallback = "unlimited",
     .min = 1,
     .max = 10000,
     .doc = "never more"},
    {0}};
static const struct field table_fixed_fields[] = {{.name = "replicas",
                                                   .kind = FIELD_INT,
                                                   .flags = FIELD_REQUIRED,
                                                   .offset = offsetof(struct table_fixed, replicas),
                                                   .min = 1,
                                                   .max = 100000,
                                                   .doc = "how many"},
                                                  {0}};
static const struct field table_target_fields[] = {
    {.name = "common",
     .kind = FIELD_INLINE,
     .offset = offsetof(struct table_target, common),
     .fields = table_common_fields},
    {.name = "metric",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct table_target, metric),
     .fallback = "utilization",
     .choices = table_metrics,
     .later = table_metrics_later,
     .doc = "what is kept at the target"},
    {.name = "target",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct table_target, target),
     .max = 1000,
     .doc = "where the metric is kept"},
    {.name = "tolerance",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct table_target, tolerance),
     .fallback = "10 %",
     .max = 1,
     .doc = "changes smaller than this are not acted on"},
    {0}};
static const struct variant table_fixed_variant = {"static", "A fixed number.", table_fixed_fields,
                                                   sizeof(struct table_fixed), NULL};
static const struct variant table_target_variant = {"target", "Keeps a metric at a target.",
                                                    table_target_fields,
                                                    sizeof(struct table_target), NULL};
static const struct variant table_none_variant = {"none", "Never scales.", NULL, 0, NULL};
static const struct variant *const table_autoscalers[] = {&table_none_variant, &table_fixed_variant,
                                                          &table_target_variant, NULL};
static const char *const table_autoscalers_later[] = {"predictive", NULL};

static const struct field table_signals_fields[] = {
    {.name = "delay",
     .kind = FIELD_TIME,
     .offset = offsetof(struct table_signals, delay_ps),
     .fallback = "0 s",
     .max = 60,
     .doc = "age of what the router sees"},
    {.name = "count_own_dispatches",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct table_signals, count_own),
     .fallback = "true",
     .doc = "own dispatches count at once"},
    {0}};
static const struct field table_weight_item = {
    .kind = FIELD_REAL, .max = 10, .doc = "weight of one scorer"};
static const struct field table_weighted_fields[] = {
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct table_weighted, signals),
     .fields = table_signals_fields,
     .doc = "what the router knows, and when"},
    {.name = "weights",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_weighted, weights),
     .item = &table_weight_item,
     .item_size = sizeof(double),
     .max = 4,
     .doc = "one weight per scorer"},
    {0}};
static const struct variant table_robin_variant = {"round_robin", "One after another.", NULL, 0,
                                                   NULL};
static const struct variant table_weighted_variant = {"weighted", "Scored.", table_weighted_fields,
                                                      sizeof(struct table_weighted), NULL};
static const struct variant *const table_routers[] = {&table_robin_variant, &table_weighted_variant,
                                                      NULL};
static const char *const table_routers_later[] = {"prefix_aware", NULL};

static const struct field table_engine_fields[] = {
    {.name = "block_size",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .offset = offsetof(struct table_engine, block_size),
     .fallback = "16",
     .min = 1,
     .max = 1024,
     .doc = "KV tokens per block"},
    {.name = "num_gpu_blocks",
     .kind = FIELD_INT,
     .flags = FIELD_UNLIMITED | FIELD_OPTIONAL,
     .offset = offsetof(struct table_engine, blocks),
     .min = 1,
     .doc = "KV blocks of a replica"},
    {.name = "memory_share",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct table_engine, memory_share),
     .fallback = "0.9",
     .max = 1,
     .doc = "share of the memory"},
    {.name = "prefix_caching",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct table_engine, prefix_caching),
     .fallback = "false",
     .doc = "reuse the KV of equal prefixes"},
    {.name = "note",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_engine, note),
     .doc = "for the reader"},
    {0}};

static const struct field table_hourly_item = {.kind = FIELD_REAL, .max = 1e9};
static const struct field table_pool_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct table_pool, name),
     .doc = "what outputs call it"},
    {.name = "max_queue",
     .kind = FIELD_INT,
     .flags = FIELD_UNLIMITED,
     .offset = offsetof(struct table_pool, max_queue),
     .fallback = "unlimited",
     .max = 1e12,
     .doc = "waiting requests per replica"},
    {.name = "engine",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct table_pool, engine),
     .fields = table_engine_fields,
     .doc = "the engine of one replica"},
    {.name = "autoscaler",
     .kind = FIELD_VARIANT,
     .offset = offsetof(struct table_pool, autoscaler),
     .fallback = "none",
     .variants = table_autoscalers,
     .tag = "policy",
     .later = table_autoscalers_later,
     .doc = "how many replicas"},
    {.name = "price",
     .kind = FIELD_REAL,
     .unit = UNIT_USD_PER_HOUR,
     .offset = offsetof(struct table_pool, price_per_hour),
     .fallback = "$3/h",
     .max = 1e6,
     .doc = "of one GPU"},
    {.name = "price_low",
     .kind = FIELD_REAL,
     .unit = UNIT_USD_PER_HOUR,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_pool, price_low),
     .max = 1e6,
     .doc = "the low end"},
    {.name = "hourly",
     .kind = FIELD_LIST,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_pool, hourly),
     .item = &table_hourly_item,
     .item_size = sizeof(double),
     .min = 24,
     .max = 24,
     .doc = "one value per hour"},
    {0}};

static const struct field table_pool_item = {.kind = FIELD_STRUCT, .fields = table_pool_fields};
static const struct field table_tag_item = {.kind = FIELD_TEXT};
static const struct field table_stage_item = {
    .kind = FIELD_VARIANT, .variants = table_autoscalers, .tag = "policy"};
static const struct field table_row_item = {.kind = FIELD_INT, .flags = FIELD_UNLIMITED};
static const struct field table_matrix_item = {
    .kind = FIELD_LIST, .item = &table_row_item, .item_size = sizeof(int64_t)};

static const struct field table_root_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct table_root, name),
     .doc = "what outputs are called"},
    {.name = "description",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, description),
     .doc = "for the reader"},
    {.name = "seed",
     .kind = FIELD_INT,
     .offset = offsetof(struct table_root, seed),
     .fallback = "1",
     .max = 9e18,
     .doc = "of all random numbers"},
    {.name = "start",
     .kind = FIELD_STAMP,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, start_s),
     .doc = "when hour 0 begins"},
    {.name = "horizon",
     .kind = FIELD_TIME,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct table_root, horizon_ps),
     .fallback = "24 h",
     .max = 8640000,
     .doc = "arrivals stop here"},
    {.name = "drain",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct table_root, drain),
     .fallback = "true",
     .doc = "finish what is in flight"},
    {.name = "role",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct table_root, role),
     .fallback = "unified",
     .choices = table_roles,
     .doc = "what the replicas do"},
    {.name = "tier",
     .kind = FIELD_CHOICE,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, tier),
     .choices = table_roles,
     .doc = "a choice that may be left out"},
    {.name = "file",
     .kind = FIELD_PATH,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, file),
     .doc = "a trace"},
    {.name = "router",
     .kind = FIELD_VARIANT,
     .offset = offsetof(struct table_root, router),
     .fallback = "round_robin",
     .variants = table_routers,
     .tag = "policy",
     .later = table_routers_later,
     .doc = "which replica takes a request"},
    {.name = "lengths",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, lengths),
     .variants = table_autoscalers,
     .tag = "dist",
     .doc = "a variant that may be left out"},
    {.name = "pools",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_root, pools),
     .item = &table_pool_item,
     .item_size = sizeof(struct table_pool),
     .max = 100,
     .doc = "groups of replicas"},
    {.name = "tags",
     .kind = FIELD_LIST,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct table_root, tags),
     .item = &table_tag_item,
     .item_size = sizeof(const char *),
     .doc = "words"},
    {.name = "stages",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_root, stages),
     .item = &table_stage_item,
     .item_size = sizeof(struct variant_value),
     .doc = "a list of variants"},
    {.name = "matrix",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_root, matrix),
     .item = &table_matrix_item,
     .item_size = sizeof(struct field_list),
     .doc = "a list of lists"},
    {.name = "fallback_engine",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct table_root, fallback_engine),
     .fields = table_engine_fields,
     .doc = "an engine of its own"},
    {.name = "rate",
     .kind = FIELD_REAL,
     .unit = UNIT_RATE,
     .offset = offsetof(struct table_root, rate),
     .fallback = "10 /s",
     .max = 1e9,
     .doc = "arrivals"},
    {0}};

#endif
