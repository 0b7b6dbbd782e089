/* The short form of compare's variants: one per autoscaling policy, with what it needs taken from
 * the scenario and its plan. */
#ifndef FLEETSIM_SIM_CLI_POLICIES_H
#define FLEETSIM_SIM_CLI_POLICIES_H

#include "sim/cli/variant.h"
#include "sim/run/run.h"

enum { POLICIES_MAX = 20 };

/* Reads "static,target,…" into variants called as their policies. base: the scenario, opened. A
 * policy that the scenario itself has stays as it is there. sized: replicas of the variant called
 * static, whatever the scenario says; 0: its plan's peak. Where the base's capacity was measured,
 * target, warm_pool and predictive go by what that saw instead of utilisation. Returns how many; 0
 * after reporting on stderr. Texts live in the arena. */
size_t policies_read(const char *list, const struct run *base, uint32_t sized,
                     struct variant_spec *variants, struct arena *arena);

#endif
