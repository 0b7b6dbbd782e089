/* Every catalogue file loads, is checked, and names a source for every key it sets. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/run/catalog.h"

static struct arena arena;
static struct errors errors;

static void setup(void)
{
    setenv("FLEETSIM_CATALOG", FLEETSIM_SOURCE_DIR "/models/catalog", 1);
    arena_init(&arena);
    errors_init(&errors);
}

static void teardown(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

/* Top-level keys of a file's text, each covered by a `keys:` entry of its sources. */
static void check_covered(enum catalog_kind kind, const char *name,
                          const struct field_list *sources)
{
    char path[1024], line[4096];
    snprintf(path, sizeof path, "%s/models/catalog/%s/%s.yaml", FLEETSIM_SOURCE_DIR,
             catalog_folders[kind], name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, ":");
        if (line[0] == '#' || line[0] == ' ' || line[length] != ':')
            continue;
        line[length] = '\0';
        if (strstr(" name developer vendor sources ", line))
            continue;
        bool covered = false;
        for (size_t i = 0; i < sources->count; i++) {
            const struct source_note *note = (const struct source_note *)sources->items + i;
            char padded[512], wanted[256];
            snprintf(padded, sizeof padded, " %s ", note->keys);
            snprintf(wanted, sizeof wanted, " %.200s ", line);
            covered = covered || (strstr(padded, wanted) && note->source[0]);
        }
        ck_assert_msg(covered, "%s: '%s' has no source", path, line);
    }
    fclose(file);
}

START_TEST(test_models_load)
{
    const char *const *names = catalog_names(CATALOG_LLM, &arena);
    size_t count = 0;
    for (; names[count]; count++) {
        const struct llm_spec *llm = catalog_llm(names[count], &arena, &errors, NULL);
        ck_assert_msg(llm && errors.count == 0, "%s", names[count]);
        check_covered(CATALOG_LLM, names[count], &llm->sources);
        double total = llm_params(llm).total, stated = llm->published.total_params;
        ck_assert_msg(isnan(stated) || fabs(total / stated - 1) < 0.035, "%s: %.4g, stated %.4g",
                      names[count], total, stated);
    }
    ck_assert_uint_ge(count, 33);
}
END_TEST

START_TEST(test_gpus_load)
{
    const char *const *names = catalog_names(CATALOG_GPU, &arena);
    size_t count = 0;
    for (; names[count]; count++) {
        const struct gpu_spec *gpu = catalog_gpu(names[count], &arena, &errors, NULL);
        ck_assert_msg(gpu && errors.count == 0, "%s", names[count]);
        check_covered(CATALOG_GPU, names[count], &gpu->sources);
    }
    ck_assert_uint_ge(count, 16);
    const struct gpu_spec *h200 = catalog_gpu("h200-sxm", &arena, &errors, NULL);
    ck_assert_double_eq(h200->hbm_sheet_bytes, 141e9);
    ck_assert_double_eq_tol(hardware_hbm(h200, true), 150.8e9, 0.05e9);
    ck_assert_double_eq(hardware_hbm(h200, false), 141e9);
    ck_assert_double_eq(h200->peak_flops[MATH_FP8], 1979e12);
}
END_TEST

START_TEST(test_prices_load)
{
    const char *const *names = catalog_names(CATALOG_PRICE, &arena);
    size_t count = 0;
    for (; names[count]; count++) {
        const struct price_spec *price = catalog_price(names[count], &arena, &errors, NULL);
        ck_assert_msg(price && errors.count == 0, "%s", names[count]);
        if (price->gpu)
            ck_assert_ptr_nonnull(catalog_gpu(price->gpu, &arena, &errors, NULL));
        if (price->model)
            ck_assert_ptr_nonnull(catalog_llm(price->model, &arena, &errors, NULL));
    }
    ck_assert_uint_ge(count, 8);
}
END_TEST

START_TEST(test_unknown_names)
{
    ck_assert_ptr_null(catalog_gpu("h200-sxn", &arena, &errors, NULL));
    ck_assert_str_eq(errors.items[0].message, "unknown gpu 'h200-sxn', did you mean 'h200-sxm'?");
    ck_assert_ptr_null(catalog_llm("abacus", &arena, &errors, NULL));
    ck_assert_ptr_nonnull(strstr(errors.items[1].message, "unknown model 'abacus'"));
    ck_assert_ptr_null(catalog_llm("nowhere/config.json", &arena, &errors, NULL));
    ck_assert_ptr_nonnull(strstr(errors.items[2].message, "cannot open model file"));
}
END_TEST

