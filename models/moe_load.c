#include "models/moe_load.h"

#include <math.h>

#include "sim/base/detmath.h"

double moe_load_extreme(double n)
{
    return n > 1 ? detmath_normal_quantile((n - 0.375) / (n + 0.25)) : 0;
}

double moe_load_uniform(double ranks, double assignments)
{
    if (ranks <= 1 || assignments <= 0)
        return 1;
    return 1 + moe_load_extreme(ranks) * sqrt(ranks / assignments * (1 - 1 / ranks));
}

double moe_load_skewed(double ranks, double assignments, double cv, double experts)
{
    if (ranks <= 1 || assignments <= 0)
        return 1;
    return 1 + moe_load_extreme(ranks) * sqrt(ranks / assignments + cv * cv * ranks / experts);
}

double moe_load_attention(double ranks, double sequences, double cv, int random_assignment)
{
    if (ranks <= 1 || sequences <= 0)
        return 1;
    double spread = random_assignment ? sqrt((1 + cv * cv) / sequences) : cv / sqrt(sequences);
    return 1 + moe_load_extreme(ranks) * spread;
}
