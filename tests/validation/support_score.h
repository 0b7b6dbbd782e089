/* Relative errors, summed up and printed as rows of a table. */
#ifndef FLEETSIM_TESTS_VALIDATION_SUPPORT_SCORE_H
#define FLEETSIM_TESTS_VALIDATION_SUPPORT_SCORE_H

#include <stddef.h>

struct score {
    size_t count;
    double median;             /* of the absolute errors */
    double within20, within30; /* shares */
    double bias;               /* median of the signed errors */
};

/* errors: predicted / measured − 1. */
struct score score_of(const double *errors, size_t count);
void score_print_head(const char *title);
void score_print(const char *name, struct score score);

#endif
