/* Step-time models: what they cost, and the identity that makes spans exact; the inversion of a
 * span's time. */
#include <math.h>

#include "models/step_time.h"
#include "sim/base/rng.h"
#include "tests/fleet_drive.h"
#include "tests/unit/suite_run.h"

static struct step_law law_of(const struct step_model *model, const struct step_batch *batch)
{
    struct step_law law;
    model->type->law(model->model, batch, &law);
    return law;
}

START_TEST(affine_costs)
{
    struct arena arena;
    arena_init(&arena);
    struct step_model m =
        drive_model(&arena, drive_variant(&arena, &step_affine_variant, "base=2 ms",
                                          "per_token=10 us", "per_kv_token=3 ns", NULL));
    struct step_batch b = {.decodes = 4,
                           .decode_kv = 1000,
                           .prefills = 1,
                           .prefill_tokens = 100,
                           .prefill_kv = 50,
                           .prefill_pairs = 100 * 50 + 5050,
                           .prefill_squares = 10000};
    struct step_law law = law_of(&m, &b);
    ck_assert_int_eq(law.base_ps, 2000000000 + 104 * INT64_C(10000000) + 1050 * 3000);
    ck_assert_int_eq(law.slope_ps, 104 * 3000);
    arena_free(&arena);
}
END_TEST

/* step = max(min_step, decodes / decode rate) + prompt tokens / prefill rate; the work has no
 * floor. */
START_TEST(rate_costs)
{
    struct arena arena;
    arena_init(&arena);
    struct step_model m =
        drive_model(&arena, drive_variant(&arena, &step_rate_variant, "prefill_tokens_per_s=15000",
                                          "decode_tokens_per_s=1500", "min_step=30 ms", NULL));
    int64_t prompt_ps = 66666667, decode_ps = 666666667; /* 1/15,000 s and 1/1,500 s, rounded */
    struct step_batch few = {.decodes = 10, .prefills = 1, .prefill_tokens = 1500};
    ck_assert_int_eq(law_of(&m, &few).base_ps, 30000000000 + 1500 * prompt_ps);
    ck_assert_int_eq(m.type->work(m.model, &few), 10 * decode_ps + 1500 * prompt_ps);
    struct step_batch many = {.decodes = 60};
    ck_assert_int_eq(law_of(&m, &many).base_ps, 60 * decode_ps);
    ck_assert_int_eq(law_of(&m, &many).slope_ps, 0);
    /* The capstone's replica: 1 / (1,500 / 15,000 + 400 / 1,500) = 2.727 requests/s. */
    ck_assert_double_eq_tol(m.type->capacity(m.model, 1500, 400), 30.0 / 11, 1e-6);
    arena_free(&arena);
}
END_TEST

START_TEST(constant_costs)
{
    struct arena arena;
    arena_init(&arena);
    struct step_model m =
        drive_model(&arena, drive_variant(&arena, &step_constant_variant, "step=12.5 ms", NULL));
    struct step_batch b = {.decodes = 7, .decode_kv = 99};
    struct step_law law = law_of(&m, &b);
    ck_assert_int_eq(law.base_ps, 12500000000);
    ck_assert_int_eq(law.slope_ps, 0);
    arena_free(&arena);
}
END_TEST

/* A batch as one might be formed: 16 random numbers. */
static struct step_batch random_batch(uint64_t key, uint64_t entity)
{
    struct step_batch b = {0};
    struct rng_pair draw = rng_draw(key, entity, 0);
    uint32_t prefills = draw.a % 4;
    b.decodes = prefills == 0 ? 1 + (uint32_t)(draw.b % 300) : (uint32_t)(draw.b % 300);
    b.decode_kv = (int64_t)b.decodes * (int64_t)(1 + (draw.a >> 20) % 5000);
    for (uint32_t i = 0; i < prefills; i++) {
        struct rng_pair p = rng_draw(key, entity, 1 + i);
        int64_t chunk = 1 + (int64_t)(p.a % 4000), stored = (int64_t)(p.b % 10000);
        b.prefills++;
        b.prefill_tokens += (uint32_t)chunk;
        b.prefill_kv += stored;
        b.prefill_pairs += chunk * stored + chunk * (chunk + 1) / 2;
        b.prefill_squares += chunk * chunk;
    }
    return b;
}

/* law(batch) at iteration k is law(batch k iterations later) at 0, and so is its slope: to the
 * picosecond, for every model. */
