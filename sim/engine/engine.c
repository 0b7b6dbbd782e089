#include "sim/engine/engine.h"

#include "sim/base/check.h"

static const char *const policy_names[] = {"fcfs", "priority", NULL};

const struct field engine_fields[] = {
    {.name = "max_num_seqs",
     .kind = FIELD_INT,
     .offset = offsetof(struct engine_config, max_num_seqs),
     .fallback = "256",
     .min = 1,
     .max = 1048576,
     .doc = "Most sequences in one batch (seats)"},
    {.name = "max_num_batched_tokens",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .offset = offsetof(struct engine_config, max_num_batched_tokens),
     .fallback = "8192",
     .min = 1,
     .max = 1048576,
     .doc = "Token budget of one iteration; at least max_num_seqs, or a decode could starve"},
    {.name = "block_size",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .offset = offsetof(struct engine_config, block_size),
     .fallback = "16",
     .min = 1,
     .max = 4096,
     .doc = "Tokens in one KV block"},
    {.name = "num_gpu_blocks_override",
     .kind = FIELD_INT,
     .flags = FIELD_UNLIMITED,
     .offset = offsetof(struct engine_config, num_gpu_blocks),
     .fallback = "unlimited",
     .min = 1,
     .max = 1e12,
     .doc = "KV blocks of one replica"},
    {.name = "max_model_len",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_UNLIMITED,
     .offset = offsetof(struct engine_config, max_model_len),
     .fallback = "unlimited",
     .min = 1,
     .max = 1e12,
     .doc = "Longest prompt + output; a longer request is refused at arrival as unservable"},
    {.name = "gpu_memory_utilization",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct engine_config, gpu_memory_utilization),
     .fallback = "0.9",
     .max = 1,
     .doc =
         "Share of HBM for weights, activations and KV; used when model and gpu size the KV pool"},
    {.name = "enable_chunked_prefill",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct engine_config, enable_chunked_prefill),
     .fallback = "true",
     .doc = "Whether a prompt may be computed over several iterations"},
    {.name = "enable_prefix_caching",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct engine_config, enable_prefix_caching),
     .fallback = "false",
     .doc = "Whether full KV blocks are kept until their memory is needed, and used again by "
            "requests that begin with the same tokens"},
    {.name = "scheduling_policy",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct engine_config, scheduling_policy),
     .fallback = "fcfs",
     .choices = policy_names,
     .doc = "Order of the waiting queue and of preemption: fcfs, or priority (a class's priority, "
            "then arrival)"},
    {0},
};

void engine_init(struct engine *engine, const struct engine_config *config,
                 const struct step_model *model, int64_t max_queue)
{
    check(config->max_num_batched_tokens >= config->max_num_seqs);
    *engine = (struct engine){
        .max_num_seqs = (uint32_t)config->max_num_seqs,
        .max_num_batched_tokens = (uint32_t)config->max_num_batched_tokens,
        .block_size = (uint32_t)config->block_size,
        .num_gpu_blocks = config->num_gpu_blocks,
        .kv_tokens = config->num_gpu_blocks > INT64_MAX / config->block_size
                         ? INT64_MAX
                         : config->num_gpu_blocks * config->block_size,
        .max_model_len = config->max_model_len,
        .max_queue = max_queue,
        .chunked_prefill = config->enable_chunked_prefill,
        .prefix_caching = config->enable_prefix_caching,
        .by_priority = config->scheduling_policy == ENGINE_PRIORITY,
        .window = model->type->window != NULL ? model->type->window(model->model) : 0,
        .span_max = ENGINE_SPAN_MAX,
        .model = *model,
    };
}

bool engine_can_serve(const struct engine *engine, const struct request *request)
{
    int64_t prompt = request->prompt_tokens;
    int64_t output = request->output_tokens;
    int64_t stored = prompt + (output > 1 ? output - 1 : 0);
    return stored <= engine->kv_tokens && prompt + output <= engine->max_model_len &&
           (engine->chunked_prefill || stored <= engine->max_num_batched_tokens);
}
