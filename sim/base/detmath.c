#include "sim/base/detmath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sim/base/check.h"

/* Only + - * / sqrt, comparisons, exact scaling and nearbyint appear here: IEEE 754 defines each to
 * the last bit. The tree is built with -ffp-contract=off, so no product is fused into a sum. */

/* ln 2 as a head of 32 bits, whose product with any exponent is exact, and the rest. */
static const double LN2_HIGH = 0x1.62e42feep-1;
static const double LN2_LOW = 0x1.a39ef35793c76p-33;
static const double LOG2_E = 0x1.71547652b82fep+0;

/* Two doubles side by side: each goes through the operations it would go through alone, to the same
 * bits, in the time that one takes. */
typedef double pair __attribute__((vector_size(2 * sizeof(double))));

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double double_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* x = 2^k · (1 + f) with 1 + f in [√½, √2). With s = f / (2 + f),
 *     ln(1 + f) = 2 artanh(s) = 2s + s·R,   R = 2 (s²/3 + s⁴/5 + s⁶/7 + …)
 * and, because 2s = f - s·f, in a form whose leading term f is exact (Tang 1990; fdlibm):
 *     ln(1 + f) = f - (f²/2 - s·(f²/2 + R)).
 * s² ≤ 0.02944, so eleven terms of the series leave 2^-63. */
static double log_split(double x, double *exponent)
{
    check(x > 0 && x <= 0x1.fffffffffffffp1023);
    int64_t k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    uint64_t bits = double_bits(x);
    /* Adding the distance from √½ to 1 carries into the exponent exactly when 1 + f ≥ √2. */
    const uint64_t sqrt_half = UINT64_C(0x3FE6A09E667F3BCD), one = UINT64_C(0x3FF0000000000000);
    bits += one - sqrt_half;
    k += (int64_t)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) + sqrt_half;
    *exponent = (double)k;
    return double_from_bits(bits) - 1.0;
}

static pair log_join(pair f, pair e)
{
    pair s = f / (2.0 + f), z = s * s, w = z * z;
    /* Even and odd powers apart: two short chains run side by side. */
    pair even = w * (2.0 / 5 + w * (2.0 / 9 + w * (2.0 / 13 + w * (2.0 / 17 + w * (2.0 / 21)))));
    pair odd =
        z * (2.0 / 3 +
             w * (2.0 / 7 + w * (2.0 / 11 + w * (2.0 / 15 + w * (2.0 / 19 + w * (2.0 / 23))))));
    pair r = even + odd, half = 0.5 * f * f;
    return e * LN2_HIGH - ((half - (s * (half + r) + e * LN2_LOW)) - f);
}

double detmath_log(double x)
{
    double e, f = log_split(x, &e);
    return log_join((pair){f, f}, (pair){e, e})[0];
}

void detmath_log_pair(double x[2])
{
    double e[2], f[2] = {log_split(x[0], &e[0]), log_split(x[1], &e[1])};
    pair y = log_join((pair){f[0], f[1]}, (pair){e[0], e[1]});
    x[0] = y[0];
    x[1] = y[1];
}

/* x = k ln 2 + r, |r| ≤ ½ ln 2, r = high - low. With the even function
 *     R(r) = r (eʳ + 1)/(eʳ - 1) = 2 + r²/6 - r⁴/360 + r⁶/15120 - …  (2 Σ B₂ₙ r²ⁿ/(2n)!)
 *     eʳ = 1 + 2r / (R - r) = 1 + r + r·c / (2 - c),   c = r - (R - 2)
 * (Tang 1989; fdlibm). r² ≤ 0.1202, so the series up to r¹⁴ leaves 2^-64 of the result. */
static pair exp_parts(pair x, pair *power)
{
    /* To the nearest integer, ties to even, as a sum: its bits below 1 do not fit. |x| < 2^10. */
    const double shift = 0x1.8p52;
    pair k = (x * LOG2_E + shift) - shift;
    pair high = x - k * LN2_HIGH, low = k * LN2_LOW;
    pair r = high - low, z = r * r;
    pair c =
        r - z * (1.0 / 6 + z * (-1.0 / 360 +
                                z * (1.0 / 15120 +
                                     z * (-1.0 / 604800 +
                                          z * (1.0 / 23950080 + z * (-691.0 / 653837184000 +
                                                                     z * (1.0 / 37362124800)))))));
    *power = k;
    return 1.0 - ((low - r * c / (2.0 - c)) - high);
}

/* y · 2^k in one rounding; the exponent field alone cannot hold the ends of the range. */
static double exp_join(double y, double k)
{
    int64_t n = (int64_t)k;
    if (n > 1023) {
        return y * 0x1p1023 * double_from_bits((uint64_t)(n - 1023 + 1023) << 52);
    }
    if (n < -1021) {
        return y * double_from_bits((uint64_t)(n + 1021 + 1023) << 52) * 0x1p-1021;
    }
    return y * double_from_bits((uint64_t)(n + 1023) << 52);
}

static const double EXP_MAX = 710.0, EXP_MIN = -746.0; /* beyond: infinity, 0 */

