/* Scenario files: what loads, what is refused with which words at which place, extends, --set. */
#include <string.h>
#include <sys/stat.h>

#include "sim/base/time.h"
#include "sim/scenario/scenario.h"
#include "tests/scenario_table.h"
#include "tests/unit/suite_run.h"

enum { SETS_MAX = 8 };

/* One load and all that it leaves behind. */
struct load {
    struct arena arena;
    struct errors errors;
    struct table_root root;
    struct scenario *scenario;
    char *printed; /* owned; the errors as a user sees them */
};

static void load_run(struct load *load, const char *name, const char *text, size_t length,
                     const char *const *folders, const char *const *sets)
{
    size_t set_count = 0, size;
    while (sets && sets[set_count])
        set_count++;
    struct scenario_request request = {.name = name,
                                       .folders = folders,
                                       .sets = sets,
                                       .set_count = set_count,
                                       .root = table_root_fields,
                                       .target = &load->root};
    arena_init(&load->arena);
    errors_init(&load->errors);
    load->scenario = text ? scenario_load_text(&request, text, length, &load->arena, &load->errors)
                          : scenario_load(&request, &load->arena, &load->errors);
    FILE *out = open_memstream(&load->printed, &size);
    errors_print(&load->errors, out);
    fclose(out);
    ck_assert_int_eq(load->scenario == NULL, load->errors.error_count > 0);
}

static void load_text(struct load *load, const char *text)
{
    load_run(load, "day.yaml", text, strlen(text), NULL, NULL);
}

static void load_free(struct load *load)
{
    scenario_free(load->scenario);
    errors_free(&load->errors);
    arena_free(&load->arena);
    free(load->printed);
}

static void load_ok(const struct load *load)
{
    ck_assert_msg(load->scenario != NULL, "refused:\n%s", load->printed);
}

/* The text is refused with exactly `count` errors, and every given part is in the output. */
static void expect_errors(const char *text, const char *const *sets, size_t count,
                          const char *const *parts)
{
    struct load load;
    load_run(&load, "day.yaml", text, strlen(text), NULL, sets);
    for (size_t i = 0; parts[i]; i++)
        ck_assert_msg(strstr(load.printed, parts[i]) != NULL, "no '%s' in:\n%s", parts[i],
                      load.printed);
    ck_assert_msg(load.errors.error_count == count, "%zu errors instead of %zu:\n%s",
                  load.errors.error_count, count, load.printed);
    load_free(&load);
}
#define EXPECT_ERROR(text, part)                                                                   \
    expect_errors(text, NULL, 1, (const char *const[]){"day.yaml:" part, NULL})
#define EXPECT_SET_ERROR(set, part)                                                                \
    expect_errors(set_base, (const char *const[]){set, NULL}, 1,                                   \
                  (const char *const[]){"--set '" set "':" part, NULL})

/* ---- loading ------------------------------------------------------------------------------------
 */

static const char full[] = "name: day\n"
                           "description: >-\n"
                           "  two\n"
                           "  lines\n"
                           "seed: 15_000\n"
                           "start: 2026-03-02T00:00:00Z\n"
                           "horizon: 90 min\n"
                           "drain: false\n"
                           "role: decode\n"
                           "tier: prefill\n"
                           "file: data/trace.csv.gz\n"
                           "router: {policy: weighted, signals: {delay: 2 ms}, weights: [1, 0.5]}\n"
                           "lengths: {dist: static, replicas: 4}\n"
                           "pools:\n"
                           "  - name: main\n"
                           "    max_queue: 12\n"
                           "    engine: {block_size: 32, num_gpu_blocks: unlimited}\n"
                           "    autoscaler:\n"
                           "      policy: target\n"
                           "      target: 0.7\n"
                           "      interval: 5 s\n"
                           "      max_replicas: 40\n"
                           "    price: $2.10/h\n"
                           "  - {name: spare, autoscaler: static}\n"
                           "tags: [a, 'b c', null]\n"
                           "stages: [none, {policy: static, replicas: 2}]\n"
                           "matrix: [[1, 2], [], [unlimited]]\n";

