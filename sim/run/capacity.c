#include "sim/run/capacity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/rng.h"
#include "sim/fleet/autoscaler.h"
#include "sim/run/capacity_arrivals.h"
#include "sim/run/run_internal.h"
#include "sim/workload/arrivals.h"

enum {
    CHANCE = 6700417,  /* the seed of every trial */
    PARTS = 6,         /* of a trial; the first is warm-up */
    ROWS_MAX = 16384,  /* of a trace, from its begin */
    DOUBLINGS_MAX = 40 /* from one request at a time: more than any engine has seats */
};
static const double PILOT_RATE = 0.01, PILOT_PART_S = 1600; /* about 100 requests, mostly alone */
static const double RESOLUTION = 1.01;                      /* missed over sustained rate */
static const double LEAST_SHARE = 1.0 / 64; /* of one request at a time: below it nobody waits */
static const double GROWTH_MAX = 0.02;      /* of arrivals that may stay */

/* ---- what was measured before ------------------------------------------------------------------
 */

struct known {
    const struct known *next;
    const char *key;
    const char *why; /* NULL: measured */
    struct capacity capacity;
};

struct capacity_cache {
    struct arena arena;
    const struct known *first;
};

struct capacity_cache *capacity_cache_create(void)
{
    struct capacity_cache *cache = memory_zero(1, sizeof *cache);
    arena_init(&cache->arena);
    return cache;
}

void capacity_cache_free(struct capacity_cache *cache)
{
    if (cache != NULL) {
        arena_free(&cache->arena);
        free(cache);
    }
}

static const struct known *cache_find(const struct capacity_cache *cache, const char *key)
{
    const struct known *known = cache->first;
    while (known != NULL && strcmp(known->key, key) != 0) {
        known = known->next;
    }
    return known;
}

static void cache_add(struct capacity_cache *cache, const char *key, const char *why,
                      const struct capacity *capacity)
{
    struct known *known = arena_alloc(&cache->arena, sizeof *known);
    *known = (struct known){.next = cache->first,
                            .key = arena_copy(&cache->arena, key),
                            .why = why ? arena_copy(&cache->arena, why) : NULL,
                            .capacity = *capacity};
    cache->first = known;
}

/* ---- the scenario of a trial -------------------------------------------------------------------
 */

struct measuring {
    const struct run *run; /* borrowed: whose pool it is */
    const struct capacity_ask *ask;
    struct arena *arena; /* of the texts and everything else */
    struct run_config config;
    struct pool_config pool;
    struct class_config *classes;
    struct capacity_arrivals_config *arrivals; /* [class_count] */
    double *starts; /* arrivals of a class per request of the pool: its share over its turns */
    size_t class_count;
    double service_s; /* mean time of a request in the replica, as last seen */
    struct capacity result;
    const char *why; /* NULL: nothing is wrong */
};

static bool refuse(struct measuring *m, const char *why)
{
    m->why = why;
    return false;
}

static bool class_uses(const struct run *run, size_t class, size_t pool)
{
    return run->class_pool_count[class] == 1 && run->class_pools[class][0] == pool;
}

/* Lengths of the first rows of a trace's class. What the trace says of contents is left out. */
static bool rows_take(struct measuring *m, size_t class, struct capacity_arrivals_config *arrivals)
{
    const struct traffic_config *traffic = &config_class(&m->run->config, class)->traffic;
    struct workload_config config = m->run->workload_config;
    struct errors errors;
    struct request request;
    config.classes = &traffic;
    config.class_count = 1;
    config.want_contents = false;
    errors_init(&errors);
    struct workload *workload = workload_open(&config, NULL, &errors);
    struct capacity_row *rows = arena_alloc(m->arena, ROWS_MAX * sizeof *rows);
    size_t count = 0;
    while (workload != NULL && count < ROWS_MAX &&
           workload_next(workload, &request, &errors) == WORKLOAD_OK) {
        rows[count++] = (struct capacity_row){request.prompt_tokens, request.output_tokens};
    }
    if (workload != NULL) {
        workload_close(workload);
    }
    errors_free(&errors);
    arrivals->rows = rows;
    arrivals->row_count = count;
    return count > 0 || refuse(m, "no request of its trace can be had");
}

/* The class as it is in a trial, if it uses the pool. */
static bool class_take(struct measuring *m, size_t class, double requests)
{
    const struct class_config *own = config_class(&m->run->config, class);
    const struct arrivals_type *type = own->traffic.arrivals.type->ops;
    size_t k = m->class_count++;
    struct class_config *copy = &m->classes[k];
    bool turns = own->traffic.sessions.turns.type != NULL;
    *copy = *own;
    copy->pools = (struct field_list){0};
    copy->traffic.start_ps = 0;
    copy->traffic.end_ps = FIELD_INT_UNSET;
    copy->traffic.sessions.stationary_start = turns;
    copy->traffic.arrivals = (struct variant_value){
        .type = type->tokens != NULL ? &capacity_arrivals_rows : &capacity_arrivals_drawn,
        .config = &m->arrivals[k]};
    m->arrivals[k] = (struct capacity_arrivals_config){.rate = 1};
    m->starts[k] = requests / (turns ? sessions_config_turns(&own->traffic.sessions) : 1);
    return type->tokens == NULL || rows_take(m, class, &m->arrivals[k]);
}

