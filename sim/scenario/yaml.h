/* YAML text → nodes. yaml.c is the only file that includes <libfyaml.h>. */
#ifndef FLEETSIM_SIM_SCENARIO_YAML_H
#define FLEETSIM_SIM_SCENARIO_YAML_H

#include "sim/scenario/node.h"

enum {
    YAML_DEPTH_MAX = 64,     /* nested mappings and lists, aliases expanded */
    YAML_NODES_MAX = 100000, /* of all files of a scenario, aliases expanded */
};

/* Parses one document, source->text[from …]. Aliases become copies. A syntax error is reported once
 * and ends the parse with NULL; duplicate keys (the first one counts) and tags are reported and
 * parsing goes on. *nodes_left is counted down over all parses of a scenario. An empty text is NULL
 * with an error. The nodes live in the arena and point into source. */
struct node *yaml_parse(const struct source *source, size_t from, size_t *nodes_left,
                        struct arena *arena, struct errors *errors);

#endif
