/* Measured cold starts of the catalogue: `cold_start: {preset: NAME}` takes over what its file
 * states, except what the scenario states itself. */
#ifndef FLEETSIM_SIM_RUN_COLD_START_PRESET_H
#define FLEETSIM_SIM_RUN_COLD_START_PRESET_H

#include "sim/base/errors.h"
#include "sim/run/config.h"
#include "sim/scenario/scenario.h"

/* One file of models/catalog/cold_start. */
struct cold_start_preset {
    const char *name, *hardware, *engine, *source, *date, *notes;
    struct cold_start_config phases;
};
extern const struct field cold_start_preset_fields[];

/* Fills the phases of every pool that names a preset. Later echoes show them in full. Returns
 * whether there was no error. */
bool cold_start_preset_apply(struct run_config *config, const struct scenario *scenario,
                             const struct locator *where, struct arena *arena,
                             struct errors *errors);
/* The preset of that name or path; *stated: a bit for each entry of cold_start_fields that its file
 * states. NULL after adding the error. */
const struct cold_start_preset *cold_start_preset_load(const char *name, uint64_t *stated,
                                                       struct arena *arena, struct errors *errors,
                                                       const struct source_pos *where);

#endif
