/* A replica by itself, with its prefix cache looked into after every event: the books of the tree
 * and of the free queue are right, KV in use is what running sequences reference, and what
 * replica_cached_blocks says at any instant is the same in spans and step by step. */
#include "sim/base/digest.h"
#include "sim/engine/replica.h"
#include "tests/fleet_drive.h"
#include "tests/unit/suite_run.h"

enum { REQUESTS = 30, LOOKS = 40 };
#define US(n) ((int64_t)(n)*1000000)

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* One replica and what happens to it. */
struct stage {
    struct engine_config config;
    struct request requests[REQUESTS];
    int64_t cancel_ps[REQUESTS]; /* TIME_NEVER: stays */
    int64_t look_ps[LOOKS];
    /* While it runs. */
    uint32_t sequence[REQUESTS];
    struct sequence_table table;
    struct replica replica;
    uint32_t cached[LOOKS];
    uint64_t ended, audits;
};

static void stage_take(void *self, const struct obs *obs)
{
    struct stage *s = self;
    if (obs->kind == OBS_END) {
        s->sequence[obs->u.record->request.id] = SEQUENCE_NONE;
        s->ended++;
    }
}

static void audit(struct stage *s)
{
    const struct replica *r = &s->replica;
    const char *wrong = prefix_cache_audit(r->prefix);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    ck_assert(r->run.count > 0 || r->kv.used == 0);
    ck_assert_int_ge(kv_available(&r->kv), 0);
    s->audits++;
}

/* Arrivals before cancels before steps before looks, as in a fleet. */
static bool stage_event(struct stage *s, size_t *arrived, size_t *looked)
{
    struct replica *r = &s->replica;
    int64_t arrival = *arrived < REQUESTS ? s->requests[*arrived].arrival_ps : TIME_NEVER;
    int64_t look = *looked < LOOKS ? s->look_ps[*looked] : TIME_NEVER;
    size_t leaver = REQUESTS;
    for (size_t i = 0; i < *arrived; i++) {
        if (s->sequence[i] != SEQUENCE_NONE &&
            (leaver == REQUESTS || s->cancel_ps[i] < s->cancel_ps[leaver])) {
            leaver = i;
        }
    }
    int64_t cancel = leaver < REQUESTS ? s->cancel_ps[leaver] : TIME_NEVER;
    if (arrival != TIME_NEVER && arrival <= cancel && arrival <= r->next_ps && arrival <= look) {
        s->sequence[*arrived] = sequence_acquire(&s->table, &s->requests[*arrived]);
        replica_enqueue(r, s->sequence[*arrived], arrival);
        (*arrived)++;
    } else if (cancel != TIME_NEVER && cancel <= r->next_ps && cancel <= look) {
        replica_cancel(r, s->sequence[leaver], cancel);
    } else if (r->next_ps != TIME_NEVER && r->next_ps <= look) {
        replica_step(r, r->next_ps);
    } else if (look != TIME_NEVER) {
        replica_settle(r, look);
        s->cached[(*looked)++] = replica_cached_blocks(r);
    } else {
        return false;
    }
    return true;
}

static void stage_run(struct stage *s, const struct step_model *model, uint32_t span_max)
{
    struct engine engine;
    struct engine_tally tally = {0};
    struct obs_fan fan;
    struct obs_sink sink = {.take = stage_take, .self = s};
    obs_fan_init(&fan, &sink, 1);
    engine_init(&engine, &s->config, model, FIELD_INT_UNLIMITED);
    sequence_table_init(&s->table, 16);
    engine.span_max = span_max;
    engine.sequences = &s->table;
    engine.tally = &tally;
    engine.fan = &fan;
    replica_init(&s->replica, &engine, 0, 0);
    s->ended = s->audits = 0;
    size_t arrived = 0, looked = 0;
    while (stage_event(s, &arrived, &looked)) {
        audit(s);
    }
    ck_assert_uint_eq(s->ended, REQUESTS);
    replica_free(&s->replica);
    sequence_table_free(&s->table);
}

static void stage_draw(struct stage *s, uint64_t seed)
{
    uint64_t x = seed;
    int64_t t = 0;
    s->config.enable_prefix_caching = true;
    s->config.block_size = 1 + (int64_t)(next_random(&x) % 5);
    s->config.max_num_seqs = 1 + (int64_t)(next_random(&x) % 6);
    s->config.max_num_batched_tokens = s->config.max_num_seqs + (int64_t)(next_random(&x) % 30);
    s->config.num_gpu_blocks = 60 / s->config.block_size + (int64_t)(next_random(&x) % 40);
    s->config.num_gpu_blocks = seed % 7 == 0 ? FIELD_INT_UNLIMITED : s->config.num_gpu_blocks;
    s->config.scheduling_policy = (int)(next_random(&x) % 2);
    for (size_t i = 0; i < REQUESTS; i++) {
        t += US((int64_t)(next_random(&x) % 60));
        s->requests[i] = (struct request){.id = i,
                                          .arrival_ps = t,
                                          .prompt_tokens = 21 + (uint32_t)(next_random(&x) % 20),
                                          .output_tokens = (uint32_t)(next_random(&x) % 19),
                                          .priority = (int32_t)(next_random(&x) % 3),
                                          .session = -1,
                                          .stream = next_random(&x) % 4,
                                          .shared_prompt = (uint32_t)(next_random(&x) % 2),
                                          .shared_tokens = 7 * (uint32_t)(next_random(&x) % 4)};
        bool leaves = next_random(&x) % 5 == 0;
        s->cancel_ps[i] = leaves ? t + US((int64_t)(next_random(&x) % 300)) : TIME_NEVER;
    }
    for (size_t i = 0, look = 0; i < LOOKS; i++) {
        look += next_random(&x) % 80;
        s->look_ps[i] = US((int64_t)look) + (int64_t)(next_random(&x) % 2);
    }
}

START_TEST(books_are_right_after_every_event)
{
    uint64_t audits = 0, cached = 0;
    struct arena arena;
    arena_init(&arena);
    struct step_model model = drive_model(
        &arena, drive_variant(&arena, &step_affine_variant, "base=10 us", "per_token=1 us", NULL));
    for (uint64_t seed = 1; seed <= 300; seed++) {
        static struct stage spans, steps;
        field_defaults(engine_fields, &spans.config, &arena);
        stage_draw(&spans, seed);
        steps = spans;
        stage_run(&spans, &model, ENGINE_SPAN_MAX);
        stage_run(&steps, &model, 1);
        for (size_t i = 0; i < LOOKS; i++) {
            ck_assert_msg(spans.cached[i] == steps.cached[i],
                          "seed %llu: %u blocks cached at look %zu in spans, %u in steps",
                          (unsigned long long)seed, spans.cached[i], i, steps.cached[i]);
            cached += spans.cached[i];
        }
        audits += spans.audits;
    }
    arena_free(&arena);
    ck_assert_uint_gt(audits, 30000);
    ck_assert_uint_gt(cached, 100000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {books_are_right_after_every_event, NULL};
    return suite_run("prefix cache of a replica", tests, 60);
}
