/* log, exp and the normal quantile from basic IEEE operations (and sqrt) only: glibc picks FMA
 * variants of its own by CPU, and a draw that decides the order of events must not depend on that.
 * Tested against libm: log and exp within 1 ulp. */
#ifndef FLEETSIM_SIM_BASE_DETMATH_H
#define FLEETSIM_SIM_BASE_DETMATH_H

/* Natural logarithm, x > 0 and finite (subnormals included). */
double detmath_log(double x);
/* e^x; underflows to 0 and overflows to infinity as exp does. */
double detmath_exp(double x);
/* Φ⁻¹(p), 0 < p < 1: Wichura's AS 241 (PPND16), relative error about 1e-15. */
double detmath_normal_quantile(double p);
/* The same of two values in place, to the same bits, in little more than the time of one. */
void detmath_log_pair(double x[2]);
void detmath_exp_pair(double x[2]);
void detmath_normal_quantile_pair(double p[2]);
/* cos(2π x), any finite x: for daily curves. Absolute error < 1e-15. */
double detmath_cos_turns(double x);

#endif
