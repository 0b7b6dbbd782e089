/* What compute and competing APIs cost, each figure with its date and source. Filled from
 * models/catalog/price/NAME.yaml through price_fields. */
#ifndef FLEETSIM_MODELS_PRICE_H
#define FLEETSIM_MODELS_PRICE_H

#include <stdbool.h>

#include "sim/base/errors.h"
#include "sim/base/field.h"

enum price_kind { PRICE_ON_DEMAND, PRICE_SPOT, PRICE_RESERVED, PRICE_ASSUMED, PRICE_KIND_COUNT };
extern const char *const price_kind_names[PRICE_KIND_COUNT + 1];

struct price_offer {
    const char *provider;
    int kind; /* enum price_kind */
    double usd_per_gpu_hour_low;
    double usd_per_gpu_hour_high;
    const char *date;
    const char *source;
};

struct price_api {
    const char *provider;
    double usd_per_mtok_input;
    double usd_per_mtok_cached; /* NaN: no price of its own */
    double usd_per_mtok_output;
    const char *date;
    const char *source;
};

struct price_spec {
    const char *name;
    const char *gpu;          /* catalogue name; NULL when it is about an API only */
    struct field_list offers; /* struct price_offer */
    const char *model;        /* catalogue name; NULL when it is about a GPU only */
    struct field_list api;    /* struct price_api */
};
extern const struct field price_fields[];

bool price_check(const struct price_spec *price, struct errors *errors,
                 const struct source_pos *where);

/* Dollars per million tokens at `tokens_per_s` tokens/s per GPU (issue of the seeds' Problem 24:
 * price / (tok/s · 3600) · 1e6). */
double price_per_mtok(double usd_per_gpu_hour, double tokens_per_s);

#endif