/* Loads a folder that holds text as its config.json. */
static const struct llm_spec *config_load(const char *text)
{
    char folder[] = "./fleetsim_config_XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    const struct llm_spec *llm = catalog_llm(folder, &arena, &errors, NULL);
    unlink(path);
    rmdir(folder);
    return llm;
}

static void check_same_shape(const struct llm_spec *llm, const char *name)
{
    ck_assert_ptr_nonnull(llm);
    const struct llm_spec *known = catalog_llm(name, &arena, &errors, NULL);
    struct llm_params a = llm_params(llm), b = llm_params(known);
    ck_assert_double_eq(a.total, b.total);
    ck_assert_double_eq(a.active, b.active);
    struct llm_kv ka = llm_kv(llm, STORAGE_BF16), kb = llm_kv(known, STORAGE_BF16);
    ck_assert_double_eq(ka.per_token, kb.per_token);
    ck_assert_double_eq(ka.window, kb.window);
    ck_assert_double_eq(ka.state, kb.state);
    ck_assert_double_eq(ka.indexer_per_token, kb.indexer_per_token);
}

START_TEST(test_config_dense)
{
    check_same_shape(
        config_load("{\"model_type\": \"llama\", \"num_hidden_layers\": 80, \"hidden_size\": 8192,"
                    "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"vocab_size\": "
                    "128256, \"intermediate_size\": 28672, \"rope_theta\": 500000.0}"),
        "llama-3.1-70b");
}
END_TEST

START_TEST(test_config_mla_moe)
{
    check_same_shape(
        config_load("{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 61, "
                    "\"hidden_size\": 7168, \"num_attention_heads\": 128, "
                    "\"num_key_value_heads\": 128, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512,"
                    "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128,"
                    "\"vocab_size\": 129280, \"intermediate_size\": 18432, "
                    "\"moe_intermediate_size\": 2048, \"n_routed_experts\": 256, "
                    "\"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"n_group\": 8,"
                    "\"topk_group\": 4, \"first_k_dense_replace\": 3}"),
        "deepseek-v3");
}
END_TEST

START_TEST(test_config_windows)
{
    char text[4096] = "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 24, \"hidden_size\": "
                      "2880, \"num_attention_heads\": 64, \"num_key_value_heads\": 8, "
                      "\"head_dim\": 64, \"vocab_size\": 201088, \"intermediate_size\": 2880, "
                      "\"num_local_experts\": 32, \"num_experts_per_tok\": 4, "
                      "\"sliding_window\": 128, \"quantization_config\": {\"quant_method\": "
                      "\"mxfp4\"}, \"layer_types\": [";
    for (int i = 0; i < 24; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "\"%s\"%s",
                 i % 2 ? "full_attention" : "sliding_attention", i < 23 ? ", " : "]}");
    const struct llm_spec *llm = config_load(text);
    check_same_shape(llm, "gpt-oss-20b");
    ck_assert_int_eq(llm->precision.experts, STORAGE_MXFP4);
    ck_assert_int_eq(llm->precision.weights, STORAGE_BF16);
}
END_TEST

START_TEST(test_config_linear)
{
    check_same_shape(
        config_load("{\"model_type\": \"qwen3_5_moe\", \"text_config\": {\"num_hidden_layers\": 60,"
                    "\"hidden_size\": 4096, \"num_attention_heads\": 32, \"num_key_value_heads\": "
                    "2, \"head_dim\": 256, \"vocab_size\": 248320, "
                    "\"full_attention_interval\": 4, \"linear_num_key_heads\": 16, "
                    "\"linear_num_value_heads\": 64, \"linear_key_head_dim\": 128, "
                    "\"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, "
                    "\"num_experts\": 512, \"num_experts_per_tok\": 10, "
                    "\"moe_intermediate_size\": 1024, \"shared_expert_intermediate_size\": "
                    "1024}}"),
        "qwen3.5-397b-a17b");
}
END_TEST

