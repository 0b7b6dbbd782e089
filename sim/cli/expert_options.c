#include "sim/cli/expert_options.h"

#include <string.h>

#include "sim/cli/quantity.h"

static bool popularity_read(const char *text, struct variant_value *value, struct arena *arena,
                            struct errors *errors)
{
    const char *colon = strchr(text, ':');
    const char *name = colon ? arena_copyn(arena, text, (size_t)(colon - text)) : text;
    const struct variant *variant = NULL;
    for (int i = MOE_UNIFORM; i < MOE_TABLE; i++)
        if (strcmp(moe_popularity_variants[i]->name, name) == 0)
            variant = moe_popularity_variants[i];
    if (!variant) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "--popularity '%s': know uniform, lognormal:SIGMA, zipf:EXPONENT, "
                   "dirichlet:CONCENTRATION",
                   text);
        return false;
    }
    field_variant_init(variant, value, arena);
    if (!variant->fields && !colon)
        return true;
    char why[FIELD_WHY_MAX] = "needs a number, such as lognormal:1.15";
    bool ok = variant->fields && colon &&
              field_parse(variant->fields, colon + 1,
                          (char *)value->config + variant->fields->offset, arena, why, sizeof why);
    if (!ok)
        errors_add(errors, SEVERITY_ERROR, NULL, "--popularity '%s': %s", text,
                   variant->fields ? why : "takes no number");
    return ok;
}

bool expert_options_read(const char *popularity, const char *placement, const char *redundant,
                         const struct llm_spec *llm, struct expert_options *o, struct arena *arena,
                         struct errors *errors)
{
    *o = (struct expert_options){.given = popularity != NULL, .popularity = popularity};
    field_defaults(moe_experts_fields, &o->config, arena);
    bool ok = quantity_whole(redundant, "redundant", UNIT_NONE, 0, 0, 65536, &o->redundant, errors);
    ok &=
        quantity_choice(placement, "placement", moe_placement_names, &o->config.placement, errors);
    if (popularity)
        ok &= popularity_read(popularity, &o->config.popularity, arena, errors);
    if (ok && !popularity && placement) {
        errors_add(errors, SEVERITY_ERROR, NULL, "--placement needs --popularity");
        ok = false;
    }
    if (ok && llm && llm->moe.experts == 0 && (popularity || redundant)) {
        errors_add(errors, SEVERITY_ERROR, NULL, "'%s' has no experts", llm->name);
        ok = false;
    }
    if (ok && llm && popularity && llm->moe.top_k > MOE_ROUTING_TOP_K_MAX) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "'%s' gives a token %lld experts: a popularity is modelled for up to %d",
                   llm->name, (long long)llm->moe.top_k, MOE_ROUTING_TOP_K_MAX);
        ok = false;
    }
    return ok;
}

struct moe_experts *expert_options_apply(const struct expert_options *o,
                                         struct roofline_config *config, int64_t max_tokens)
{
    if (!o->given)
        return NULL;
    struct llm_params params = llm_params(config->llm);
    struct moe_experts_config c = {.user = &o->config,
                                   .llm = config->llm,
                                   .gpu = config->gpu,
                                   .parallel = config->parallel,
                                   .redundant = (int64_t)o->redundant,
                                   .expert_bytes = params.expert,
                                   .max_tokens = max_tokens,
                                   .classes = 1,
                                   .seed = 1};
    double share = 1;
    struct errors errors;
    errors_init(&errors);
    struct moe_experts *experts = moe_experts_create(&c, &share, &errors, NULL);
    errors_free(&errors);
    config->law = experts ? &experts->law : NULL;
    return experts;
}