START_TEST(every_kind_is_filled)
{
    struct load load;
    char text[sizeof full];
    snprintf(text, sizeof text, "%s", full);
    char *spare = strstr(text, "autoscaler: static");
    memcpy(spare, "autoscaler: none  ", 18);
    char *null_tag = strstr(text, "null]");
    memcpy(null_tag, "nuts]", 5);
    load_text(&load, text);
    load_ok(&load);
    const struct table_root *root = &load.root;
    ck_assert_str_eq(root->description, "two lines");
    ck_assert_int_eq(root->seed, 15000);
    ck_assert_int_eq(root->start_s, INT64_C(1772409600));
    ck_assert_int_eq(root->horizon_ps, 5400 * PS_PER_SECOND);
    ck_assert(!root->drain);
    ck_assert_int_eq(root->role, 2);
    ck_assert_int_eq(root->tier, 1);
    ck_assert_str_eq(root->file, "data/trace.csv.gz");
    ck_assert_ptr_eq(root->router.type, &table_weighted_variant);
    const struct table_weighted *weighted = root->router.config;
    ck_assert_int_eq(weighted->signals.delay_ps, 2 * PS_PER_SECOND / 1000);
    ck_assert(weighted->signals.count_own);
    ck_assert_uint_eq(weighted->weights.count, 2);
    ck_assert_double_eq(((double *)weighted->weights.items)[1], 0.5);
    ck_assert_int_eq(((struct table_fixed *)root->lengths.config)->replicas, 4);
    ck_assert_uint_eq(root->pools.count, 2);
    const struct table_pool *pools = root->pools.items;
    ck_assert_int_eq(pools[0].max_queue, 12);
    ck_assert_int_eq(pools[1].max_queue, FIELD_INT_UNLIMITED);
    ck_assert_int_eq(pools[0].engine.blocks, FIELD_INT_UNLIMITED);
    ck_assert_double_eq(pools[0].engine.memory_share, 0.9);
    ck_assert_double_eq(pools[0].price_per_hour, 2.1);
    const struct table_target *target = pools[0].autoscaler.config;
    ck_assert_int_eq(target->common.interval_ps, 5 * PS_PER_SECOND);
    ck_assert_int_eq(target->common.replicas_max, 40);
    ck_assert_int_eq(target->common.replicas_min, 1);
    ck_assert_int_eq(target->metric, 1);
    ck_assert_ptr_eq(pools[1].autoscaler.type, &table_none_variant);
    ck_assert_str_eq(((const char **)root->tags.items)[1], "b c");
    const struct variant_value *stages = root->stages.items;
    ck_assert_ptr_eq(stages[0].type, &table_none_variant);
    ck_assert_int_eq(((struct table_fixed *)stages[1].config)->replicas, 2);
    const struct field_list *rows = root->matrix.items;
    ck_assert_uint_eq(rows[0].count + rows[1].count + rows[2].count, 3);
    ck_assert_int_eq(((int64_t *)rows[2].items)[0], FIELD_INT_UNLIMITED);
    ck_assert_str_eq(scenario_text(load.scenario), text);
    ck_assert_str_eq(scenario_path(load.scenario), "day.yaml");
    load_free(&load);
}
END_TEST

START_TEST(everything_wrong_is_reported_at_once)
{
    expect_errors(full, NULL, 2,
                  (const char *const[]){
                      "day.yaml:24:19: error: missing key 'replicas' in pools[1].autoscaler "
                      "(policy 'static' needs it): how many\n"
                      "   24 |   - {name: spare, autoscaler: static}\n"
                      "      |                   ^\n",
                      "day.yaml:25:18: error: 'tags[2]' has no value\n"
                      "   25 | tags: [a, 'b c', null]\n"
                      "      |                  ^\n",
                      NULL});
    expect_errors(
        "nmae: x\n"
        "horizon: 3 lightyears\n"
        "router: {polcy: weighted}\n"
        "pools: {name: main}\n"
        "fallback_engine:\n"
        "  block_size: 0\n"
        "  block_sise: 4\n"
        "  block_size: 5\n"
        "seed: unlimited\n",
        NULL, 9,
        (const char *const[]){
            "day.yaml:1:1: error: unknown key 'nmae' at the top level, did you mean 'name'?",
            "day.yaml:1:1: error: missing key 'name' at the top level: what outputs are",
            "day.yaml:2:10: error: 'horizon': '3 lightyears': unknown unit 'lightyears'",
            "day.yaml:3:10: error: unknown key 'polcy' in router, did you mean 'policy'?",
            "day.yaml:4:8: error: 'pools': expected a list, found a mapping",
            "day.yaml:6:15: error: 'block_size': must be at least 1, not 0",
            "day.yaml:7:3: error: unknown key 'block_sise' in fallback_engine, did you",
            "day.yaml:8:3: error: duplicate key 'block_size', first given in line 6",
            "day.yaml:9:7: error: 'seed': cannot be unlimited", NULL});
}
END_TEST

