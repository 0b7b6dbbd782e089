/* What independent replications say of a mean. */
#ifndef FLEETSIM_SIM_RUN_INTERVAL_H
#define FLEETSIM_SIM_RUN_INTERVAL_H

#include <stddef.h>

struct interval {
    double mean; /* NaN with n = 0 */
    double half; /* half the width of the 95 % interval, by Student's t; NaN with n < 2 */
};
struct interval interval_of(const double *values, size_t n);

#endif
