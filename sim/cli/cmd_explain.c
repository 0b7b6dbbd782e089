/* fleetsim explain KEY: what a key of a scenario means; --reference: all of them. */
#include <stddef.h>
#include <stdio.h>

#include "sim/cli/command.h"
#include "sim/cli/output_docs.h"
#include "sim/run/config.h"
#include "sim/scenario/explain.h"

struct explain_options {
    bool reference, outputs;
};

static const struct options_spec explain_specs[] = {
    {.name = "reference",
     .kind = OPTIONS_FLAG,
     .offset = offsetof(struct explain_options, reference),
     .doc = "every key of a scenario, as Markdown (docs/scenario.md)"},
    {.name = "outputs",
     .kind = OPTIONS_FLAG,
     .offset = offsetof(struct explain_options, outputs),
     .doc = "every output, as Markdown (docs/output.md)"},
    {0},
};

static int explain_run(const void *values, const struct options_list *operands)
{
    const struct explain_options *options = values;
    if (operands->count + options->reference + options->outputs != 1) {
        fputs("fleetsim explain: give a KEY, --reference or --outputs\n"
              "`fleetsim help explain` shows how it is used\n",
              stderr);
        return COMMAND_BAD_USAGE;
    }
    if (options->reference) {
        explain_reference(stdout, config_fields);
        return COMMAND_OK;
    }
    if (options->outputs) {
        output_docs_print(stdout);
        return COMMAND_OK;
    }
    return explain_print(stdout, config_fields, operands->items[0]) ? COMMAND_OK
                                                                    : COMMAND_BAD_INPUT;
}

const struct command cmd_explain_command = {
    .name = "explain",
    .summary = "what a key of a scenario means, its unit, default and range",
    .operands = "[KEY]",
    .operands_min = 0,
    .operands_max = 1,
    .options = explain_specs,
    .options_size = sizeof(struct explain_options),
    .text =
        "KEY is a path (fleet.pools.engine.block_size), its end (block_size), or the name of a\n"
        "choice (least_loaded).\n",
    .example = "fleetsim explain autoscaler.target\n"
               "fleetsim explain poisson\n",
    .run = explain_run,
};
