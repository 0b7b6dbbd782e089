#include "models/price.h"

const char *const price_kind_names[PRICE_KIND_COUNT + 1] = {"on_demand", "spot", "reserved",
                                                            "assumed", NULL};

#define TEXT(type, key, member, flag, text)                                                        \
    {                                                                                              \
        .name = key, .kind = FIELD_TEXT, .flags = flag, .offset = offsetof(type, member),          \
        .doc = text                                                                                \
    }
#define MONEY(type, key, member, unit_kind, flag, text)                                            \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .unit = unit_kind, .flags = flag, .min = 0, .max = 1e6,   \
        .offset = offsetof(type, member), .doc = text                                              \
    }

static const struct field offer_fields[] = {
    TEXT(struct price_offer, "provider", provider, FIELD_REQUIRED, "Who sells it"),
    {.name = "kind",
     .kind = FIELD_CHOICE,
     .fallback = "on_demand",
     .choices = price_kind_names,
     .offset = offsetof(struct price_offer, kind),
     .doc = "How it is bought"},
    MONEY(struct price_offer, "low", usd_per_gpu_hour_low, UNIT_USD_PER_HOUR, FIELD_REQUIRED,
          "Lowest price per GPU-hour"),
    MONEY(struct price_offer, "high", usd_per_gpu_hour_high, UNIT_USD_PER_HOUR, FIELD_REQUIRED,
          "Highest price per GPU-hour"),
    TEXT(struct price_offer, "date", date, FIELD_REQUIRED, "When it was stated"),
    TEXT(struct price_offer, "source", source, FIELD_REQUIRED, "Where it was stated"),
    {0}};

static const struct field offer_item = {
    .name = "offer", .kind = FIELD_STRUCT, .fields = offer_fields, .doc = "One offer"};

static const struct field api_fields[] = {
    TEXT(struct price_api, "provider", provider, FIELD_REQUIRED, "Who sells it"),
    MONEY(struct price_api, "input", usd_per_mtok_input, UNIT_USD_PER_MTOK, FIELD_REQUIRED,
          "Price of a million prompt tokens"),
    MONEY(struct price_api, "cached", usd_per_mtok_cached, UNIT_USD_PER_MTOK, FIELD_OPTIONAL,
          "Price of a million prompt tokens found in a cache"),
    MONEY(struct price_api, "output", usd_per_mtok_output, UNIT_USD_PER_MTOK, FIELD_REQUIRED,
          "Price of a million output tokens"),
    TEXT(struct price_api, "date", date, FIELD_REQUIRED, "When it was stated"),
    TEXT(struct price_api, "source", source, FIELD_REQUIRED, "Where it was stated"),
    {0}};

static const struct field api_item = {
    .name = "api", .kind = FIELD_STRUCT, .fields = api_fields, .doc = "One price list"};

const struct field price_fields[] = {
    TEXT(struct price_spec, "name", name, FIELD_REQUIRED, "Name as printed"),
    TEXT(struct price_spec, "gpu", gpu, FIELD_OPTIONAL, "GPU that is rented"),
    {.name = "offers",
     .kind = FIELD_LIST,
     .offset = offsetof(struct price_spec, offers),
     .item = &offer_item,
     .item_size = sizeof(struct price_offer),
     .min = 0,
     .max = 1000,
     .doc = "Prices per GPU-hour"},
    TEXT(struct price_spec, "model", model, FIELD_OPTIONAL, "Model behind the API"),
    {.name = "api",
     .kind = FIELD_LIST,
     .offset = offsetof(struct price_spec, api),
     .item = &api_item,
     .item_size = sizeof(struct price_api),
     .min = 0,
     .max = 1000,
     .doc = "Prices of an API"},
    {0}};

bool price_check(const struct price_spec *price, struct errors *errors,
                 const struct source_pos *where)
{
    size_t before = errors->error_count;
    if (price->offers.count == 0 && price->api.count == 0)
        errors_add(errors, SEVERITY_ERROR, where, "price '%s' has neither offers nor api",
                   price->name);
    if (price->offers.count > 0 && !price->gpu)
        errors_add(errors, SEVERITY_ERROR, where, "price '%s': offers need a gpu", price->name);
    for (size_t i = 0; i < price->offers.count; i++) {
        const struct price_offer *offer = (const struct price_offer *)price->offers.items + i;
        if (offer->usd_per_gpu_hour_low > offer->usd_per_gpu_hour_high)
            errors_add(errors, SEVERITY_ERROR, where, "price '%s': offers[%zu]: low is above high",
                       price->name, i);
    }
    return errors->error_count == before;
}

double price_per_mtok(double usd_per_gpu_hour, double tokens_per_s)
{
    return usd_per_gpu_hour / (tokens_per_s * 3600) * 1e6;
}
