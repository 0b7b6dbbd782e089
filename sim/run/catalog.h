/* The catalogue: models' field tables joined with YAML files. A reference is a name under
 * models/catalog/{llm,gpu,price,cold_start} or a path to a user's own file; a model may also be a
 * path to a Hugging Face config.json (or to the folder that holds it). */
#ifndef FLEETSIM_SIM_RUN_CATALOG_H
#define FLEETSIM_SIM_RUN_CATALOG_H

#include <stddef.h>

#include "models/hardware.h"
#include "models/llm.h"
#include "models/price.h"
#include "sim/base/arena.h"
#include "sim/base/errors.h"

enum catalog_kind {
    CATALOG_LLM,
    CATALOG_GPU,
    CATALOG_PRICE,
    CATALOG_COLD_START,
    CATALOG_KIND_COUNT
};
/* Folder names: "llm", "gpu", "price", "cold_start". */
extern const char *const catalog_folders[CATALOG_KIND_COUNT];

/* Each returns the spec, checked, in the arena, or NULL with the errors. `where` is the place that
 * names it, for "unknown gpu 'h20O', did you mean 'h200-sxm'?"; may be NULL. */
const struct llm_spec *catalog_llm(const char *name, struct arena *arena, struct errors *errors,
                                   const struct source_pos *where);
const struct gpu_spec *catalog_gpu(const char *name, struct arena *arena, struct errors *errors,
                                   const struct source_pos *where);
const struct price_spec *catalog_price(const char *name, struct arena *arena, struct errors *errors,
                                       const struct source_pos *where);

/* The file that a name or path of that kind means, in the arena; NULL with an error. */
const char *catalog_path(enum catalog_kind kind, const char *name, struct arena *arena,
                         struct errors *errors, const struct source_pos *where);

/* The names of one kind, sorted, NULL-terminated, in the arena. Empty when no catalogue is found.
 */
const char *const *catalog_names(enum catalog_kind kind, struct arena *arena);
/* The folder in use: $FLEETSIM_CATALOG, else share/fleetsim/catalog beside the program's bin, else
 * the source tree it was built from. NULL when none exists. In the arena. */
const char *catalog_root(struct arena *arena);
/* Why catalog_root found none, for a message. In the arena. */
const char *catalog_missing(struct arena *arena);

#endif