START_TEST(wrong_values_say_what_is_expected)
{
    EXPECT_ERROR("name: [x]", "1:7: error: 'name': expected a single value, found a list");
    EXPECT_ERROR("name:\n", "1:1: error: 'name' has no value");
    EXPECT_ERROR("name: ~\n", "1:7: error: 'name' has no value");
    EXPECT_ERROR("name: x\nfallback_engine: 3\n",
                 "2:18: error: 'fallback_engine': expected a mapping, found the value '3'");
    EXPECT_ERROR("name: x\nfallback_engine:\n",
                 "2:1: error: 'fallback_engine': expected a mapping, found nothing");
    EXPECT_ERROR("name: x\ntags: a\n", "2:7: error: 'tags': expected a list, found the value 'a'");
    EXPECT_ERROR("name: x\nseed: 1.5\n", "2:7: error: 'seed': '1.5' is not a whole number");
    EXPECT_ERROR("name: x\ndrain: yes\n", "2:8: error: 'drain': 'yes' is neither true nor false");
    EXPECT_ERROR("name: x\nrole: prefil\n",
                 "2:7: error: unknown role 'prefil', did you mean 'prefill'?");
    EXPECT_ERROR("name: x\nmatrix: [[1], [a]]\n", "2:16: error: 'matrix[1][0]': 'a' is not");
    EXPECT_ERROR("name: x\npools: [{name: p, hourly: [1, 2]}]\n",
                 "2:19: error: 'hourly' needs exactly 24 items, not 2");
    EXPECT_ERROR("name: x\nstart: noon\n", "2:8: error: 'start': 'noon' is not a UTC time");
}
END_TEST

START_TEST(variants_know_their_keys)
{
    EXPECT_ERROR(
        "name: x\npools: [{name: p, autoscaler: {policy: static, replicas: 1, target: 1}}]",
        "2:61: error: 'target' belongs to policy 'target', not 'static' (in "
        "pools[0].autoscaler)");
    EXPECT_ERROR("name: x\nrouter: prefix_aware\n",
                 "2:9: error: router policy 'prefix_aware' is designed but not built yet");
    EXPECT_ERROR("name: x\nrouter: {policy: round_robbin}\n",
                 "2:18: error: unknown router policy 'round_robbin', did you mean 'round_robin'?");
    EXPECT_ERROR("name: x\nrouter: xyzzy\n", "2:9: error: unknown router policy 'xyzzy'; known: "
                                             "round_robin, weighted");
    EXPECT_ERROR("name: x\nlengths: {replicas: 3}\n",
                 "2:1: error: missing key 'dist' in lengths (one of none, static, target)");
    EXPECT_ERROR("name: x\nrouter: {policy: [a]}\n",
                 "2:18: error: 'router': expected a name (policy: round_robin, weighted), found a");
    EXPECT_ERROR("name: x\nstages: [static]\n",
                 "2:10: error: missing key 'replicas' in stages[0] (policy 'static' needs it)");
    EXPECT_ERROR("name: x\nstages: [statik]\n", "2:10: error: unknown stages policy 'statik'");
    /* A VARIANT without its tag is its default. */
    struct load load;
    load_text(&load, "name: x\nrouter: {}\n");
    load_ok(&load);
    ck_assert_ptr_eq(load.root.router.type, &table_robin_variant);
    load_free(&load);
}
END_TEST

