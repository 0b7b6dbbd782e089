/* Where in the scenario a part of the traffic stands: so that every module of this folder can point
 * its errors at the key that is wrong. */
#ifndef FLEETSIM_SIM_WORKLOAD_SITE_H
#define FLEETSIM_SIM_WORKLOAD_SITE_H

#include <stddef.h>

#include "sim/base/errors.h"

struct site {
    const struct locator *where; /* borrowed; NULL: no places known */
    struct errors *errors;       /* borrowed */
    size_t class_index;          /* entry of `workload:` */
    const char *class_name;      /* borrowed; NULL: not yet known */
};

/* Adds an error at workload[class_index].KEY; key "" is the entry itself. */
void site_error(const struct site *site, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