static void expect_refused(const char *text, const char *words)
{
    size_t before = errors.count;
    ck_assert_ptr_null(config_load(text));
    bool found = false;
    for (size_t i = before; i < errors.count; i++)
        found = found || strstr(errors.items[i].message, words);
    ck_assert_msg(found, "no error says '%s'", words);
}

/* Kimi Linear's keys: K3's own shape less its latent experts. */
START_TEST(test_config_kda)
{
    const struct llm_spec *llm = config_load(
        "{\"model_type\": \"kimi_linear\", \"num_hidden_layers\": 4, \"hidden_size\": 512, "
        "\"num_attention_heads\": 4, \"vocab_size\": 1000, \"intermediate_size\": 64, "
        "\"kv_lora_rank\": 512, \"q_lora_rank\": null, \"qk_nope_head_dim\": 128, "
        "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"num_experts\": 8, "
        "\"num_experts_per_token\": 2, \"num_shared_experts\": 1, \"moe_intermediate_size\": 32, "
        "\"first_k_dense_replace\": 1, \"linear_attn_config\": {\"kda_layers\": [1, 2, 3], "
        "\"full_attn_layers\": [4], \"num_heads\": 4, \"head_dim\": 128, "
        "\"short_conv_kernel_size\": 4}}");
    ck_assert_ptr_nonnull(llm);
    ck_assert_uint_eq(llm->attention.count, 2);
    ck_assert_int_eq(llm_group(llm, 0)->kind, ATTENTION_MLA);
    ck_assert_int_eq(llm_group(llm, 0)->layers, 1);
    ck_assert_int_eq(llm_group(llm, 1)->kind, ATTENTION_LINEAR);
    ck_assert_int_eq(llm_group(llm, 1)->layers, 3);
    ck_assert_int_eq(llm->dense_layers, 1);
    ck_assert_int_eq(llm->moe.layers, 3);
    ck_assert_int_eq(llm->moe.top_k, 2);
    ck_assert_double_eq(llm_kv(llm, STORAGE_BF16).per_token, 576 * 2);
    ck_assert_double_eq(llm_kv(llm, STORAGE_BF16).state,
                        3 * 2 * (4 * 128 * 128 + 4 * 3 * 4 * 128.0));
}
END_TEST

/* Experts in every second layer, chunks in three of four, one shared expert that no key names. */
START_TEST(test_config_chunks)
{
    check_same_shape(
        config_load(
            "{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\", "
            "\"attention_chunk_size\": 8192, \"head_dim\": 128, \"hidden_size\": 5120, "
            "\"interleave_moe_layer_step\": 2, \"intermediate_size\": 8192, "
            "\"intermediate_size_mlp\": 16384, \"no_rope_layers\": [], "
            "\"num_attention_heads\": 40, \"num_experts_per_tok\": 1, "
            "\"num_hidden_layers\": 48, \"num_key_value_heads\": 8, "
            "\"num_local_experts\": 128, \"vocab_size\": 202048}}"),
        "llama-4-maverick");
    ck_assert_uint_eq(errors.count, 0);
}
END_TEST

/* A dense shape in which only the family, a window's keys or a format changes. */
static const struct llm_spec *config_small(const char *type, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"num_hidden_layers\": 12, \"hidden_size\": 512, "
             "\"num_attention_heads\": 4, \"vocab_size\": 1000, \"intermediate_size\": 64%s%s}",
             type, *more ? ", " : "", more);
    return config_load(text);
}

