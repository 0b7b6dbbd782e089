/* The values of options that are numbers or names: "--tpot '50 ms'". */
#ifndef FLEETSIM_SIM_CLI_QUANTITY_H
#define FLEETSIM_SIM_CLI_QUANTITY_H

#include <stdbool.h>

#include "sim/base/errors.h"
#include "sim/base/units.h"

/* A quantity from low to high; text NULL: the fallback. False after an error that names the
 * option. */
bool quantity_read(const char *text, const char *option, enum unit unit, double fallback,
                   double low, double high, double *value, struct errors *errors);
/* The same for a count: a fraction is an error, not cut off. */
bool quantity_whole(const char *text, const char *option, enum unit unit, double fallback,
                    double low, double high, double *value, struct errors *errors);
/* The index of a name in a NULL-terminated list; text NULL: *value stays. */
bool quantity_choice(const char *text, const char *option, const char *const *names, int *value,
                     struct errors *errors);

#endif
