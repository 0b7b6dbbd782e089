/* Runs the real engine and fleet on a random scenario, in span or in step mode, and collects what
 * the naive engine collects. */
#ifndef FLEETSIM_TESTS_PROP_SUPPORT_ENGINE_H
#define FLEETSIM_TESTS_PROP_SUPPORT_ENGINE_H

#include "tests/prop/support_naive.h"
#include "tests/prop/support_scenario_gen.h"

/* span_max: ENGINE_SPAN_MAX, 1 to step, or anything between. The result is what naive_run would
 * give; fields only the naive engine has (integrals over time, end_ps, coverage) are zero. Free
 * with naive_free. */
struct naive_result *engine_run(const struct prop_case *c, uint32_t span_max);

/* Whether two results agree in everything both have; else says the first difference to out (may be
 * NULL). */
bool engine_results_equal(const struct naive_result *a, const struct naive_result *b,
                          const struct prop_case *c, FILE *out);

#endif
