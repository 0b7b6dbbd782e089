/* How many requests each user sent, where a collection does not say: one whole number per group of
 * rows, inferred from rows that are not scored with it. */
#ifndef FLEETSIM_TESTS_VALIDATION_SUPPORT_WAVES_H
#define FLEETSIM_TESTS_VALIDATION_SUPPORT_WAVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* WAVES_TEN: the index of ten, which InferenceX's scripts send. */
enum { WAVES_COUNTS = 9, WAVES_TEN = 5 };
/* Requests per user, rising. */
extern const int64_t waves_counts[WAVES_COUNTS];

struct waves_row {
    const char *group;           /* borrowed; a collection and engine version */
    bool kept;                   /* the excluded choose nothing */
    double fold;                 /* equal: choose nothing for each other */
    double errors[WAVES_COUNTS]; /* with waves_counts[i] requests per user */
};

/* The index of the count with the least median absolute error over the kept rows of the row's
 * group and other folds, so never over the row itself; of several, the smallest count; ten where
 * there are no such rows. */
size_t waves_held_out(const struct waves_row *rows, size_t count, size_t row);

#endif
