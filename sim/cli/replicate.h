/* Runs of one scenario under independent chance: the option and the --set of a replication. */
#ifndef FLEETSIM_SIM_CLI_REPLICATE_H
#define FLEETSIM_SIM_CLI_REPLICATE_H

#include <stddef.h>

#include "sim/cli/options.h"

enum { REPLICATIONS_MAX = 1000 };

/* "--replications N": 1 when text is NULL; 0 after reporting on stderr, led by who. */
size_t replicate_count(const char *text, const char *who);
/* sets, and "replication=k". In the arena. */
struct options_list replicate_sets(const struct options_list *sets, size_t replication,
                                   struct arena *arena);

#endif
