/* A step-time model that changes while a fleet serves: spans and single steps agree to the bit,
 * also when changes, arrivals and the ends of iterations fall on the same instant. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/digest.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/fleet_refresh.h"
#include "tests/unit/suite_run.h"

enum { TIMER_CHANGE = FLEET_TIMER_COUNT };
enum { REQUESTS = 60, CHANGES = 12, TICK = 1000 };

/* step = base + per_kv · stored tokens of decodes + per_prefill · prompt tokens: changed by the
 * test. */
struct changing {
    int64_t base_ps, per_kv_ps, per_prefill_ps;
};

static void changing_law(const void *model, const struct step_batch *b, struct step_law *law)
{
    const struct changing *m = model;
    law->base_ps =
        m->base_ps + m->per_kv_ps * b->decode_kv + m->per_prefill_ps * (int64_t)b->prefill_tokens;
    law->slope_ps = m->per_kv_ps * (int64_t)b->decodes;
    law->valid_n = UINT32_MAX;
}

static const struct step_model_type changing_type = {.law = changing_law};

struct change {
    int64_t time_ps, stall_ps;
    struct changing model;
};

struct scene {
    struct changing first;
    struct request requests[REQUESTS];
    struct change changes[CHANGES];
    uint32_t replicas, seats, budget;
    int64_t blocks;
};

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* Mostly whole ticks, so that everything coincides. */
static struct changing draw_model(void)
{
    bool flat = draw(2);
    return (struct changing){(1 + (int64_t)draw(4)) * TICK, flat ? 0 : (int64_t)draw(3),
                             draw(2) ? 0 : TICK / 10};
}

static struct scene draw_scene(void)
{
    struct scene s = {.first = draw_model(),
                      .replicas = 1 + (uint32_t)draw(3),
                      .seats = 1 + (uint32_t)draw(8),
                      .blocks = 12 + (int64_t)draw(40)};
    s.budget = s.seats + (uint32_t)draw(24);
    int64_t t = 0;
    for (int i = 0; i < REQUESTS; i++) {
        t += (int64_t)draw(4) * TICK * (draw(8) == 0 ? 20 : 1);
        s.requests[i] = (struct request){.id = (uint64_t)i,
                                         .arrival_ps = t,
                                         .prompt_tokens = 1 + (uint32_t)draw(40),
                                         .output_tokens = 1 + (uint32_t)draw(40)};
    }
    for (int i = 0; i < CHANGES; i++) {
        s.changes[i] =
            (struct change){(int64_t)draw((uint64_t)t / TICK + 20) * TICK + (draw(4) == 0),
                            draw(3) ? 0 : (int64_t)draw(5) * TICK / 2, draw_model()};
    }
    return s;
}

/* What happened, in order; and the iterations as they lasted, however they were cut. */
struct seen {
    struct digest digest;
    uint64_t iterations, busy_ps, squares;
};

static void take(void *self, const struct obs *obs)
{
    struct seen *seen = self;
    if (obs->kind == OBS_STEPS) {
        const struct obs_steps *s = obs->u.steps;
        seen->iterations += s->count;
        seen->busy_ps += (uint64_t)(s->end_ps - s->start_ps);
        for (uint32_t i = 0; i < s->count; i++) {
            uint64_t step = (uint64_t)(s->base_ps + s->slope_ps * i);
            seen->squares += step * step;
        }
    } else if (obs->kind == OBS_END || obs->kind == OBS_FIRST_TOKEN || obs->kind == OBS_PREEMPT ||
               obs->kind == OBS_ADMIT) {
        digest_event(&seen->digest, obs->kind, obs->time_ps, obs->u.record->request.id,
                     obs->replica);
    }
}

