/* Nodes → structs, by field tables. */
#ifndef FLEETSIM_SIM_SCENARIO_FILL_H
#define FLEETSIM_SIM_SCENARIO_FILL_H

#include "sim/base/field.h"
#include "sim/scenario/node.h"

/* Fills the struct at target, already holding its defaults, from a mapping; reports everything that
 * is wrong. place: where the mapping is, as "at the top level" or "in an axis". Values live in
 * arena, the words of messages in scratch. */
void fill_root(const struct field *root, const struct node *mapping, const char *place,
               void *target, struct arena *arena, struct arena *scratch, struct errors *errors);

#endif
