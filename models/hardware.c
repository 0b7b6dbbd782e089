#include "models/hardware.h"

#include <math.h>

const char *const hardware_math_names[MATH_COUNT + 1] = {"bf16", "fp8", "fp4", NULL};

static const char *const mark_names[] = {"primary", "computed", "published", "unverified", NULL};

const struct field hardware_source_fields[] = {
    {.name = "keys",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct source_note, keys),
     .doc = "Keys of this file that the entry speaks for, separated by spaces"},
    {.name = "source",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct source_note, source),
     .doc = "Where the values come from"},
    {.name = "date",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct source_note, date),
     .doc = "Date of the snapshot or statement"},
    {.name = "mark",
     .kind = FIELD_CHOICE,
     .fallback = "primary",
     .choices = mark_names,
     .offset = offsetof(struct source_note, mark),
     .doc = "How far to trust it: read in the source named, computed from such values, stated by a "
            "third party, or not verified"},
    {0}};

const struct field hardware_source_item = {
    .name = "source", .kind = FIELD_STRUCT, .fields = hardware_source_fields, .doc = "One entry"};

/* The six algorithms differ in their defaults only: Hopper's measured values. */
#define LINK_FIELDS(array, latency_text, efficiency_text)                                          \
    static const struct field array[] = {                                                          \
        {.name = "latency",                                                                        \
         .kind = FIELD_TIME,                                                                       \
         .fallback = latency_text,                                                                 \
         .flags = (latency_text) ? 0 : FIELD_OPTIONAL,                                             \
         .offset = offsetof(struct link_cost, latency_ps),                                         \
         .min = 0,                                                                                 \
         .max = 1,                                                                                 \
         .doc = "Time of an empty message; absent: this GPU cannot do it"},                        \
        {.name = "efficiency",                                                                     \
         .kind = FIELD_REAL,                                                                       \
         .unit = UNIT_FRACTION,                                                                    \
         .fallback = efficiency_text,                                                              \
         .offset = offsetof(struct link_cost, efficiency),                                         \
         .min = 0,                                                                                 \
         .max = 1,                                                                                 \
         .flags = FIELD_MIN_OPEN,                                                                  \
         .doc = "Share of the one-way link rate it reaches"},                                      \
        {0}}
#define NO_LATENCY ((const char *)0)

LINK_FIELDS(one_shot_fields, "3.08 us", "0.65");
LINK_FIELDS(two_shot_fields, "7.45 us", "0.67");
LINK_FIELDS(ring_fields, "1.36 us", "0.65");
LINK_FIELDS(nvls_fields, NO_LATENCY, "0.85");
LINK_FIELDS(dispatch_fields, "14 us", "0.64");
LINK_FIELDS(combine_fields, "14 us", "0.66");

#define LINK(member, table, text)                                                                  \
    {                                                                                              \
        .name = #member, .kind = FIELD_STRUCT, .offset = offsetof(struct gpu_collectives, member), \
        .fields = table, .doc = text                                                               \
    }

static const struct field collective_fields[] = {
    LINK(one_shot, one_shot_fields, "All-reduce: every GPU reads all other buffers"),
    LINK(two_shot, two_shot_fields, "All-reduce: reduce-scatter and all-gather by direct reads"),
    LINK(ring, ring_fields, "All-reduce around a ring; latency per hop"),
    LINK(nvls, nvls_fields, "All-reduce in the switch"),
    LINK(dispatch, dispatch_fields, "Expert all-to-all inside the domain, tokens out"),
    LINK(combine, combine_fields, "Expert all-to-all inside the domain, results back"),
    {.name = "network_latency",
     .kind = FIELD_TIME,
     .fallback = "20 us",
     .min = 0,
     .max = 1,
     .offset = offsetof(struct gpu_collectives, network_latency_ps),
     .doc = "One hop between nodes"},
    {0}};

static const struct field peak_fields[] = {
    {.name = "bf16",
     .kind = FIELD_REAL,
     .unit = UNIT_FLOPS,
     .flags = FIELD_REQUIRED,
     .offset = MATH_BF16 * sizeof(double),
     .min = 1e11,
     .max = 1e18,
     .doc = "Dense BF16 peak"},
    {.name = "fp8",
     .kind = FIELD_REAL,
     .unit = UNIT_FLOPS,
     .flags = FIELD_OPTIONAL,
     .offset = MATH_FP8 * sizeof(double),
     .min = 1e11,
     .max = 1e18,
     .doc = "Dense FP8 peak; absent: FP8 weights run at the BF16 rate"},
    {.name = "fp4",
     .kind = FIELD_REAL,
     .unit = UNIT_FLOPS,
     .flags = FIELD_OPTIONAL,
     .offset = MATH_FP4 * sizeof(double),
     .min = 1e11,
     .max = 1e18,
     .doc = "Dense FP4 peak; absent: 4-bit weights run at the next rate up"},
    {0}};

#define BYTES(key, flag, member, text)                                                             \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .unit = UNIT_BYTES, .flags = (flag),                      \
        .offset = offsetof(struct gpu_spec, member), .min = 1e8, .max = 1e14, .doc = text          \
    }
/* The lower bounds catch a number whose unit was forgotten (4.8 for 4.8 TB/s), which would make
 * iterations of months. */
#define SPEED(key, flag, member, least, text)                                                      \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .unit = UNIT_BYTES_PER_S, .flags = (flag),                \
        .offset = offsetof(struct gpu_spec, member), .min = (least), .max = 1e15, .doc = text      \
    }

