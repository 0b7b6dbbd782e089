/* explain: every way to name a key, and the reference page. */
#include <string.h>

#include "sim/scenario/explain.h"
#include "tests/scenario_table.h"
#include "tests/unit/suite_run.h"

/* What explain_print prints; the caller frees it. */
static char *explained(const char *key, bool *known)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    *known = explain_print(out, table_root_fields, key);
    fclose(out);
    return text;
}

static void expect_explained(const char *key, const char *expected)
{
    bool known;
    char *text = explained(key, &known);
    ck_assert(known);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_path_names_one_key)
{
    static const char block_size[] =
        "pools.engine.block_size\n"
        "  KV tokens per block\n"
        "  type     whole number; a number of tokens such as 8192, 8k, 1e6\n"
        "  default  16\n"
        "  range    1 to 1024\n";
    expect_explained("pools.engine.block_size", block_size);
    expect_explained("pools[12].engine.block_size", block_size);
    expect_explained("pools.autoscaler.target", "pools.autoscaler.target   (policy: target)\n"
                                                "  where the metric is kept\n"
                                                "  type     number\n"
                                                "  default  none, must be given\n"
                                                "  range    more than 0 up to 1000\n");
    expect_explained("pools.autoscaler", "pools.autoscaler\n"
                                         "  how many replicas\n"
                                         "  type     mapping; 'policy' chooses\n"
                                         "  default  none\n"
                                         "  policy\n"
                                         "    none                     Never scales.\n"
                                         "    static                   A fixed number.\n"
                                         "    target                   Keeps a metric at a "
                                         "target.\n"
                                         "  not yet  predictive\n");
    expect_explained("role", "role\n"
                             "  what the replicas do\n"
                             "  type     name\n"
                             "  default  unified\n"
                             "  choices  unified, prefill, decode\n");
}
END_TEST

START_TEST(a_bare_name_names_all_of_them)
{
    bool known;
    char *text = explained("block_size", &known);
    ck_assert(known);
    ck_assert_ptr_nonnull(strstr(text, "pools.engine.block_size\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nfallback_engine.block_size\n"));
    free(text);
    text = explained("engine.block_size", &known);
    ck_assert(known);
    ck_assert_ptr_null(strstr(text, "fallback_engine"));
    free(text);
    text = explained("name", &known); /* a whole path: pools.name is not meant */
    ck_assert(known);
    ck_assert_ptr_null(strstr(text, "pools.name"));
    free(text);
}
END_TEST

/* A key that chooses is explained with what it chooses from, by path, by its end, and when it is
 * misspelt. */
START_TEST(choosing_keys)
{
    static const char *const keys[] = {"pools.autoscaler.policy", "pools[3].autoscaler.policy",
                                       "autoscaler.policy"};
    bool known;
    char *whole = explained("pools.autoscaler", &known);
    ck_assert(known);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        expect_explained(keys[i], whole);
    }
    free(whole);
    char *text = explained("policy", &known);
    ck_assert(known && strstr(text, "pools.autoscaler\n") && strstr(text, "router\n"));
    free(text);
    text = explained("pools.autoscaler.polcy", &known);
    ck_assert(!known && strstr(text, "did you mean 'pools.autoscaler.policy'?"));
    free(text);
}
END_TEST

START_TEST(a_variant_is_known_by_name)
{
    expect_explained("weighted", "router: {policy: weighted}\n"
                                 "  Scored.\n"
                                 "  keys\n"
                                 "    signals                  what the router knows, and when\n"
                                 "    weights                  one weight per scorer\n");
}
END_TEST

START_TEST(an_unknown_key_gives_the_nearest)
{
    static const char *const cases[][2] = {
        {"blok_size", "unknown key 'blok_size', did you mean 'block_size'?\n"},
        {"pols", "unknown key 'pols', did you mean 'pools'?\n"},
        {"weigthed", "unknown key 'weigthed', did you mean 'weighted'?\n"},
        {"pools.engin.block_size",
         "unknown key 'pools.engin.block_size', did you mean 'pools.engine.block_size'?\n"},
        {"xyzzyxyzzy", "unknown key 'xyzzyxyzzy'\n"},
        {"", "unknown key ''\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool known;
        char *text = explained(cases[i][0], &known);
        ck_assert(!known);
        ck_assert_str_eq(text, cases[i][1]);
        free(text);
    }
}
END_TEST

/* Each key of each table has a row; every row has the five cells of its head. */
START_TEST(the_reference_has_every_key)
{
    static const char *const lines[] = {
        "| `horizon` | a time such as 30 s, 5 min, 2 h | `24 h` | more than 0 s up to 2400 h | "
        "arrivals stop here |\n",
        "| `role` | name: `unified`, `prefill`, `decode` | `unified` |  | what the replicas do |\n",
        "| `max_replicas` | whole number or 'unlimited' | `unlimited` | 1 to 10000 | never more "
        "|\n",
        "\n## `pools[]`\n",
        "\n## `pools[].engine`\n",
        "\n### `pools[].autoscaler` with `policy: target`\n",
        "\n- `predictive`: designed but not built yet\n",
        "\n## `stages[]`\n",
        NULL};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    explain_reference(out, table_root_fields);
    fclose(out);
    for (size_t i = 0; lines[i]; i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "no %s in:\n%s", lines[i], text);
    size_t rows = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t bars = 0;
        for (const char *c = line; *c != '\n'; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        ck_assert_msg(bars == 0 || bars == 6, "%zu bars: %.80s", bars, line);
        rows += bars == 6;
    }
    ck_assert_uint_gt(rows, 50);
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_path_names_one_key,
                                  a_bare_name_names_all_of_them,
                                  a_variant_is_known_by_name,
                                  an_unknown_key_gives_the_nearest,
                                  the_reference_has_every_key,
                                  choosing_keys,
                                  NULL};
    return suite_run("explain", tests, 60);
}