START_TEST(null_unsets_what_is_optional)
{
    struct load load;
    load_text(&load, "name: 'null'\ndescription: ~\ntags: null\nlengths:\ntier: null\nstart:\n");
    load_ok(&load);
    ck_assert_str_eq(load.root.name, "null");
    ck_assert_ptr_null(load.root.description);
    ck_assert_ptr_null(load.root.tags.items);
    ck_assert_ptr_null(load.root.lengths.type);
    ck_assert_int_eq(load.root.tier, -1);
    ck_assert_int_eq(load.root.start_s, FIELD_INT_UNSET);
    load_free(&load);
    load_text(&load, "name: x\ntags: []\n"); /* empty is not unset */
    load_ok(&load);
    ck_assert_ptr_nonnull(load.root.tags.items);
    load_free(&load);
}
END_TEST

/* ---- YAML itself --------------------------------------------------------------------------------
 */

START_TEST(syntax_errors_have_a_place)
{
    EXPECT_ERROR("name: [x\n", "2:1: error: YAML: ");
    EXPECT_ERROR("name: x\n  seed: 3\n", "1:7: error: YAML: ");
    EXPECT_ERROR("name: x\n\tseed: 3\n", "1:7: error: YAML: invalid multiline plain key; line 2 is "
                                         "indented with a tab");
    EXPECT_ERROR("name: \"x\n", "1:8: error: YAML: double-quoted scalar without closing quote");
    EXPECT_ERROR("name: @x\n", "1:7: error: YAML: ");
    EXPECT_ERROR("name: x\n---\nname: y\n", "2:1: error: a second document begins here");
    EXPECT_ERROR("%YAML 9.9\n---\nname: x\n", "1:1: error: YAML: unsupport");
    EXPECT_ERROR("", "1:1: error: there is nothing in it");
    EXPECT_ERROR("# only a comment\n", "1:1: error: there is nothing in it");
    EXPECT_ERROR("- name\n", "1:1: error: a scenario is a mapping of keys to values, not a list");
    EXPECT_ERROR("just text\n", "1:1: error: a scenario is a mapping of keys to values, not the");
    EXPECT_ERROR("name: !!str x\n", "1:13: error: tags such as !text are not known here");
    EXPECT_ERROR("? [a]\n: b\n", "1:3: error: a key must be a name, not a mapping or a list");
    EXPECT_ERROR("<<: x\n", "1:1: error: merge keys");
    EXPECT_ERROR("name: *x\n", "1:7: error: no complete value is anchored as '&x' before this");
    EXPECT_ERROR("name: caf\xe9\n", "1:10: error: byte 0xe9 is not UTF-8 text");
    EXPECT_ERROR("name: \x01\n", "1:7: error: control character 0x01 in the text");
    EXPECT_ERROR("name: \"a\\0b\"\n", "1:7: error: a NUL character inside a text");
}
END_TEST

START_TEST(binary_texts_are_refused)
{
    struct load load;
    load_run(&load, "day.yaml", "name: x\0y\n", 10, NULL, NULL);
    ck_assert_str_eq(load.printed, "day.yaml: error: a binary file, not a YAML text\n");
    load_free(&load);
}
END_TEST

/* Places count bytes, whatever the characters and line ends. */
START_TEST(places_survive_unicode_and_crlf)
{
    EXPECT_ERROR("name: \"\xc3\xa9\xc3\xa9\"\r\ntags: [\xc3\xa9, [x]]\r\n",
                 "2:12: error: 'tags[1]': expected a single value, found a list");
    EXPECT_ERROR("\xef\xbb\xbfname: x\nrole: y\n", "2:7: error: unknown role 'y'");
}
END_TEST

