#include "models/step_time.h"

#include "models/roofline.h"
#include "models/step_table.h"

#include <math.h>

const struct variant *const step_time_variants[] = {
    &step_roofline_variant, &step_rate_variant,  &step_affine_variant,
    &step_constant_variant, &step_table_variant, NULL,
};

/* The real k with Σ_{i<k} step(i) = elapsed, from base·k + slope·k(k−1)/2: a seed only. */
static uint32_t law_seed(const struct step_law *law, uint32_t n, int64_t elapsed_ps)
{
    double half = 0.5 * (double)law->slope_ps;
    double linear = (double)law->base_ps - half;
    double elapsed = (double)elapsed_ps;
    double k = elapsed / (double)law->base_ps;
    if (law->slope_ps != 0) {
        /* The stable form of the root: no cancellation when slope is small. */
        double d = linear * linear + 4.0 * half * elapsed;
        k = d > 0 ? 2.0 * elapsed / (linear + sqrt(d)) : (double)n;
    }
    if (!(k >= 1.0)) {
        return 1;
    }
    return k >= (double)n ? n : (uint32_t)k;
}

static int128 step_of(const struct step_law *law, uint32_t i)
{
    return law->base_ps + (int128)law->slope_ps * i;
}

uint32_t step_law_reach(const struct step_law *law, uint32_t n, int64_t elapsed_ps, int64_t *sum_ps)
{
    debug_check(n >= 1);
    uint32_t k = law_seed(law, n, elapsed_ps);
    /* Moved by single steps: their sum changes by step(k). */
    int128 sum = step_law_sum(law, k), before;
    while (k > 1 && (before = sum - step_of(law, k - 1)) >= elapsed_ps) {
        sum = before;
        k--;
    }
    while (k < n && sum < elapsed_ps) {
        sum += step_of(law, k++);
    }
    *sum_ps = (int64_t)sum;
    return k;
}

uint32_t step_law_complete(const struct step_law *law, uint32_t n, int64_t elapsed_ps)
{
    debug_check(n >= 1);
    uint32_t k = law_seed(law, n, elapsed_ps);
    while (k > 0 && step_law_sum(law, k) > elapsed_ps) {
        k--;
    }
    while (k < n && step_law_sum(law, k + 1) <= elapsed_ps) {
        k++;
    }
    return k;
}