static bool classes_take(struct measuring *m, size_t pool)
{
    const struct run *run = m->run;
    size_t classes = run_class_count(run);
    double sum = 0;
    bool states = false;
    m->classes = arena_alloc(m->arena, classes * sizeof *m->classes);
    m->arrivals = arena_alloc(m->arena, classes * sizeof *m->arrivals);
    m->starts = arena_alloc(m->arena, classes * sizeof *m->starts);
    for (size_t c = 0; c < classes; c++) {
        double n = class_uses(run, c, pool)
                       ? workload_expected(run->workload, c, 0, workload_horizon(run->workload))
                       : 0;
        sum += n;
        states |= n > 0 && !isnan(config_class(&run->config, c)->slo.attainment);
        if (n > 0 && !class_take(m, c, n)) {
            return false;
        }
    }
    if (isnan(sum) || !(sum > 0)) {
        return refuse(m, "how much of its classes' traffic comes is not known beforehand");
    }
    for (size_t k = 0; k < m->class_count; k++) {
        m->starts[k] /= sum;
    }
    return states || refuse(m, "no class that uses it states an slo with an attainment, such as "
                               "{ttft: 1 s, tpot: 50 ms, attainment: 95 %}");
}

/* A static fleet of one, with this pool's engine and hardware. */
static void pool_take(struct measuring *m, size_t pool)
{
    const struct variant *fixed = &autoscaler_static_variant;
    size_t offset;
    m->pool = *config_pool(&m->run->config, pool);
    m->pool.autoscaler = (struct variant_value){fixed, arena_alloc(m->arena, fixed->size)};
    memset(m->pool.autoscaler.config, 0, fixed->size);
    field_find(fixed->fields, "replicas", &offset);
    memcpy((char *)m->pool.autoscaler.config + offset, &(int64_t){1}, sizeof(int64_t));
    m->pool.initial_replicas = FIELD_INT_UNSET;
    m->pool.capacity = NAN;
    /* The model is built anew for every trial, and fills this in from its own memory. */
    size_t size = m->pool.step_time.type->size;
    void *step_time = arena_alloc(m->arena, size + 1);
    if (size > 0) {
        memcpy(step_time, m->pool.step_time.config, size);
    }
    m->pool.step_time.config = step_time;
}

static void config_take(struct measuring *m)
{
    m->config = m->run->config;
    m->config.name = "capacity";
    m->config.description = "";
    m->config.seed = CHANCE;
    m->config.replication = 0;
    m->config.start_unix_s = 0;
    m->config.drain = true;
    m->config.workload = (struct field_list){m->classes, m->class_count};
    m->config.fleet.pools = (struct field_list){&m->pool, 1};
    m->config.output.requests = false;
    m->config.horizon_ps = PARTS * PS_PER_HOUR; /* each trial has its own */
    m->config.warmup_ps = m->config.output.trace_interval_ps = PS_PER_HOUR;
    m->config.output.gauge_interval_ps = PS_PER_HOUR;
}

/* Everything that the result depends on, as text. */
static const char *key_make(const struct measuring *m)
{
    const char *key = field_yaml(config_fields, &m->config, m->arena);
    for (size_t k = 0; k < m->class_count; k++) {
        key = arena_printf(m->arena, "%s%.17g\n", key, m->starts[k]);
        uint64_t lengths = 0;
        for (size_t i = 0; i < m->arrivals[k].row_count; i++) {
            const struct capacity_row *row = &m->arrivals[k].rows[i];
            lengths = rng_draw(lengths, row->prompt_tokens, row->output_tokens).a;
        }
        key = arena_printf(m->arena, "%s%llx\n", key, (unsigned long long)lengths);
    }
    return key;
}

/* ---- trials ------------------------------------------------------------------------------------
 */

struct trial {
    double rate, attainment, in_flight, service_s;
    bool sustained;
};

static void trial_read(struct trial *trial, const struct run *of, double part_s)
{
    const struct metrics_summary *summary = metrics_summaries(run_metrics(of));
    const struct metrics_hour *parts = metrics_hours_all(run_metrics(of));
    double more = parts[PARTS - 1].in_flight_mean - parts[1].in_flight_mean;
    trial->attainment = summary->slo.attainment;
    trial->in_flight = summary->in_flight_mean;
    trial->service_s = summary->e2e.count > 0 ? time_seconds(summary->e2e.mean_ps) : NAN;
    trial->sustained =
        summary->slo_met == 1 && more <= GROWTH_MAX * trial->rate * part_s * (PARTS - 2);
}

