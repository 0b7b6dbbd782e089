/* The variants of `compare`: NAME:KEY=VALUE[,KEY=VALUE]… */
#ifndef FLEETSIM_SIM_CLI_VARIANT_H
#define FLEETSIM_SIM_CLI_VARIANT_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/cli/options.h"

struct variant_spec {
    const char *name;         /* arena */
    struct options_list sets; /* arena; "KEY=VALUE" each; may be empty */
};

/* Reads one. Commas inside brackets, braces and quotes do not split. False after reporting on err,
 * led by who. */
bool variant_parse(const char *text, const char *who, struct variant_spec *variant,
                   struct arena *arena, FILE *err);

#endif
