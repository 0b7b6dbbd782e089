/* Whom a scale-down takes: three replicas become two, and the later requests tell which. */
#include "sim/fleet/autoscaler.h"
#include "sim/fleet/router.h"
#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

enum { REPLICAS = 3, BEFORE = 3, AFTER = 8 };

struct seen {
    uint32_t first[BEFORE];
    bool later[REPLICAS];
};

static void take(void *self, const struct obs *obs)
{
    struct seen *seen = self;
    if (obs->kind != OBS_END) {
        return;
    }
    const struct request_record *r = obs->u.record;
    if (r->request.id < BEFORE) {
        seen->first[r->request.id] = r->replica;
    } else {
        seen->later[r->replica] = true;
    }
}

/* Conversations of these lengths go to the replicas in turn, and at 60 s, when outputs[i] says so,
 * are still being answered; then one replica is too many. Returns whom it took. */
static uint32_t victim_of(enum fleet_victim victim, const uint32_t prompts[BEFORE],
                          const uint32_t outputs[BEFORE])
{
    struct request requests[BEFORE + AFTER];
    for (uint32_t i = 0; i < BEFORE + AFTER; i++) {
        requests[i] = (struct request){
            .id = i,
            .arrival_ps = i < BEFORE ? SECONDS(1) : SECONDS(3000 + 10 * i),
            .prompt_tokens = i < BEFORE ? prompts[i] : 100,
            .output_tokens = i < BEFORE ? outputs[i] : 1,
            .session = -1,
            .stream = i < BEFORE ? 1 + i : 0,
        };
    }
    struct seen seen = {0};
    struct drive d;
    drive_init(&d);
    d.model =
        drive_model(&d.arena, drive_variant(&d.arena, &step_constant_variant, "step=10 ms", NULL));
    d.engine.enable_prefix_caching = true;
    d.router = drive_variant(&d.arena, &router_round_robin_variant, NULL);
    d.autoscaler = drive_variant(&d.arena, &autoscaler_target_variant, "metric=concurrency",
                                 "target=10", "min_replicas=2", "max_replicas=3", "interval=60 s",
                                 "scale_up_window=0 s", "scale_down_window=50 s", NULL);
    d.victim = victim;
    d.replicas = REPLICAS;
    d.requests = requests;
    d.request_count = BEFORE + AFTER;
    d.sink = (struct obs_sink){.take = take, .self = &seen};
    drive_run(&d);
    drive_free(&d);
    uint32_t gone = REPLICAS;
    for (uint32_t i = 0; i < REPLICAS; i++) {
        ck_assert_uint_eq(seen.first[i], i);
        if (!seen.later[i]) {
            ck_assert_uint_eq(gone, REPLICAS);
            gone = i;
        }
    }
    ck_assert_uint_lt(gone, REPLICAS);
    return gone;
}

START_TEST(the_victim_is_as_said)
{
    /* 100 s of answering keep replicas 0 and 2 busy at 60 s; 1 has the longest conversation. */
    static const uint32_t prompts[] = {1000, 4000, 2000}, busy[] = {10000, 10, 10000};
    ck_assert_uint_eq(victim_of(FLEET_VICTIM_LEAST_LOADED, prompts, busy), 1);
    ck_assert_uint_eq(victim_of(FLEET_VICTIM_NEWEST, prompts, busy), 2);
    static const uint32_t idle[] = {10, 10, 10};
    ck_assert_uint_eq(victim_of(FLEET_VICTIM_LEAST_CACHED, prompts, idle), 0);
    ck_assert_uint_eq(victim_of(FLEET_VICTIM_LEAST_LOADED, prompts, idle), 2);
    /* Outputs are cached too, up to now: 4,000 + 5,900 tokens at replica 1, 1,000 + 5,900 at 0. */
    static const uint32_t writing[] = {10000, 10000, 10};
    ck_assert_uint_eq(victim_of(FLEET_VICTIM_LEAST_CACHED, prompts, writing), 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_victim_is_as_said, NULL};
    return suite_run("scale_down", tests, 60);
}
