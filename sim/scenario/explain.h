/* What the field tables say, for people: `fleetsim explain KEY` and the reference page. */
#ifndef FLEETSIM_SIM_SCENARIO_EXPLAIN_H
#define FLEETSIM_SIM_SCENARIO_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/field.h"

/* Prints every key that key means: a path ("fleet.pools.engine.block_size", indices allowed), the
 * end of one ("engine.block_size", "block_size"), or the name of a variant ("least_loaded"). For
 * each its path, meaning, type with unit, default, range, and choices or variants. When there is
 * none, prints the nearest one instead and returns false. */
bool explain_print(FILE *out, const struct field *root, const char *key);

/* Prints the whole reference as Markdown: one table per mapping, in the order of the tables. */
void explain_reference(FILE *out, const struct field *root);

#endif
