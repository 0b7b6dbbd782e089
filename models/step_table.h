/* The step model `table`: measured points (models/step_table.c). */
#ifndef FLEETSIM_MODELS_STEP_TABLE_H
#define FLEETSIM_MODELS_STEP_TABLE_H

#include "models/step_time.h"

/* For the registry of models/step_time.c. */
extern const struct variant step_table_variant;

#endif
