/* Temporary files of runs that were killed. */
#ifndef FLEETSIM_SIM_CLI_STALE_H
#define FLEETSIM_SIM_CLI_STALE_H

#include "sim/base/errors.h"

/* Removes what killed runs left beside path (NULL: nothing): its files of the names that writers
 * use until a file is whole, when the process in the name is dead here and an hour has passed
 * since, in case it lives on another machine that shares the folder. Warns of each. */
void stale_remove(const char *path, struct errors *errors);

#endif