START_TEST(aliases_are_copies)
{
    struct load load;
    static const char text[] =
        "name: &n day\ndescription: *n\nfallback_engine: &e {block_size: 8}\n"
        "pools: [{name: a, engine: *e}, {name: b, engine: *e}]\n";
    load_run(&load, "day.yaml", text, strlen(text), NULL,
             (const char *const[]){"pools[0].engine.block_size=64", NULL});
    load_ok(&load);
    const struct table_pool *pools = load.root.pools.items;
    ck_assert_str_eq(load.root.description, "day");
    ck_assert_int_eq(pools[0].engine.block_size, 64);
    ck_assert_int_eq(pools[1].engine.block_size, 8);
    ck_assert_int_eq(load.root.fallback_engine.block_size, 8);
    load_free(&load);
}
END_TEST

START_TEST(hostile_texts_end_early)
{
    char deep[200] = "name: ";
    memset(deep + 6, '[', 100);
    EXPECT_ERROR(deep, "1:70: error: nested more than 64 deep");
    EXPECT_ERROR("a: &a [x, x, x, x, x, x, x, x, x, x]\n"
                 "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
                 "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
                 "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
                 "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
                 "5:36: error: more than 100000 values (aliases expanded)");
    EXPECT_ERROR("name: &a [*a]\n", "1:11: error: no complete value is anchored as '&a'");
}
END_TEST

/* 40,000 keys: seconds if finding one of them were linear. */
START_TEST(big_mappings_are_not_quadratic)
{
    size_t size = 40000 * 16 + 64, used;
    char *text = malloc(size);
    used = (size_t)snprintf(text, size, "name: x\n");
    for (int i = 0; i < 40000; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d: 1\n", i);
    snprintf(text + used, size - used, "k7: 2\n");
    struct load load;
    load_text(&load, text);
    ck_assert_uint_eq(load.errors.error_count, 40001); /* one of them for the duplicate */
    ck_assert_ptr_nonnull(strstr(load.printed, "unknown key 'k0' at the top level"));
    load_free(&load);
    free(text);
}
END_TEST

/* ---- --set --------------------------------------------------------------------------------------
 */

static const char set_base[] = "name: day\n"
                               "pools:\n"
                               "  - name: main\n"
                               "    autoscaler: {policy: target, target: 2, interval: 3 s}\n"
                               "  - {name: spare}\n";

START_TEST(sets_replace_and_create)
{
    struct load load;
    load_run(&load, "day.yaml", set_base, sizeof set_base - 1, NULL,
             (const char *const[]){"seed=7", "fallback_engine.block_size=64",
                                   "pools[1].autoscaler={policy: static, replicas: 3}",
                                   "router=weighted", "router.weights=[1, 2]", "name=a b=c", NULL});
    load_ok(&load);
    const struct table_pool *pools = load.root.pools.items;
    ck_assert_int_eq(load.root.seed, 7);
    ck_assert_int_eq(load.root.fallback_engine.block_size, 64);
    ck_assert_int_eq(((struct table_fixed *)pools[1].autoscaler.config)->replicas, 3);
    ck_assert_uint_eq(((struct table_weighted *)load.root.router.config)->weights.count, 2);
    ck_assert_str_eq(load.root.name, "a b=c");
    ck_assert_uint_eq(load.errors.warning_count, 0);
    load_free(&load);
}
END_TEST

START_TEST(setting_a_tag_drops_the_old_variants_keys)
{
    struct load load;
    load_run(&load, "day.yaml", set_base, sizeof set_base - 1, NULL,
             (const char *const[]){"pools[0].autoscaler.policy=static",
                                   "pools[0].autoscaler.replicas=3", NULL});
    load_ok(&load);
    const struct table_pool *pools = load.root.pools.items;
    ck_assert_int_eq(((struct table_fixed *)pools[0].autoscaler.config)->replicas, 3);
    ck_assert_str_eq(load.printed,
                     "--set 'pools[0].autoscaler.policy=static':1:21: warning: policy 'static' has "
                     "no use for what policy 'target' was given: dropped 'target', 'interval'\n"
                     "    1 | pools[0].autoscaler.policy=static\n"
                     "      |                     ^\n");
    load_free(&load);
    /* The same tag again drops nothing. */
    load_run(&load, "day.yaml", set_base, sizeof set_base - 1, NULL,
             (const char *const[]){"pools[0].autoscaler.policy=target", NULL});
    load_ok(&load);
    pools = load.root.pools.items;
    ck_assert_double_eq(((struct table_target *)pools[0].autoscaler.config)->target, 2);
    ck_assert_uint_eq(load.errors.warning_count, 0);
    load_free(&load);
}
END_TEST

START_TEST(wrong_sets_point_into_their_text)
{
    EXPECT_SET_ERROR("seed", "1:5: error: expected path=value: no '='");
    EXPECT_SET_ERROR("sed=1",
                     "1:1: error: unknown key 'sed' at the top level, did you mean 'seed'?");
    EXPECT_SET_ERROR("seed=x", "1:6: error: 'seed': 'x' is not");
    EXPECT_SET_ERROR("seed=", "1:6: error: there is nothing in it");
    EXPECT_SET_ERROR("=1", "1:1: error: a key is missing here");
    EXPECT_SET_ERROR("pools..name=1", "1:7: error: a key is missing here");
    EXPECT_SET_ERROR("pools[2].name=x", "1:6: error: 'pools' has 2 items; there is no [2]");
    EXPECT_SET_ERROR("pools[x].name=x", "1:6: error: an index is a number in brackets");
    EXPECT_SET_ERROR("pools[99999999999].name=x", "1:6: error: an index is a number in brackets");
    EXPECT_SET_ERROR("name[0]=x", "1:5: error: 'name' is the value 'day', not a list");
    EXPECT_SET_ERROR("name.x=1", "1:6: error: there is no 'x' here: this is the value 'day'");
    EXPECT_SET_ERROR("pools.name=x", "1:7: error: there is no 'name' here: this is a list");
    EXPECT_SET_ERROR("tags=[a", "1:8: error: YAML: flow sequence without a closing bracket");
    EXPECT_SET_ERROR("pools[0]name=x", "1:9: error: expected '.', '[' or '='");
    EXPECT_SET_ERROR("router.policy=prefix_aware",
                     "1:15: error: router policy 'prefix_aware' is designed but not built yet");
    EXPECT_SET_ERROR("lengths=static", "1:1: error: missing key 'replicas' in lengths");
    EXPECT_SET_ERROR("router={policy:weighted}", "1:9: error: unknown key 'policy:weighted' in "
                                                 "router; a space is missing after ':'");
}
END_TEST

/* ---- files --------------------------------------------------------------------------------------
 */

static char folder[64];

static const char *file_put(const char *name, const char *text, size_t length)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, length, out), length);
    ck_assert_int_eq(fclose(out), 0);
    return path;
}
#define FILE_PUT(name, text) file_put(name, text, strlen(text))