static const struct field exchange_fields[] = {
    {.name = "ranks",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .min = 2,
     .max = 65536,
     .offset = offsetof(struct exchange_point, ranks),
     .doc = "GPUs that exchange tokens"},
    {.name = "tokens",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .min = 1,
     .max = 1e6,
     .offset = offsetof(struct exchange_point, tokens),
     .doc = "Tokens per GPU"},
    {.name = "dispatch",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .min = 0,
     .max = 1,
     .offset = offsetof(struct exchange_point, dispatch_ps),
     .doc = "Latency of the way out"},
    {.name = "combine",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .min = 0,
     .max = 1,
     .offset = offsetof(struct exchange_point, combine_ps),
     .doc = "Latency of the way back"},
    {0}};
static const struct field exchange_item = {
    .name = "point", .kind = FIELD_STRUCT, .fields = exchange_fields, .doc = "One measurement"};

const struct field hardware_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct gpu_spec, name),
     .doc = "Name as printed"},
    {.name = "vendor",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct gpu_spec, vendor),
     .doc = "Who makes it"},
    {.name = "peak",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct gpu_spec, peak_flops),
     .fields = peak_fields,
     .doc = "Dense math peaks (a sheet's figure with sparsity is twice this)"},
    BYTES("hbm", FIELD_REQUIRED, hbm_sheet_bytes, "Memory as on the data sheet"),
    BYTES("hbm_real", FIELD_OPTIONAL, hbm_real_bytes, "Memory as the driver reports it"),
    SPEED("hbm_bandwidth", FIELD_REQUIRED, hbm_bytes_per_s, 1e9, "Memory bandwidth"),
    SPEED("link_bandwidth", FIELD_REQUIRED, link_bytes_per_s, 1e6,
          "Scale-up network (NVLink, xGMI, ICI, PCIe), one way, per GPU"),
    {.name = "domain",
     .kind = FIELD_INT,
     .fallback = "8",
     .min = 1,
     .max = 65536,
     .offset = offsetof(struct gpu_spec, domain),
     .doc = "GPUs that the scale-up network joins"},
    {.name = "node",
     .kind = FIELD_INT,
     .fallback = "8",
     .min = 1,
     .max = 65536,
     .offset = offsetof(struct gpu_spec, node),
     .doc = "GPUs of one server"},
    SPEED("nic_bandwidth", FIELD_REQUIRED, nic_bytes_per_s, 1e6,
          "Network between nodes, one way, per GPU"),
    SPEED("host_bandwidth", FIELD_OPTIONAL, host_bytes_per_s, 1e6, "Link to the host, one way"),
    {.name = "tdp",
     .kind = FIELD_REAL,
     .unit = UNIT_WATTS,
     .flags = FIELD_OPTIONAL,
     .min = 1,
     .max = 1e5,
     .offset = offsetof(struct gpu_spec, tdp_w),
     .doc = "Power of one GPU at full load"},
    {.name = "node_power",
     .kind = FIELD_REAL,
     .unit = UNIT_WATTS,
     .flags = FIELD_OPTIONAL,
     .min = 1,
     .max = 1e7,
     .offset = offsetof(struct gpu_spec, node_power_w),
     .doc = "Power of the whole server at full load"},
    {.name = "collectives",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct gpu_spec, collectives),
     .fields = collective_fields,
     .doc = "Measured latencies and link efficiencies"},
    {.name = "exchange",
     .kind = FIELD_LIST,
     .offset = offsetof(struct gpu_spec, exchange),
     .item = &exchange_item,
     .item_size = sizeof(struct exchange_point),
     .min = 0,
     .max = 1000,
     .doc = "Measured expert all-to-all (8 of 256 experts, 7,168 wide, FP8 out, BF16 back)"},
    {.name = "sources",
     .kind = FIELD_LIST,
     .offset = offsetof(struct gpu_spec, sources),
     .item = &hardware_source_item,
     .item_size = sizeof(struct source_note),
     .min = 0,
     .max = 100,
     .doc = "Where the values come from"},
    {0}};

double hardware_hbm(const struct gpu_spec *gpu, bool real)
{
    return real && !isnan(gpu->hbm_real_bytes) ? gpu->hbm_real_bytes : gpu->hbm_sheet_bytes;
}

bool hardware_check(const struct gpu_spec *gpu, struct errors *errors,
                    const struct source_pos *where)
{
    size_t before = errors->error_count;
    if (gpu->domain % gpu->node != 0 && gpu->node % gpu->domain != 0)
        errors_add(errors, SEVERITY_ERROR, where,
                   "gpu '%s': a scale-up domain of %lld GPUs and nodes of %lld do not divide",
                   gpu->name, (long long)gpu->domain, (long long)gpu->node);
    if (gpu->hbm_real_bytes < 0.8 * gpu->hbm_sheet_bytes ||
        gpu->hbm_real_bytes > 1.25 * gpu->hbm_sheet_bytes)
        errors_add(errors, SEVERITY_WARNING, where,
                   "gpu '%s': real memory of %.1f GB is far from the sheet's %.1f GB", gpu->name,
                   gpu->hbm_real_bytes / 1e9, gpu->hbm_sheet_bytes / 1e9);
    for (size_t i = 1; i < gpu->exchange.count; i++) {
        const struct exchange_point *p = (const struct exchange_point *)gpu->exchange.items + i;
        if (p->ranks < p[-1].ranks || (p->ranks == p[-1].ranks && p->tokens <= p[-1].tokens))
            errors_add(errors, SEVERITY_ERROR, where,
                       "gpu '%s': exchange[%zu]: rows go by ranks, then tokens, each once",
                       gpu->name, i);
    }
    return errors->error_count == before;
}
