#include "sim/run/interval.h"

#include <math.h>

#include <gsl/gsl_cdf.h>

struct interval interval_of(const double *values, size_t n)
{
    struct interval result = {.mean = NAN, .half = NAN};
    double sum = 0, squares = 0;
    if (n == 0)
        return result;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    result.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - result.mean) * (values[i] - result.mean);
    if (n >= 2)
        result.half =
            gsl_cdf_tdist_Pinv(0.975, (double)n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
    return result;
}