static void folder_make(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void folder_setup(void)
{
    snprintf(folder, sizeof folder, "scenario-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void folder_teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void load_file(struct load *load, const char *name, const char *const *sets)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    load_run(load, path, NULL, 0, NULL, sets);
}

/* The file is refused with one error that holds part. */
static void expect_file_error(const char *name, const char *part)
{
    struct load load;
    load_file(&load, name, NULL);
    ck_assert_msg(strstr(load.printed, part) != NULL, "no '%s' in:\n%s", part, load.printed);
    ck_assert_uint_eq(load.errors.error_count, 1);
    load_free(&load);
}

START_TEST(extends_merges)
{
    struct load load;
    char expected[200];
    folder_setup();
    folder_make("base");
    FILE_PUT("base/base.yaml", "name: base\nfile: trace.csv\nfallback_engine: {block_size: 8, "
                               "memory_share: 0.5}\ntags: [a, b]\n"
                               "lengths: {dist: target, target: 3, interval: 9 s}\n"
                               "router: {policy: weighted, weights: [1], signals: {delay: 1 s}}");
    FILE_PUT("middle.yaml", "extends: base/base.yaml\nname: middle\nfallback_engine: "
                            "{block_size: 16}\nlengths: {target: 4}\n");
    FILE_PUT("top.yaml", "extends: middle.yaml\nfallback_engine: {note: hi}\ntags: [c]\n"
                         "router: {policy: round_robin}\n");
    load_file(&load, "top.yaml", NULL);
    load_ok(&load);
    const struct table_root *root = &load.root;
    ck_assert_str_eq(root->name, "middle");
    snprintf(expected, sizeof expected, "%s/base/trace.csv", folder);
    ck_assert_str_eq(root->file, expected); /* relative to the file that wrote it */
    ck_assert_int_eq(root->fallback_engine.block_size, 16);
    ck_assert_double_eq(root->fallback_engine.memory_share, 0.5);
    ck_assert_str_eq(root->fallback_engine.note, "hi");
    ck_assert_uint_eq(root->tags.count, 1);
    const struct table_target *target = root->lengths.config;
    ck_assert_double_eq(target->target, 4); /* no tag in the overlay: merged */
    ck_assert_int_eq(target->common.interval_ps, 9 * PS_PER_SECOND);
    ck_assert_ptr_eq(root->router.type, &table_robin_variant); /* another tag: base dropped */
    char *second = strstr(scenario_text(load.scenario), "# extends ");
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_nonnull(strstr(second, "name: middle"));
    ck_assert_ptr_nonnull(strstr(second, "/base/base.yaml\nname: base\n"));
    load_free(&load);
    load_file(&load, "top.yaml", (const char *const[]){"file=here.csv", NULL});
    load_ok(&load);
    ck_assert_str_eq(load.root.file, "here.csv"); /* relative to the working directory */
    load_free(&load);
    folder_teardown();
}
END_TEST

START_TEST(extends_errors_have_a_place)
{
    struct load load;
    folder_setup();
    FILE_PUT("a.yaml", "extends: b.yaml\nname: a\n");
    FILE_PUT("b.yaml", "extends: ./a.yaml\n");
    expect_file_error("a.yaml", "b.yaml:1:10: error: 'extends' goes in a circle");
    FILE_PUT("self.yaml", "name: x\nextends: self.yaml\n");
    expect_file_error("self.yaml", "self.yaml:2:10: error: 'extends' goes in a circle");
    FILE_PUT("gone.yaml", "name: x\nextends: nowhere.yaml\n");
    expect_file_error("gone.yaml", "nowhere.yaml: No such file or directory\n    2 | extends: ");
    FILE_PUT("list.yaml", "extends: [a]\n");
    expect_file_error("list.yaml", "list.yaml:1:10: error: 'extends': expected the path of a");
    FILE_PUT("bad.yaml", "seed: x\n");
    FILE_PUT("good.yaml", "extends: bad.yaml\nname: 'x'\n");
    expect_file_error("good.yaml", "bad.yaml:1:7: error: 'seed': 'x' is not");
    load_text(&load, "name: x\nextends: other.yaml\n");
    ck_assert_ptr_nonnull(strstr(load.printed, "day.yaml:2:1: error: 'extends' is not followed"));
    load_free(&load);
    folder_teardown();
}
END_TEST

START_TEST(names_are_looked_up)
{
    struct load load;
    char path[200];
    folder_setup();
    folder_make("chat-1m");
    folder_make("azure-conv");
    folder_make("empty");
    FILE_PUT("chat-1m/scenario.yaml", "name: chat\nfile: x.csv\n");
    FILE_PUT("azure-conv/scenario.yaml", "name: azure\n");
    const char *const folders[] = {"/nonexistent", folder, NULL};
    load_run(&load, "chat-1m", NULL, 0, folders, NULL);
    load_ok(&load);
    snprintf(path, sizeof path, "%s/chat-1m/scenario.yaml", folder);
    ck_assert_str_eq(scenario_path(load.scenario), path);
    load_free(&load);
    load_run(&load, "chat-1n", NULL, 0, folders, NULL);
    ck_assert_str_eq(load.printed, "error: no scenario named 'chat-1n', did you mean 'chat-1m'?\n");
    load_free(&load);
    load_run(&load, "xyzzy", NULL, 0, folders, NULL);
    ck_assert_str_eq(load.printed, "error: no scenario named 'xyzzy' and no such file; known: "
                                   "azure-conv, chat-1m\n");
    load_free(&load);
    load_file(&load, "chat-1m", NULL); /* a folder by its path */
    load_ok(&load);
    load_free(&load);
    expect_file_error("empty", "a folder, not a scenario file");
    expect_file_error("absent.yaml", "absent.yaml: No such file or directory");
    expect_file_error("empty/absent", "empty/absent: No such file or directory");
    FILE_PUT("nothing.yaml", "");
    expect_file_error("nothing.yaml", "nothing.yaml:1:1: error: there is nothing in it");
    folder_teardown();
}
END_TEST

START_TEST(large_files_are_whole_or_refused)
{
    struct load load;
    folder_setup();
    size_t size = (16u << 20) + 1;
    char *text = malloc(size);
    memset(text, '#', size);
    memcpy(text, "name: x\n", 8);
    file_put("limit.yaml", text, size - 1);
    load_file(&load, "limit.yaml", NULL);
    load_ok(&load);
    ck_assert_uint_eq(strlen(scenario_text(load.scenario)), size - 1);
    load_free(&load);
    file_put("over.yaml", text, size);
    expect_file_error("over.yaml", "over.yaml: larger than 16 MiB, the limit for a scenario");
    for (size_t i = 8; i < 70000; i++)
        text[i] = i % 61 == 0 ? '\n' : i % 61 == 1 ? '#' : (char)(' ' + i % 90);
    text[8] = '#';
    text[69999] = '\n';
    file_put("long.yaml", text, 70000);
    load_file(&load, "long.yaml", NULL);
    load_ok(&load);
    ck_assert_uint_eq(strlen(scenario_text(load.scenario)), 70000);
    ck_assert_int_eq(memcmp(scenario_text(load.scenario), text, 70000), 0);
    load_free(&load);
    free(text);
    folder_teardown();
}
END_TEST

/* ---- places for later stages --------------------------------------------------------------------
 */

static void expect_place(struct scenario *scenario, const char *path, unsigned line,
                         unsigned column, bool wrote)
{
    struct source_pos pos;
    struct locator where = scenario_locator(scenario);
    where.find(where.self, path, &pos);
    ck_assert_msg(pos.line == line && pos.column == column, "%s is at %u:%u", path, pos.line,
                  pos.column);
    ck_assert_str_eq(pos.file, "day.yaml");
    ck_assert_msg(scenario_wrote(scenario, path) == wrote, "%s", path);
}

START_TEST(the_locator_finds_what_was_written)
{
    struct load load;
    load_text(&load, set_base);
    load_ok(&load);
    expect_place(load.scenario, "name", 1, 7, true);
    expect_place(load.scenario, "pools[0].name", 3, 11, true);
    expect_place(load.scenario, "pools[0].autoscaler.target", 4, 42, true);
    expect_place(load.scenario, "pools[0].autoscaler", 4, 5, true);         /* a mapping: its key */
    expect_place(load.scenario, "pools[0].engine.block_size", 3, 5, false); /* the item */
    expect_place(load.scenario, "pools[7].name", 2, 1, false);
    expect_place(load.scenario, "seed", 0, 0, false);
    expect_place(load.scenario, "", 0, 0, false);
    expect_place(load.scenario, "pools[", 2, 1, false);
    expect_place(load.scenario, "name.x.y[3]", 1, 1, false);
    load_free(&load);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_kind_is_filled,
                                  everything_wrong_is_reported_at_once,
                                  wrong_values_say_what_is_expected,
                                  variants_know_their_keys,
                                  null_unsets_what_is_optional,
                                  syntax_errors_have_a_place,
                                  binary_texts_are_refused,
                                  places_survive_unicode_and_crlf,
                                  aliases_are_copies,
                                  hostile_texts_end_early,
                                  big_mappings_are_not_quadratic,
                                  sets_replace_and_create,
                                  setting_a_tag_drops_the_old_variants_keys,
                                  wrong_sets_point_into_their_text,
                                  extends_merges,
                                  extends_errors_have_a_place,
                                  names_are_looked_up,
                                  large_files_are_whole_or_refused,
                                  the_locator_finds_what_was_written,
                                  NULL};
    return suite_run("scenario", tests, 60);
}
