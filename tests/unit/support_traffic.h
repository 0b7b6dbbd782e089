/* Traffic configs for tests, from one line of text, through the field tables that YAML goes
 * through. */
#ifndef FLEETSIM_TESTS_UNIT_SUPPORT_TRAFFIC_H
#define FLEETSIM_TESTS_UNIT_SUPPORT_TRAFFIC_H

#include "sim/workload/workload.h"

/* "name=chat; arrivals=poisson; arrivals.rate=10 /s; arrivals.curve=hourly; arrivals.curve.values=
 * 1,2,…": a key whose field is a variant selects it by its tag's value. Fails the test on a key or
 * value that does not exist. In the arena. */
struct traffic_config *traffic_make(struct arena *arena, const char *spec);
/* Opens classes with seed 1, replication 0, start 0 and this horizon. */
struct workload *traffic_open(const struct traffic_config *const *classes, size_t count,
                              int64_t horizon_ps, struct errors *errors);
/* Fails the test unless the errors hold one whose message contains text, at this line and column
 * (0: any). */
void traffic_expect_error(const struct errors *errors, uint32_t line, uint32_t column,
                          const char *text);
/* A path under the build directory that no other test or process uses; static buffer. */
const char *traffic_temp(const char *suffix);
/* Path of a file under the shared data folder, or NULL after printing a SKIP line; static buffer.
 */
const char *traffic_shared(const char *relative);

#endif
