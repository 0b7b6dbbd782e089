#include "tests/validation/support_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/check.h"
#include "sim/run/catalog.h"

enum { POINTS_MAX = 2000, COLUMNS = 17, LINE_MAX_BYTES = 1024 };

/* InferenceX draws lengths uniformly in 0.8 to 1.0 of the nominal ones. */
static const double length_share = 0.9;

const char *const points_exclusion_names[POINT_EXCLUSIONS] = {
    "kept", "TRT-LLM 1.1.0rc2 DeepSeek: multi-token prediction", "beats an ideal roofline"};

const char *points_path(struct arena *arena)
{
    const char *shared = getenv("FLEETSIM_SHARED");
    const char *path = arena_printf(arena, "%s/data/serving_points/serving_points.csv",
                                    shared ? shared : FLEETSIM_SOURCE_DIR "/../shared");
    struct stat st;
    return stat(path, &st) == 0 ? path : NULL;
}

static const char *const model_names[][2] = {
    {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
    {"nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"},
    {"Qwen/Qwen3-32B", "qwen3-32b"},
    {"nvidia/Qwen3-32B-NVFP4", "qwen3-32b"},
    {"Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"},
    {"deepseek-ai/DeepSeek-R1", "deepseek-r1"},
    {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
    {"nvidia/DeepSeek-R1-NVFP4", "deepseek-r1"},
    {"nvidia/DeepSeek-V3.1-NVFP4", "deepseek-v3"},
};

static const char *const gpu_names[][2] = {{"h100_sxm", "h100-sxm"},
                                           {"h200_sxm", "h200-sxm"},
                                           {"b200_sxm", "b200"},
                                           {"b300_sxm", "b300"},
                                           {"gb200", "gb200"}};

static const char *translate(const char *const table[][2], size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i][0], word) == 0)
            return table[i][1];
    return NULL;
}

/* Empty: 0. */
static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    check_msg(*end == '\0', "'%s' is not a number", text);
    return value;
}

static int64_t degree(const char *text)
{
    int64_t n = (int64_t)number(text);
    return n > 0 ? n : 1;
}

/* Published NVFP4 checkpoints of DeepSeek keep attention in BF16; the FP8 ones serve a BF16 MLA
 * cache; GQA models under FP8 or FP4 serve an FP8 cache. */
static struct precision formats_of(const struct llm_spec *llm, const char *precision)
{
    bool mla = llm_group(llm, 0)->kind == ATTENTION_MLA;
    if (strcmp(precision, "fp8") == 0)
        return (struct precision){STORAGE_FP8, STORAGE_FP8, mla ? STORAGE_BF16 : STORAGE_FP8};
    if (strcmp(precision, "fp4") == 0)
        return (struct precision){mla ? STORAGE_BF16 : STORAGE_NVFP4, STORAGE_NVFP4,
                                  mla ? STORAGE_BF16 : STORAGE_FP8};
    return (struct precision){STORAGE_BF16, STORAGE_BF16, STORAGE_BF16};
}

static size_t split(char *line, char *fields[COLUMNS])
{
    size_t count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at && count < COLUMNS; count++) {
        fields[count] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    return count;
}

static void point_read(struct point *p, char *const f[COLUMNS], struct arena *arena,
                       struct errors *errors)
{
    snprintf(p->id, sizeof p->id, "%s", f[0]);
    snprintf(p->engine, sizeof p->engine, "%s", f[1]);
    snprintf(p->version, sizeof p->version, "%s", f[2]);
    snprintf(p->model, sizeof p->model, "%s", f[3]);
    snprintf(p->system, sizeof p->system, "%s", f[4]);
    snprintf(p->precision, sizeof p->precision, "%s", f[5][0] ? f[5] : "bf16");
    const char *model = translate(model_names, sizeof model_names / sizeof *model_names, f[3]);
    const char *gpu = translate(gpu_names, sizeof gpu_names / sizeof *gpu_names, f[4]);
    check_msg(model && gpu, "unknown '%s' or '%s'", f[3], f[4]);
    p->llm = catalog_llm(model, arena, errors, NULL);
    p->gpu = catalog_gpu(gpu, arena, errors, NULL);
    check(p->llm && p->gpu);
    p->parallel = (struct parallel){degree(f[9]), degree(f[10]), 1, 1};
    if (p->llm->moe.experts > 0) {
        /* Attention on fewer GPUs than the experts is spread over: attention copies. */
        int64_t stage = degree(f[12]) * degree(f[13]), copies = degree(f[11]);
        p->parallel.expert = degree(f[13]);
        p->parallel.attention_data =
            copies > stage / p->parallel.tensor ? copies : stage / p->parallel.tensor;
    }
    p->formats = formats_of(p->llm, p->precision);
    p->prompt = length_share * number(f[7]);
    p->output = length_share * number(f[8]);
    p->concurrency = number(f[14]);
    p->ttft_s = number(f[15]) / 1e3;
    p->tpot_s = number(f[16]) / 1e3;
}