/* Simulates one replica at that many requests per second. */
static bool trial_run(struct measuring *m, double rate, double part_s, struct trial *trial)
{
    struct errors errors;
    int64_t part_ps = part_s * (PARTS + 1) < time_seconds(HORIZON_MAX_PS)
                          ? time_from_seconds(part_s)
                          : HORIZON_MAX_PS / (PARTS + 1);
    m->config.warmup_ps = m->config.output.trace_interval_ps = part_ps;
    m->config.output.gauge_interval_ps = part_ps;
    m->config.horizon_ps = PARTS * part_ps;
    for (size_t k = 0; k < m->class_count; k++) {
        m->arrivals[k].rate = rate * m->starts[k];
    }
    errors_init(&errors);
    struct run *of = run_derive(m->run, &m->config, &errors);
    bool ok = of != NULL && run_simulate(of, &(struct run_options){0}, &errors);
    *trial = (struct trial){.rate = rate};
    if (ok) {
        trial_read(trial, of, time_seconds(part_ps));
        m->result.trials++;
        m->result.requests += of->arrived;
    } else {
        refuse(m, errors.count > 0 ? arena_copy(m->arena, errors.items[0].message)
                                   : "a trial run failed");
    }
    run_free(of);
    errors_free(&errors);
    return ok;
}

static bool trial_at(struct measuring *m, double rate, struct trial *trial)
{
    double part_s = fmax(CAPACITY_PART_REQUESTS / rate, CAPACITY_PART_SERVICES * m->service_s);
    if (!trial_run(m, rate, part_s, trial)) {
        return false;
    }
    if (trial->sustained && trial->service_s > m->service_s) {
        m->service_s = trial->service_s; /* a fuller replica takes longer to settle */
    }
    if (m->ask != NULL && m->ask->progress != NULL) {
        struct capacity_progress progress = {.pool = m->pool.name,
                                             .rate = rate,
                                             .attainment = trial->attainment,
                                             .sustained = trial->sustained};
        m->ask->progress(m->ask->progress_self, &progress);
    }
    return true;
}

/* The largest rate known to be sustained by doubling, and the smallest known not to be. */
static bool bracket(struct measuring *m, struct trial *low, double *high)
{
    double alone = 1 / m->service_s, rate = alone;
    struct trial trial;
    *high = 0;
    for (;;) {
        if (!trial_at(m, rate, &trial)) {
            return false;
        }
        if (trial.sustained) {
            break;
        }
        *high = rate;
        if (rate < alone * LEAST_SHARE) {
            return refuse(m, arena_printf(m->arena,
                                          "even at %.3g requests/s one replica attains %.4g %%: "
                                          "what it serves too late when idle is late in any fleet",
                                          rate, 100 * trial.attainment));
        }
        rate /= 2;
    }
    *low = trial;
    for (int i = 0; *high == 0; i++) {
        if (i == DOUBLINGS_MAX) {
            return refuse(m, "the SLO is met at any rate");
        }
        if (!trial_at(m, 2 * low->rate, &trial)) {
            return false;
        }
        if (trial.sustained) {
            *low = trial;
        } else {
            *high = trial.rate;
        }
    }
    return true;
}

static double round_digits(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.3g", value);
    return strtod(text, NULL);
}

static bool search(struct measuring *m)
{
    struct trial low, trial;
    double high;
    if (!trial_run(m, PILOT_RATE, PILOT_PART_S, &trial)) {
        return false;
    }
    if (!(trial.service_s > 0)) {
        return refuse(m, "one replica completes no request");
    }
    m->service_s = trial.service_s;
    if (!bracket(m, &low, &high)) {
        return false;
    }
    while (high > RESOLUTION * low.rate) {
        if (!trial_at(m, sqrt(low.rate * high), &trial)) {
            return false;
        }
        if (trial.sustained) {
            low = trial;
        } else {
            high = trial.rate;
        }
    }
    m->result.requests_per_s = round_digits(low.rate);
    m->result.in_flight = low.in_flight;
    m->result.attainment = low.attainment;
    if (!trial_at(m, m->pool.target_utilization * low.rate, &trial)) {
        return false;
    }
    m->result.in_flight_target = trial.in_flight;
    return true;
}

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *capacity_measure(const struct run *run, size_t pool, const struct capacity_ask *ask,
                             struct capacity *capacity, struct arena *arena)
{
    struct measuring m = {.run = run, .ask = ask, .arena = arena};
    struct capacity_cache *cache = ask != NULL ? ask->cache : NULL;
    double began_s = wall_now();
    if (!classes_take(&m, pool)) {
        return m.why;
    }
    pool_take(&m, pool);
    config_take(&m);
    const char *key = key_make(&m);
    const struct known *known = cache != NULL ? cache_find(cache, key) : NULL;
    if (known != NULL) {
        *capacity = known->capacity;
        return known->why ? arena_copy(arena, known->why) : NULL;
    }
    search(&m);
    m.result.wall_s = wall_now() - began_s;
    *capacity = m.result;
    if (cache != NULL) {
        cache_add(cache, key, m.why, &m.result);
    }
    if (m.why == NULL && ask != NULL && ask->progress != NULL) {
        struct capacity_progress progress = {.pool = m.pool.name,
                                             .rate = m.result.requests_per_s,
                                             .attainment = m.result.attainment,
                                             .sustained = true,
                                             .finished = true,
                                             .capacity = capacity};
        ask->progress(ask->progress_self, &progress);
    }
    return m.why;
}