static struct seen simulate(const struct scene *s, uint32_t span_max)
{
    struct arena arena;
    arena_init(&arena);
    struct changing model = s->first;
    struct engine_config engine;
    field_defaults(engine_fields, &engine, &arena);
    engine.max_num_seqs = s->seats;
    engine.max_num_batched_tokens = s->budget;
    engine.block_size = 4;
    engine.num_gpu_blocks = s->blocks + 20; /* at least the longest request */
    struct cold_start_config cold;
    field_defaults(cold_start_fields, &cold, &arena);
    struct variant_value router, autoscaler;
    field_variant_init(&router_round_robin_variant, &router, &arena);
    field_variant_init(&autoscaler_static_variant, &autoscaler, &arena);
    size_t offset = 0;
    const struct field *replicas = field_find(autoscaler.type->fields, "replicas", &offset);
    ck_assert_ptr_nonnull(replicas);
    *(int64_t *)((char *)autoscaler.config + offset) = s->replicas;
    struct fleet_pool_config pool = {.name = "p",
                                     .engine = &engine,
                                     .model = {&changing_type, &model},
                                     .max_queue = FIELD_INT_UNLIMITED,
                                     .initial_replicas = s->replicas,
                                     .autoscaler = &autoscaler,
                                     .cold_start = &cold};
    struct seen seen = {.iterations = 0};
    digest_init(&seen.digest);
    struct obs_sink sink = {.take = take, .self = &seen};
    struct event_queue queue;
    event_queue_init(&queue, 1);
    struct fleet_config config = {.pools = &pool,
                                  .pool_count = 1,
                                  .router = &router,
                                  .seed = 1,
                                  .horizon_ps = 1,
                                  .span_max = span_max,
                                  .sinks = &sink,
                                  .sink_count = 1};
    struct fleet *fleet = fleet_create(&config, &queue);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        event_queue_push(&queue, s->requests[i].arrival_ps, EVENT_ARRIVAL, 0, i);
    }
    for (uint64_t i = 0; i < CHANGES; i++) {
        event_queue_push(&queue, s->changes[i].time_ps, EVENT_TIMER, TIMER_CHANGE, i);
    }
    struct event e;
    while (event_queue_pop(&queue, &e)) {
        if (e.class == EVENT_ARRIVAL) {
            uint32_t only = 0;
            fleet_arrive(fleet, &s->requests[e.payload], &only, 1);
        } else if (e.class == EVENT_STEP) {
            fleet_step(fleet, (uint32_t)e.payload, e.time_ps);
        } else if (e.kind == TIMER_CHANGE) {
            fleet_refresh(fleet, 0, e.time_ps, s->changes[e.payload].stall_ps);
            model = s->changes[e.payload].model;
        } else {
            fleet_timer(fleet, (enum fleet_timer)e.kind, e.payload, e.time_ps);
        }
    }
    ck_assert_uint_eq(fleet_in_flight(fleet), 0);
    fleet_free(fleet);
    event_queue_free(&queue);
    arena_free(&arena);
    return seen;
}

START_TEST(spans_and_steps_agree_when_laws_change)
{
    uint64_t changed = 0;
    for (int round = 0; round < 2000; round++) {
        struct scene s = draw_scene();
        struct seen spans = simulate(&s, ENGINE_SPAN_MAX), steps = simulate(&s, 1);
        struct seen odd = simulate(&s, 3);
        ck_assert_msg(spans.digest.state == steps.digest.state &&
                          odd.digest.state == steps.digest.state,
                      "round %d: outcomes differ", round);
        ck_assert_uint_eq(spans.iterations, steps.iterations);
        ck_assert_uint_eq(spans.busy_ps, steps.busy_ps);
        ck_assert_uint_eq(spans.squares, steps.squares);
        struct scene still = s;
        for (int i = 0; i < CHANGES; i++) {
            still.changes[i].model = s.first;
            still.changes[i].stall_ps = 0;
        }
        changed += simulate(&still, ENGINE_SPAN_MAX).digest.state != spans.digest.state;
    }
    ck_assert_uint_gt(changed, 1500);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {spans_and_steps_agree_when_laws_change, NULL};
    return suite_run("moe_refresh", tests, 120);
}