struct points points_load(const char *path, struct arena *arena)
{
    struct points points = {arena_alloc(arena, POINTS_MAX * sizeof(struct point)), 0};
    struct errors errors;
    errors_init(&errors);
    FILE *file = fopen(path, "r");
    check(file);
    char line[LINE_MAX_BYTES], *fields[COLUMNS];
    check(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        check(split(line, fields) == COLUMNS && points.count < POINTS_MAX);
        point_read(&points.items[points.count++], fields, arena, &errors);
    }
    fclose(file);
    errors_free(&errors);
    return points;
}

struct roofline_config points_roofline(const struct point *p,
                                       const struct roofline_factors *factors)
{
    static const struct roofline_factors fitted = {
        NAN, NAN, NAN, NAN, FIELD_INT_UNSET, FIELD_INT_UNSET, FIELD_INT_UNSET, FIELD_INT_UNSET};
    return (struct roofline_config){.llm = p->llm,
                                    .gpu = p->gpu,
                                    .parallel = p->parallel,
                                    .precision = p->formats,
                                    .factors = factors ? *factors : fitted,
                                    .overlap = 0.2,
                                    .dedup = DEDUP_NODE,
                                    .measured = true,
                                    .expert_imbalance = 1};
}

struct memory_plan points_memory(const struct point *p)
{
    struct memory_query query = memory_query(p->llm, p->gpu, &p->parallel);
    query.precision = p->formats;
    return memory_plan(&query);
}

/* ideal: no overhead, no messages, every peak reached. */
static void predict(struct point *p, const struct roofline_factors *factors, bool ideal,
                    struct serving_estimate *estimate)
{
    static const struct roofline_factors perfect = {1, 1, 1, 0, 0, 0, 0, 0};
    struct gpu_spec gpu = *p->gpu;
    struct roofline_config config = points_roofline(p, ideal ? &perfect : factors);
    if (ideal) {
        gpu.link_bytes_per_s = gpu.nic_bytes_per_s = 1e30;
        gpu.exchange.count = 0;
        gpu.collectives = (struct gpu_collectives){.one_shot = {0, 1},
                                                   .two_shot = {0, 1},
                                                   .ring = {0, 1},
                                                   .nvls = {TIME_NONE, 1},
                                                   .dispatch = {0, 1},
                                                   .combine = {0, 1}};
        config.gpu = &gpu;
        config.overlap = 1;
        config.measured = false;
    }
    static struct roofline r;
    struct errors errors;
    errors_init(&errors);
    bool ok = roofline_init(&r, &config, &errors, NULL);
    if (!ok)
        errors_print(&errors, stderr);
    check(ok);
    errors_free(&errors);
    struct memory_plan plan = points_memory(p);
    p->fits = plan.fits;
    if (!plan.fits || ideal) { /* it ran: the pool of an ideal engine is not the question */
        plan.fits = true;
        plan.kv_pool = INFINITY;
    }
    struct serving_load load = {p->concurrency, p->prompt, p->output, 8192};
    *estimate = serving_estimate(&r, &plan, &load);
}

void points_predict(struct points *points, const struct roofline_factors *factors)
{
    for (size_t i = 0; i < points->count; i++)
        predict(&points->items[i], factors, false, &points->items[i].estimate);
}

void points_exclude(struct points *points)
{
    for (size_t i = 0; i < points->count; i++) {
        struct point *p = &points->items[i];
        struct serving_estimate ideal;
        predict(p, NULL, true, &ideal);
        p->exclusion = POINT_KEPT;
        if (strstr(p->model, "DeepSeek") && strncmp(p->version, "1.1.0rc2", 8) == 0)
            p->exclusion = POINT_MULTI_TOKEN;
        else if (ideal.tpot_s > p->tpot_s)
            p->exclusion = POINT_IMPOSSIBLE;
    }
}