START_TEST(test_config_families)
{
    static const struct {
        const char *type, *more;
        int64_t windowed;
        bool tied;
    } cases[] = {
        {"llama", "", 0, false},
        {"mistral", "\"sliding_window\": 128", 12, false},
        {"mistral", "\"sliding_window\": null", 0, false},
        {"gemma2", "\"sliding_window\": 128", 6, true},
        {"gemma3_text", "\"sliding_window\": 128", 10, true},
        {"gemma3_text", "\"sliding_window\": 128, \"sliding_window_pattern\": 4", 9, true},
        {"gemma2", "\"sliding_window\": 128, \"tie_word_embeddings\": false", 6, false},
        {"gpt_oss", "\"sliding_window\": 128", 6, false},
        {"qwen2", "\"sliding_window\": 128", 0, false},
        {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": true", 12, false},
        {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": true, \"max_window_layers\": 8",
         4, false},
        {"llama", "\"attention_chunk_size\": 128, \"no_rope_layers\": [1,1,0,1,1,0,1,1,0,1,1,1]", 9,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct llm_spec *llm = config_small(cases[i].type, cases[i].more);
        ck_assert_msg(llm != NULL && errors.count == 0, "%s %s", cases[i].type, cases[i].more);
        int64_t windowed = 0;
        for (size_t g = 0; g < llm->attention.count; g++)
            if (llm_group(llm, g)->window > 0)
                windowed += llm_group(llm, g)->layers;
        ck_assert_msg(windowed == cases[i].windowed && llm->tied_embeddings == cases[i].tied,
                      "%s %s: %lld windowed, tied %d", cases[i].type, cases[i].more,
                      (long long)windowed, llm->tied_embeddings);
    }
}
END_TEST

START_TEST(test_config_formats)
{
    static const char *const attention = "\"ignore\": [\"re:.*self_attn.*\", \"lm_head\"]";
    static const struct {
        const char *quant;
        enum storage dense;
        bool experts_only;
    } cases[] = {
        {"\"quant_method\": \"fp8\"", STORAGE_FP8, false},
        {"\"quant_method\": \"fbgemm_fp8\"", STORAGE_FP8, false},
        {"\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\"", STORAGE_FP8, false},
        {"\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\"", STORAGE_NVFP4, false},
        {"\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", @", STORAGE_NVFP4, true},
        {"\"quant_method\": \"mxfp4\"", STORAGE_MXFP4, true},
        {"\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128", STORAGE_INT4_G128, false},
        {"\"quant_method\": \"gptq\", \"bits\": 8", STORAGE_INT8, false},
        {"\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32", STORAGE_INT4, false},
        {"\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true", STORAGE_INT8, false},
        {"\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"weights\": "
         "{\"num_bits\": 8, \"type\": \"float\"}}}",
         STORAGE_FP8, false},
        {"\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"weights\": "
         "{\"num_bits\": 4, \"type\": \"float\", \"group_size\": 16}}}",
         STORAGE_NVFP4, false},
        {"\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"weights\": "
         "{\"num_bits\": 4, \"type\": \"int\", \"group_size\": 32}}}, @",
         STORAGE_INT4, true},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        bool moe = i % 2;
        const char *quant = cases[i / 2].quant, *at = strchr(quant, '@');
        char more[1024];
        snprintf(more, sizeof more, "%s\"quantization_config\": {%.*s%s}",
                 moe ? "\"num_experts\": 8, \"num_experts_per_tok\": 2, " : "",
                 at ? (int)(at - quant) : (int)strlen(quant), quant, at ? attention : "");
        const struct llm_spec *llm = config_small("llama", more);
        ck_assert_msg(llm != NULL && errors.count == 0, "%s", more);
        struct precision unset = {-1, -1, -1}, p = llm_precision(llm, &unset);
        bool apart = moe && cases[i / 2].experts_only;
        ck_assert_msg(p.weights == (int)(apart ? STORAGE_BF16 : cases[i / 2].dense), "%s", more);
        ck_assert_msg(!moe || p.experts == (int)cases[i / 2].dense, "%s", more);
    }
}
END_TEST

/* What is guessed is said. */
START_TEST(test_config_warned)
{
    static const struct {
        const char *type, *more, *words;
    } cases[] = {
        {"zebra_v9", "", "model_type 'zebra_v9' is not known here"},
        {"a\\u001b[31m", "", "model_type 'a?[31m' is not known here"},
        {"123456789_123456789_123456789_123456789_123456789_123456789_123é", "",
         "model_type '123456789_123456789_123456789_123456789_123456789_123456789_123' is"},
        {"llama", "\"quantization_config\": {\"quant_method\": \"aqlm\"}", "counted as BF16"},
        {"llama", "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 3}",
         "counted as BF16"},
        {"llama", "\"quantization_config\": {\"quant_method\": \"compressed-tensors\"}",
         "counted as BF16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_ptr_nonnull(config_small(cases[i].type, cases[i].more));
        ck_assert_uint_eq(errors.count, i + 1);
        ck_assert_int_eq(errors.items[i].severity, SEVERITY_WARNING);
        ck_assert_msg(strstr(errors.items[i].message, cases[i].words) != NULL, "%s",
                      errors.items[i].message);
    }
}
END_TEST

/* A shape in YAML whose layers do not add up, or that is far from its published size. */
START_TEST(test_shape_contradicts)
{
    static const struct {
        int64_t attend, dense;
        double published;
        bool loads;
        size_t said;
    } cases[] = {{12, 12, NAN, true, 0}, {11, 12, NAN, false, 1}, {12, 11, NAN, false, 1},
                 {4, 8, NAN, true, 0},   {13, 12, NAN, false, 1}, {12, 12, 70e9, true, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attention_group group = {.layers = cases[i].attend,
                                        .kind = ATTENTION_GQA,
                                        .heads = 4,
                                        .kv_heads = 4,
                                        .head_dim = 64,
                                        .compress = 1,
                                        .params_per_layer = NAN};
        struct llm_spec llm = *catalog_llm("llama-3.1-8b", &arena, &errors, NULL);
        llm.layers = 12;
        llm.attention = (struct field_list){.items = &group, .count = 1};
        llm.dense_layers = cases[i].dense;
        llm.published.total_params = cases[i].published;
        size_t before = errors.count;
        ck_assert_msg(llm_check(&llm, &errors, NULL) == cases[i].loads, "case %zu", i);
        ck_assert_msg(errors.count - before == cases[i].said, "case %zu", i);
    }
}
END_TEST

START_TEST(test_config_malformed)
{
    expect_refused("{\"num_hidden_layers\": 3,,}", "config.json: ");
    ck_assert_uint_eq(errors.items[0].pos.line, 1);
    expect_refused("[1, 2]", "is not an object");
    expect_refused("", "config.json: ");
    expect_refused("{}", "'num_hidden_layers' is missing");
    expect_refused("{\"num_hidden_layers\": \"many\"}", "must be a whole number");
    expect_refused("{\"num_hidden_layers\": 4, \"hidden_size\": 64, \"vocab_size\": 100, "
                   "\"num_attention_heads\": -3}",
                   "out of range");
    expect_refused("{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"vocab_size\": 100, "
                   "\"num_attention_heads\": 4, \"intermediate_size\": 9, \"layer_types\": "
                   "[\"full_attention\", \"telepathy\"]}",
                   "layer_types");
    expect_refused("{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"vocab_size\": 100, "
                   "\"num_attention_heads\": 4, \"num_key_value_heads\": 3, "
                   "\"intermediate_size\": 9}",
                   "not a multiple");
    expect_refused("{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"vocab_size\": 100, "
                   "\"num_attention_heads\": 4, \"intermediate_size\": 9, "
                   "\"hybrid_override_pattern\": \"M-M*\"}",
                   "does not know");
    ck_assert_ptr_null(config_small("llama", "\"quantization_config\": \"fp8\""));
    ck_assert_ptr_null(config_small("llama", "\"num_key_value_heads\": 0"));
    ck_assert_ptr_null(
        config_small("llama", "\"no_rope_layers\": [1], \"attention_chunk_size\": 8"));
    static const char *const experts = "\"num_experts\": 8, \"num_experts_per_tok\": 2, %s";
    static const char *const wrong[] = {
        "\"first_k_dense_replace\": 12", "\"decoder_sparse_step\": 100",
        "\"mlp_layer_types\": [\"dense\"]", "\"moe_layer_freq\": [0, 1]",
        "\"mlp_layer_types\": [1.5,1,1,1,1,1,1,1,1,1,1,1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char more[256];
        snprintf(more, sizeof more, experts, wrong[i]);
        ck_assert_msg(config_small("llama", more) == NULL, "%s", wrong[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog");
    TCase *tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_models_load);
    tcase_add_test(tcase, test_gpus_load);
    tcase_add_test(tcase, test_prices_load);
    tcase_add_test(tcase, test_unknown_names);
    tcase_add_test(tcase, test_config_dense);
    tcase_add_test(tcase, test_config_mla_moe);
    tcase_add_test(tcase, test_config_windows);
    tcase_add_test(tcase, test_config_linear);
    tcase_add_test(tcase, test_config_kda);
    tcase_add_test(tcase, test_config_chunks);
    tcase_add_test(tcase, test_config_families);
    tcase_add_test(tcase, test_config_formats);
    tcase_add_test(tcase, test_config_warned);
    tcase_add_test(tcase, test_shape_contradicts);
    tcase_add_test(tcase, test_config_malformed);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