double detmath_exp(double x)
{
    check(x == x);
    if (x > EXP_MAX) {
        return INFINITY;
    }
    if (x < EXP_MIN) {
        return 0;
    }
    pair k, y = exp_parts((pair){x, x}, &k);
    return exp_join(y[0], k[0]);
}

void detmath_exp_pair(double x[2])
{
    for (int i = 0; i < 2; i++) {
        if (!(x[i] >= EXP_MIN && x[i] <= EXP_MAX)) {
            x[0] = detmath_exp(x[0]);
            x[1] = detmath_exp(x[1]);
            return;
        }
    }
    pair k, y = exp_parts((pair){x[0], x[1]}, &k);
    x[0] = exp_join(y[0], k[0]);
    x[1] = exp_join(y[1], k[1]);
}

/* Two polynomials of degree 7 in x, low order first: numerator in one lane, denominator in the
 * other. Returns their ratio. */
static double ratio7(double x, const pair *coefficients)
{
    pair both = coefficients[7];
    for (int i = 6; i >= 0; i--) {
        both = both * x + coefficients[i];
    }
    return both[0] / both[1];
}

/* M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied
 * Statistics 37 (1988) 477-484, routine PPND16: its a and b, c and d, e and f. */
static const pair AS241_CENTRE[8] = {{3.3871328727963666080e0, 1.0},
                                     {1.3314166789178437745e+2, 4.2313330701600911252e+1},
                                     {1.9715909503065514427e+3, 6.8718700749205790830e+2},
                                     {1.3731693765509461125e+4, 5.3941960214247511077e+3},
                                     {4.5921953931549871457e+4, 2.1213794301586595867e+4},
                                     {6.7265770927008700853e+4, 3.9307895800092710610e+4},
                                     {3.3430575583588128105e+4, 2.8729085735721942674e+4},
                                     {2.5090809287301226727e+3, 5.2264952788528545610e+3}};
static const pair AS241_TAIL[8] = {{1.42343711074968357734e0, 1.0},
                                   {4.63033784615654529590e0, 2.05319162663775882187e0},
                                   {5.76949722146069140550e0, 1.67638483018380384940e0},
                                   {3.64784832476320460504e0, 6.89767334985100004550e-1},
                                   {1.27045825245236838258e0, 1.48103976427480074590e-1},
                                   {2.41780725177450611770e-1, 1.51986665636164571966e-2},
                                   {2.27238449892691845833e-2, 5.47593808499534494600e-4},
                                   {7.74545014278341407640e-4, 1.05075007164441684324e-9}};
static const pair AS241_FAR_TAIL[8] = {{6.65790464350110377720e0, 1.0},
                                       {5.46378491116411436990e0, 5.99832206555887937690e-1},
                                       {1.78482653991729133580e0, 1.36929880922735805310e-1},
                                       {2.96560571828504891230e-1, 1.48753612908506148525e-2},
                                       {2.65321895265761230930e-2, 7.86869131145613259100e-4},
                                       {1.24266094738807843860e-3, 1.84631831751005468180e-5},
                                       {2.71155556874348757815e-5, 1.42151175831644588870e-7},
                                       {2.01033439929228813265e-7, 2.04426310338993978564e-15}};

static inline double normal_quantile(double p)
{
    check(p > 0 && p < 1);
    double q = p - 0.5;
    if (q >= -0.425 && q <= 0.425) {
        return q * ratio7(0.180625 - q * q, AS241_CENTRE);
    }
    double r = sqrt(-detmath_log(q < 0 ? p : 1.0 - p));
    double x = r <= 5.0 ? ratio7(r - 1.6, AS241_TAIL) : ratio7(r - 5.0, AS241_FAR_TAIL);
    return q < 0 ? -x : x;
}

double detmath_normal_quantile(double p)
{
    return normal_quantile(p);
}

void detmath_normal_quantile_pair(double p[2])
{
    p[0] = normal_quantile(p[0]);
    p[1] = normal_quantile(p[1]);
}

double detmath_cos_turns(double x)
{
    check(x - x == 0); /* finite */
    /* Exact reductions: to a turn, to half a turn by evenness, to the first quarter by symmetry. */
    double turn = x - nearbyint(x);
    double a = turn < 0 ? -turn : turn;
    double sign = 1.0;
    if (a > 0.25) {
        a = 0.5 - a;
        sign = -1.0;
    }
    const double two_pi = 0x1.921fb54442d18p+2;
    if (a <= 0.125) {
        double t = two_pi * a, z = t * t;
        double rest =
            z * (1.0 / 24 + z * (-1.0 / 720 +
                                 z * (1.0 / 40320 + z * (-1.0 / 3628800 +
                                                         z * (1.0 / 479001600 +
                                                              z * (-1.0 / 87178291200 +
                                                                   z * (1.0 / 20922789888000)))))));
        return sign * (1.0 - z * (0.5 - rest));
    }
    double t = two_pi * (0.25 - a), z = t * t;
    double rest =
        z * (-1.0 / 6 +
             z * (1.0 / 120 +
                  z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                                                              z * (1.0 / 6227020800 +
                                                                   z * (-1.0 / 1307674368000)))))));
    return sign * (t + t * rest);
}
