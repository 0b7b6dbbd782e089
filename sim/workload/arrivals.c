#include "sim/workload/arrivals.h"

const struct variant *const arrivals_variants[] = {&arrivals_poisson_variant,
                                                   &arrivals_constant_variant,
                                                   &arrivals_gamma_variant,
                                                   &arrivals_mmpp_variant,
                                                   &arrivals_trace_variant,
                                                   &arrivals_closed_loop_variant,
                                                   NULL};
