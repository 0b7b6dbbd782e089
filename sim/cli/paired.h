/* What replications say of several variants, and of how each differs from the first: under common
 * random numbers the differences are taken within each replication. */
#ifndef FLEETSIM_SIM_CLI_PAIRED_H
#define FLEETSIM_SIM_CLI_PAIRED_H

#include <stddef.h>
#include <stdio.h>

#include "sim/cli/headline.h"

struct paired {
    size_t count, replications;
    const char **names;    /* [count] */
    double *const *values; /* [count], each [HEADLINE_COUNT · replications]: by headline */
};

/* Both as tables: a row for each headline, a column for each variant. */
void paired_print(const struct paired *paired, FILE *out);
/* Members `intervals` and, but for the first, `differences`, into the open object of a variant. */
void paired_json(struct json *json, const struct paired *paired, size_t variant);

#endif
