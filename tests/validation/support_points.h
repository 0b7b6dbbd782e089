/* The measured serving points, joined with catalogue models. */
#ifndef FLEETSIM_TESTS_VALIDATION_SUPPORT_POINTS_H
#define FLEETSIM_TESTS_VALIDATION_SUPPORT_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "models/serving.h"

enum point_exclusion { POINT_KEPT, POINT_MULTI_TOKEN, POINT_IMPOSSIBLE, POINT_EXCLUSIONS };
extern const char *const points_exclusion_names[POINT_EXCLUSIONS];

struct point {
    char id[192], engine[32], version[32], model[64], system[32], precision[8];
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
    struct parallel parallel;
    struct precision formats;
    double prompt, output; /* true means: 0.9 of the nominal lengths */
    double concurrency;
    double ttft_s, tpot_s; /* measured */
    enum point_exclusion exclusion;
    bool fits; /* in the memory model */
    struct serving_estimate estimate;
};

struct points {
    struct point *items; /* arena */
    size_t count;
};

/* The file, or NULL where the data is absent. */
const char *points_path(struct arena *arena);
struct points points_load(const char *path, struct arena *arena);
/* Fills estimate; factors NULL: the defaults. */
void points_predict(struct points *points, const struct roofline_factors *factors);
/* A point's step model, and its memory; factors NULL: the defaults. */
struct roofline_config points_roofline(const struct point *point,
                                       const struct roofline_factors *factors);
struct memory_plan points_memory(const struct point *point);
/* Marks what matches a trap of the data's README. */
void points_exclude(struct points *points);

#endif
