/* What the groups gpu, experts and hot_experts of the result file mean. */
#include "sim/run/expert_run.h"

#define GPU(name_, type_, unit_, member, long_, doc_)                                              \
    {                                                                                              \
        .name = name_, .type = type_, .offset = offsetof(struct expert_gpu_row, member),           \
        .unit = unit_, .long_name = long_, .doc = doc_                                             \
    }
const struct column expert_columns_gpu[] = {
    GPU("pool", COLUMN_INT64, "1", pool, "pool", "Index of the pool in the scenario."),
    GPU("layer_group", COLUMN_INT64, "1", layer_group, "layer group",
        "Group of consecutive MoE layers, from 0."),
    GPU("rank", COLUMN_INT64, "1", rank, "expert-parallel rank",
        "Rank in the expert-parallel group of each replica (of the stage that holds the layers); "
        "`parallel.expert` of them."),
    GPU("tokens", COLUMN_INT64, "tokens", tokens, "token-expert pairs",
        "Token-expert pairs this rank computed in one layer of the group, summed over replicas: "
        "an exact multinomial draw over the copies for the iterations that ended in the interval."),
    GPU("load", COLUMN_DOUBLE, "1", load, "load over mean",
        "tokens over the mean of the ranks of this pool and layer group; undefined without "
        "tokens."),
    {.type = COLUMN_END}};

#define LAYER(name_, type_, unit_, member, long_, doc_)                                            \
    {                                                                                              \
        .name = name_, .type = type_, .offset = offsetof(struct expert_layer_row, member),         \
        .unit = unit_, .long_name = long_, .doc = doc_                                             \
    }
const struct column expert_columns_layer[] = {
    LAYER("pool", COLUMN_INT64, "1", pool, "pool", "Index of the pool in the scenario."),
    LAYER("layer_group", COLUMN_INT64, "1", layer_group, "layer group",
          "Group of consecutive MoE layers, from 0."),
    LAYER("layers", COLUMN_INT64, "1", layers, "layers",
          "MoE layers in the group, all pipeline stages."),
    LAYER("tokens", COLUMN_INT64, "tokens", tokens, "tokens",
          "Tokens (prompt and output, recomputed ones included) of the iterations that ended in "
          "the interval; every one passes every layer."),
    LAYER("pairs", COLUMN_INT64, "tokens", pairs, "token-expert pairs",
          "Token-expert pairs of one layer: tokens × experts per token."),
    LAYER("max_over_mean", COLUMN_DOUBLE, "1", max_over_mean, "busiest GPU over mean",
          "Largest of the ranks' tokens over their mean: 1 is perfect balance. Over the whole "
          "interval, so without the chance of single steps."),
    LAYER("mean_over_max", COLUMN_DOUBLE, "1", mean_over_max, "balance",
          "Mean of the ranks' tokens over the largest: 1 is perfect balance; the share of the "
          "GPUs' time that expert work fills when all wait for the busiest."),
    LAYER("step_max_over_mean", COLUMN_DOUBLE, "1", step_max_over_mean,
          "busiest GPU over mean in a step",
          "Mean over iterations of the expected max/mean that each paid for, at its own number of "
          "tokens: skew and chance together; all layers of the slowest stage, the same in every "
          "layer group."),
    LAYER("expert_max_over_mean", COLUMN_DOUBLE, "1", expert_max_over_mean,
          "hottest expert over mean",
          "Most tokens of an expert (its copies together) over the mean of the experts."),
    LAYER("hottest_rank", COLUMN_INT64, "1", hottest_rank, "busiest rank",
          "Rank with the most tokens."),
    LAYER("hottest_expert", COLUMN_INT64, "1", hottest_expert, "hottest expert",
          "Expert with the most tokens."),
    LAYER("hottest_tokens", COLUMN_INT64, "tokens", hottest_tokens, "tokens of the hottest expert",
          "Tokens of that expert."),
    LAYER("placements", COLUMN_INT64, "1", placements, "placements",
          "Rebalancings in the interval."),
    LAYER("moved_copies", COLUMN_INT64, "1", moved_copies, "copies moved",
          "Copies of experts that rebalancings moved, one layer of the group, one replica."),
    LAYER("stall", COLUMN_DOUBLE, "s", stall_s, "stall",
          "Time each running replica waited for rebalancings, all layers together; the same in "
          "every layer group."),
    {.type = COLUMN_END}};

#define HOT(name_, type_, unit_, member, long_, doc_)                                              \
    {                                                                                              \
        .name = name_, .type = type_, .offset = offsetof(struct expert_hot_row, member),           \
        .unit = unit_, .long_name = long_, .doc = doc_                                             \
    }
const struct column expert_columns_hot[] = {
    HOT("start", COLUMN_TIME, "s", start_ps, "start of the interval",
        "Start of the interval, seconds after the run's start."),
    HOT("pool", COLUMN_INT64, "1", pool, "pool", "Index of the pool in the scenario."),
    HOT("layer_group", COLUMN_INT64, "1", layer_group, "layer group",
        "Group of consecutive MoE layers, from 0."),
    HOT("place", COLUMN_INT64, "1", place, "place", "1: the most tokens."),
    HOT("expert", COLUMN_INT64, "1", expert, "expert", "The expert."),
    HOT("tokens", COLUMN_INT64, "tokens", tokens, "tokens",
        "Its tokens in one layer of the group, copies together, replicas summed."),
    HOT("copies", COLUMN_INT64, "1", copies, "copies", "Its copies at the end of the interval."),
    HOT("load", COLUMN_DOUBLE, "1", load, "load over mean",
        "Its tokens over the mean of the experts."),
    {.type = COLUMN_END}};
