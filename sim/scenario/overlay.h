/* One scenario laid over another: `extends:` and `--set`. Both follow the field tables, to know
 * where a key is the tag of a VARIANT. */
#ifndef FLEETSIM_SIM_SCENARIO_OVERLAY_H
#define FLEETSIM_SIM_SCENARIO_OVERLAY_H

#include "sim/base/field.h"
#include "sim/scenario/node.h"

/* owner, below, is the field whose value a mapping is (the root: a FIELD_STRUCT of its own); NULL
 * where no table knows the key. */

/* Lays over over base and returns the result; both are used up. Mappings merge key by key, lists
 * and scalars replace. A mapping of a VARIANT whose tag (policy, process, dist, …) the overlay
 * changes replaces the base's mapping as a whole: the keys of another policy would only be errors.
 */
struct node *overlay_merge(const struct field *owner, struct node *base, struct node *over,
                           struct arena *arena);

/* Carries out source->text = "path=value" (a --set) on root. Mappings on the way are made where
 * they are missing; an index beyond a list's end is an error. The value is YAML on one line and
 * replaces what was there. Setting the tag of a VARIANT to another variant drops the keys which
 * that one does not know and the old one did, with a warning that names them. */
bool overlay_set(const struct field *owner, struct node *root, const struct source *source,
                 size_t *nodes_left, struct arena *arena, struct errors *errors);

/* The field behind a key of a mapping that owner describes; NULL when unknown. */
const struct field *overlay_child(const struct field *owner, const struct node *mapping,
                                  const char *key);

#endif