START_TEST(a_law_advances_as_its_batch_does)
{
    struct arena arena;
    arena_init(&arena);
    const struct step_model models[] = {
        drive_model(&arena, drive_variant(&arena, &step_constant_variant, "step=1 ms", NULL)),
        drive_model(&arena, drive_variant(&arena, &step_affine_variant, "base=1.234567 ms",
                                          "per_token=3.333333 us", "per_kv_token=7.777 ns", NULL)),
        drive_model(&arena, drive_variant(&arena, &step_rate_variant, "prefill_tokens_per_s=12345",
                                          "decode_tokens_per_s=789", "min_step=20 ms", NULL)),
    };
    uint64_t key = rng_key(3, 0, RNG_TEST, 0);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (uint64_t i = 0; i < 2000; i++) {
            struct step_batch b = random_batch(key, i);
            struct step_law now = law_of(&models[m], &b);
            int64_t k = (int64_t)(rng_draw(key, i, 9).a % 1000);
            struct step_batch after = step_batch_advance(b, k);
            struct step_law later = law_of(&models[m], &after);
            check(now.base_ps > 0 && now.valid_n >= 1);
            check(later.base_ps == now.base_ps + k * now.slope_ps);
            check(later.slope_ps == now.slope_ps);
        }
    }
    arena_free(&arena);
}
END_TEST

START_TEST(a_model_that_takes_no_time_is_refused)
{
    struct arena arena;
    arena_init(&arena);
    struct errors errors;
    errors_init(&errors);
    struct variant_value v =
        drive_variant(&arena, &step_affine_variant, "base=0 s", "per_kv_token=1 us", NULL);
    const struct step_model_type *type = v.type->ops;
    ck_assert_ptr_null(type->build(v.config, &arena, &errors, NULL));
    ck_assert_uint_eq(errors.error_count, 1);
    errors_free(&errors);
    arena_free(&arena);
}
END_TEST

/* 20,000 laws, rising, flat and falling, and times on boundaries, 1 ps beside them and anywhere:
 * reach and complete against adding up one by one. */
START_TEST(inversion_against_adding_up)
{
    uint64_t key = rng_key(4, 0, RNG_TEST, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        struct rng_pair a = rng_draw(key, i, 0), b = rng_draw(key, i, 1);
        uint32_t n = 1 + (uint32_t)(a.a % 200);
        struct step_law law = {.base_ps = 1 + (int64_t)(a.b % (i % 2 ? 5 : 50000000000)),
                               .slope_ps = (int64_t)(b.a % 1000000),
                               .valid_n = UINT32_MAX};
        if (i % 3 == 0) {
            law.slope_ps = -((law.base_ps - 1) / n); /* every step stays > 0 */
        } else if (i % 3 == 1) {
            law.slope_ps = 0;
        }
        int128 at = step_law_sum(&law, (uint32_t)(b.b % (n + 1)));
        int64_t elapsed = (int64_t)at + (int64_t)(i / 3 % 3) - 1;
        int128 sum = 0;
        uint32_t reach = n, complete = 0;
        bool reached = false;
        for (uint32_t k = 1; k <= n; k++) {
            sum += law.base_ps + law.slope_ps * (int64_t)(k - 1);
            check(sum == step_law_sum(&law, k));
            if (sum >= elapsed && !reached) {
                reach = k;
                reached = true;
            }
            complete = sum <= elapsed ? k : complete;
        }
        int64_t reached_ps;
        ck_assert_msg(step_law_reach(&law, n, elapsed, &reached_ps) == reach, "law %llu: reach",
                      (unsigned long long)i);
        ck_assert(reached_ps == step_law_sum(&law, reach));
        ck_assert_msg(step_law_complete(&law, n, elapsed) == complete, "law %llu: complete",
                      (unsigned long long)i);
    }
}
END_TEST

/* The longest spans and steps: exact where doubles have lost their last digits. */
START_TEST(inversion_of_long_spans)
{
    struct step_law law = {.base_ps = 123456789012345, .slope_ps = 7, .valid_n = UINT32_MAX};
    for (uint32_t k = 1; k <= 65536; k += 4095) {
        int64_t at = (int64_t)step_law_sum(&law, k), sum;
        ck_assert_uint_eq(step_law_reach(&law, 65536, at, &sum), k);
        ck_assert_int_eq(sum, at);
        ck_assert_uint_eq(step_law_reach(&law, 65536, at + 1, &sum), k == 65536 ? k : k + 1);
        ck_assert_uint_eq(step_law_complete(&law, 65536, at), k);
        ck_assert_uint_eq(step_law_complete(&law, 65536, at - 1), k - 1);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {affine_costs,
                                  rate_costs,
                                  constant_costs,
                                  a_law_advances_as_its_batch_does,
                                  a_model_that_takes_no_time_is_refused,
                                  inversion_against_adding_up,
                                  inversion_of_long_spans,
                                  NULL};
    return suite_run("step time", tests, 60);
}
