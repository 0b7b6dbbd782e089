#include "sim/cli/policies.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/fleet/autoscaler.h"

/* What the pool's own policy says for a key, as a user would write it; otherwise the other. */
static const char *own_or(const struct pool_config *pool, const char *key, const char *otherwise,
                          struct arena *arena)
{
    size_t offset = 0;
    const struct variant_value *own = &pool->autoscaler;
    const struct field *field =
        own->type->fields != NULL ? field_find(own->type->fields, key, &offset) : NULL;
    const char *text =
        field != NULL ? field_text(field, (const char *)own->config + offset, arena) : NULL;
    return text != NULL ? text : otherwise;
}

/* What is the same for all that react: limits and interval. */
static const char *common(const struct pool_config *pool, double peak, struct arena *arena)
{
    double twice = isnan(peak) ? 100000 : fmin(fmax(2 * peak, 1), 100000);
    const char *most = arena_printf(arena, "%.0f", twice);
    return arena_printf(arena, "min_replicas: %s, max_replicas: %s, interval: %s",
                        own_or(pool, "min_replicas", "1", arena),
                        own_or(pool, "max_replicas", most, arena),
                        own_or(pool, "interval", "15 s", arena));
}

/* The tightest TTFT limit of the classes; NULL: none. */
static const char *ttft_limit(const struct run *run, struct arena *arena)
{
    int64_t least = INT64_MAX;
    for (size_t c = 0; c < run_config(run)->workload.count; c++) {
        int64_t ttft = config_class(run_config(run), c)->slo.ttft_ps;
        least = ttft != FIELD_INT_UNSET && ttft < least ? ttft : least;
    }
    return least == INT64_MAX
               ? NULL
               : arena_printf(arena, "%.9g s", (double)least / (double)PS_PER_SECOND);
}

/* The mapping of a policy that goes by work. Where a capacity had to be measured, work does not
 * tell how much a replica could take: then by what the measurement saw. */
static const char *work_mapping(const char *policy, const struct run *run, size_t p,
                                const char *shared, struct arena *arena)
{
    const struct pool_config *pool = config_pool(run_config(run), p);
    const struct capacity *measured = run_capacity_measured(run, p);
    const char *busy = arena_printf(arena, "%.9g", pool->target_utilization);
    if (strcmp(policy, "predictive") == 0)
        return arena_printf(
            arena, "{policy: predictive, target: %s, %s%s}", busy, shared,
            measured ? arena_printf(arena, ", capacity: %.9g /s", measured->requests_per_s) : "");
    bool tracks = strcmp(pool->autoscaler.type->name, "target") == 0 ||
                  strcmp(pool->autoscaler.type->name, "warm_pool") == 0;
    const char *metric = measured ? "concurrency" : "utilization";
    const char *target = measured ? arena_printf(arena, "%.3g", measured->in_flight_target) : busy;
    return arena_printf(arena, "{policy: %s, metric: %s, target: %s, %s}", policy,
                        tracks ? own_or(pool, "metric", metric, arena) : metric,
                        tracks ? own_or(pool, "target", target, arena) : target, shared);
}

/* The policy's mapping for a pool; NULL: it needs more than a scenario tells. */
static const char *mapping(const char *policy, const struct run *run, size_t p, double peak,
                           struct arena *arena)
{
    const struct pool_config *pool = config_pool(run_config(run), p);
    const char *shared = common(pool, peak, arena);
    const char *busy = arena_printf(arena, "%.9g", pool->target_utilization);
    if (strcmp(policy, "static") == 0)
        return arena_printf(arena, "{policy: static, replicas: %.0f}", fmax(peak, 1));
    if (strcmp(policy, "ideal") == 0)
        return "{policy: ideal}";
    if (strcmp(policy, "target") == 0 || strcmp(policy, "warm_pool") == 0 ||
        strcmp(policy, "predictive") == 0)
        return work_mapping(policy, run, p, shared, arena);
    if (strcmp(policy, "queue") == 0)
        return arena_printf(arena, "{policy: queue, waiting: 1, %s}", shared);
    if (strcmp(policy, "kv") == 0)
        return arena_printf(arena, "{policy: kv, utilization: %s, %s}", busy, shared);
    const char *ttft = ttft_limit(run, arena);
    if (strcmp(policy, "slo") == 0 && ttft != NULL)
        return arena_printf(arena, "{policy: slo, ttft: %s, %s}", ttft, shared);
    return NULL;
}

static bool known(const char *policy)
{
    const char *names[POLICIES_MAX] = {NULL};
    for (size_t i = 0; autoscaler_variants[i]; i++) {
        names[i] = autoscaler_variants[i]->name;
        if (strcmp(names[i], policy) == 0)
            return true;
    }
    char why[FIELD_WHY_MAX];
    field_name_refuse(policy, names, NULL, "policy", why, sizeof why);
    fprintf(stderr, "fleetsim compare: --policies: %s\n", why);
    return false;
}

/* The variant of one policy: a --set for every pool that has another. */
static bool policy_expand(const char *policy, const struct run *base, uint32_t sized,
                          struct variant_spec *variant, struct arena *arena)
{
    size_t pools = run_config(base)->fleet.pools.count;
    const char **sets = arena_alloc(arena, 2 * pools * sizeof *sets);
    *variant = (struct variant_spec){.name = policy, .sets = {.items = sets}};
    for (size_t p = 0; p < pools; p++) {
        const struct pool_config *pool = config_pool(run_config(base), p);
        bool fixed = strcmp(policy, "static") == 0;
        if (strcmp(pool->autoscaler.type->name, policy) == 0 && !(fixed && sized > 0))
            continue;
        double peak = sized > 0 ? sized : run_peak_replicas(base, p);
        if (strcmp(policy, "ideal") == 0 ? isnan(run_peak_replicas(base, p))
                                         : fixed && isnan(peak)) {
            fprintf(stderr,
                    "fleetsim compare: --policies: %s needs to know what pool '%s' needs: state "
                    "its capacity, or for its classes an slo with an attainment, by which it is "
                    "measured\n",
                    policy, pool->name);
            return false;
        }
        const char *text = mapping(policy, base, p, peak, arena);
        if (!text) {
            fprintf(stderr,
                    "fleetsim compare: --policies: %s needs more than the scenario tells; give it "
                    "as a --variant\n",
                    policy);
            return false;
        }
        sets[variant->sets.count++] =
            arena_printf(arena, "fleet.pools[%zu].autoscaler=%s", p, text);
        if (fixed && pool->initial_replicas != FIELD_INT_UNSET)
            sets[variant->sets.count++] =
                arena_printf(arena, "fleet.pools[%zu].initial_replicas=%.0f", p, fmax(peak, 1));
    }
    return true;
}

size_t policies_read(const char *list, const struct run *base, uint32_t sized,
                     struct variant_spec *variants, struct arena *arena)
{
    size_t count = 0;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        const char *policy = arena_copyn(arena, at, length);
        at += length + (at[length] == ',');
        if (count == POLICIES_MAX || !known(policy) ||
            !policy_expand(policy, base, sized, &variants[count], arena))
            return 0;
        count++;
    }
    return count;
}
