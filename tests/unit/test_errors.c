/* Errors as values: the printed form, the order, the limit, and the nearest key. */
#include <string.h>

#include "sim/base/errors.h"
#include "tests/unit/suite_run.h"

/* What errors_print writes, into text. */
static void print_into(const struct errors *errors, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    ck_assert_ptr_nonnull(out);
    errors_print(errors, out);
    ck_assert_int_lt(ftell(out), (long)size);
    fclose(out);
}

static void ck_printed(const struct errors *errors, const char *expected)
{
    char text[4096];
    print_into(errors, text, sizeof(text));
    ck_assert_str_eq(text, expected);
}

START_TEST(prints_like_a_compiler)
{
    struct errors errors;
    errors_init(&errors);
    char line[] = "  ruoter: {policy: least_loaded}\nnext: line\n";
    struct source_pos pos = {"scenario.yaml", 12, 3, line};
    errors_add(&errors, SEVERITY_ERROR, &pos, "unknown key '%s', did you mean '%s'?", "ruoter",
               "router");
    memset(line, 'x', sizeof(line) - 1); /* what is kept are copies */
    ck_printed(&errors, "scenario.yaml:12:3: error: unknown key 'ruoter', did you mean 'router'?\n"
                        "   12 |   ruoter: {policy: least_loaded}\n"
                        "      |   ^\n");
    ck_assert_uint_eq(errors.error_count, 1);
    errors_free(&errors);
}
END_TEST

START_TEST(prints_what_is_known)
{
    struct errors errors;
    errors_init(&errors);
    errors_add(&errors, SEVERITY_ERROR, NULL, "no place at all");
    errors_add(&errors, SEVERITY_WARNING, &(struct source_pos){.file = "a.csv"}, "a file");
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"a.csv", 7, 0, NULL}, "a line");
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"a.csv", 7, 0, "1,2"}, "its text");
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"a.csv", 7, 4, "1,2\r\n"}, "its end");
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"a.csv", 7, 900, "1,2"}, "beyond");
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"a.csv", 8, 6, "\tµ\x1b: x"}, "tab");
    ck_printed(&errors, "error: no place at all\n"
                        "a.csv: warning: a file\n"
                        "a.csv:7: error: a line\n"
                        "a.csv:7: error: its text\n    7 | 1,2\n"
                        "a.csv:7:4: error: its end\n    7 | 1,2\n      |    ^\n"
                        "a.csv:7:900: error: beyond\n    7 | 1,2\n      |    ^\n"
                        "a.csv:8:6: error: tab\n    8 | \tµ?: x\n      | \t   ^\n");
    errors_free(&errors);
}
END_TEST

START_TEST(long_lines_are_cut_around_the_caret)
{
    char line[70001];
    memset(line, '.', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    line[50000] = '#';
    struct errors errors;
    errors_init(&errors);
    errors_add(&errors, SEVERITY_ERROR, &(struct source_pos){"f", 1, 50001, line}, "here");
    char text[4096];
    print_into(&errors, text, sizeof(text));
    ck_assert_uint_lt(strlen(text), 400);
    /* The caret stands under the '#': both lines have the same number of characters before. */
    const char *shown = strchr(text, '|'), *mark = strrchr(text, '|');
    const char *hash = strchr(shown, '#'), *caret = strchr(mark, '^');
    ck_assert_ptr_nonnull(hash);
    ck_assert_ptr_nonnull(caret);
    ck_assert_int_eq((hash - shown) - ((int)strlen("…") - 1), caret - mark);
    errors_free(&errors);
}
END_TEST

START_TEST(sorts_by_place_and_keeps_ties)
{
    struct errors errors;
    errors_init(&errors);
    static const struct {
        const char *file;
        uint32_t line, column;
        const char *message;
    } items[] = {{"b", 1, 1, "6"}, {"a", 2, 1, "4"}, {"a", 1, 2, "2"}, {"a", 2, 1, "5"},
                 {"a", 1, 1, "1"}, {"a", 1, 2, "3"}, {NULL, 0, 0, "0"}};
    for (size_t i = 0; i < 7; i++) {
        struct source_pos pos = {items[i].file, items[i].line, items[i].column, NULL};
        errors_add(&errors, SEVERITY_ERROR, &pos, "%s", items[i].message);
    }
    errors_sort(&errors);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_int_eq(errors.items[i].message[0], '0' + (int)i);
    }
    errors_free(&errors);
}
END_TEST

START_TEST(keeps_a_hundred_and_counts_the_rest)
{
    struct errors errors;
    errors_init(&errors);
    for (int i = 0; i < 250; i++) {
        errors_add(&errors, SEVERITY_WARNING, NULL, "warning %d", i);
    }
    ck_assert_uint_eq(errors.count, ERRORS_KEPT_MAX);
    /* Errors push warnings out, and never the other way round. */
    for (int i = 0; i < 120; i++) {
        errors_add(&errors, SEVERITY_ERROR, NULL, "error %d", i);
    }
    errors_add(&errors, SEVERITY_WARNING, NULL, "too late");
    ck_assert_uint_eq(errors.count, ERRORS_KEPT_MAX);
    ck_assert_uint_eq(errors.error_count, 120);
    ck_assert_uint_eq(errors.warning_count, 251);
    for (size_t i = 0; i < errors.count; i++) {
        ck_assert_int_eq(errors.items[i].severity, SEVERITY_ERROR);
    }
    ck_assert_str_eq(errors.items[99].message, "error 99");
    char text[16384];
    print_into(&errors, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "… and 271 more (120 errors and 251 warnings in all)\n"));
    errors_free(&errors);
}
END_TEST

START_TEST(nearest_key)
{
    static const char *const keys[] = {"router", "pools", "engine", "max_num_seqs",
                                       "seed",   "name",  "start",  "enable_prefix_caching",
                                       "tp",     "min",   "max",    NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"ruoter", "router"},                  /* transposition counts once */
        {"routr", "router"},                   /* missing */
        {"routers", "router"},                 /* extra */
        {"rooter", "router"},                  /* changed */
        {"Router", "router"},                  /* case */
        {"max-num-seqs", "max_num_seqs"},      /* dashes */
        {"max_num_sequences", "max_num_seqs"}, /* 5 edits of 17 letters */
        {"enable_prefix_cacheing", "enable_prefix_caching"},
        {"naem", "name"},
        {"mix", "min"}, /* as near as max: the first listed */
        {"sede", "seed"},
        {"pt", "tp"},
        {"x", NULL}, /* one letter is no slip of anything */
        {"", NULL},
        {"banana", NULL},
        {"autoscaler", NULL},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *found = errors_nearest(cases[i].word, keys);
        if (cases[i].nearest == NULL) {
            ck_assert_msg(found == NULL, "%s gave %s", cases[i].word, found);
        } else {
            ck_assert_msg(found != NULL, "%s gave nothing", cases[i].word);
            ck_assert_str_eq(found, cases[i].nearest);
        }
    }
    static const char *const nothing[] = {NULL};
    ck_assert_ptr_null(errors_nearest("router", nothing));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {prints_like_a_compiler,
                                  prints_what_is_known,
                                  long_lines_are_cut_around_the_caret,
                                  sorts_by_place_and_keeps_ties,
                                  keeps_a_hundred_and_counts_the_rest,
                                  nearest_key,
                                  NULL};
    return suite_run("errors", tests, 30);
}
