#!/usr/bin/env python3
"""Every rule of lint.py against a snippet it must pass and one it must find."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import lint  # noqa: E402

GUARDED = "#ifndef FLEETSIM_{0}\n#define FLEETSIM_{0}\n{1}\n#endif\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="fleetsim-lint-"))
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self, rule, build=None):
        tree = lint.Tree(self.root, build)
        return [(name, line, message)
                for name, line, _, message
                in lint.findings_of(tree, [getattr(lint, "rule_" + rule)])]

    def assert_found(self, rule, name, line, word):
        found = self.found(rule)
        self.assertTrue(any(n == name and l == line and word in m for n, l, m in found),
                        f"{rule} did not find {word!r} at {name}:{line}, but {found}")

    def assert_clean(self, rule):
        self.assertEqual(self.found(rule), [])


class Layers(Case):
    def test_down_is_right(self):
        self.put("sim/base/a.h", "")
        self.put("models/price.h", "")
        self.put("sim/engine/e.c", '#include "sim/base/a.h"\n#include "models/price.h"\n')
        self.put("sim/metrics/m.c", '#include "models/price.h"\n')
        self.assert_clean("layers")

    def test_up_and_sideways_are_wrong(self):
        self.put("sim/engine/e.h", "")
        self.put("sim/fleet/f.h", "")
        self.put("models/step_time.h", "")
        self.put("sim/base/b.c", '\n#include "sim/engine/e.h"\n')
        self.put("sim/engine/e.c", '#include "sim/fleet/f.h"\n')
        self.put("sim/metrics/m.c", '#include "models/step_time.h"\n')
        self.assert_found("layers", "sim/base/b.c", 2, "sim/engine/e.h")
        self.assert_found("layers", "sim/engine/e.c", 1, "sim/fleet/f.h")
        self.assert_found("layers", "sim/metrics/m.c", 1, "models/step_time.h")

    def test_paths_start_at_the_root(self):
        self.put("sim/base/a.h", "")
        self.put("sim/base/a.c", '#include "a.h"\n')
        self.assert_found("layers", "sim/base/a.c", 1, "not a file of the tree")


class Libraries(Case):
    def test_homes(self):
        self.put("sim/trace/t.c", "#include <hdf5.h>\n#include <stdio.h>\n")
        self.put("sim/scenario/s.c", "#include <libfyaml.h>\n")
        self.put("tests/unit/test_t.c", "#include <check.h>\n#include <jansson.h>\n")
        self.assert_clean("libraries")

    def test_strays(self):
        self.put("sim/run/r.c", "#include <hdf5.h>\n#include <libfyaml.h>\n")
        self.put("models/m.c", "#include <jansson.h>\n")
        self.put("sim/base/b.c", "#include <threads.h>\n")
        self.assert_found("libraries", "sim/run/r.c", 1, "sim/trace")
        self.assert_found("libraries", "sim/run/r.c", 2, "sim/scenario")
        self.assert_found("libraries", "models/m.c", 1, "sim/workload")
        self.assert_found("libraries", "sim/base/b.c", 1, "no table")


class Banned(Case):
    def test_words_in_text_are_no_calls(self):
        self.put("sim/engine/e.c", '/* never strcpy() here, nor log( */\nconst char *const t ='
                                   ' "sprintf(";\nint x_log(int v);\n')
        self.put("sim/cli/c.c", "void c(void)\n{\n    clock_gettime(0, 0);\n}\n")
        self.put("sim/base/b.c", "double b(double x)\n{\n    return log(x);\n}\n")
        self.assert_clean("banned")

    def test_calls_and_types(self):
        for call in ("gets", "strcpy", "strcat", "sprintf", "rand", "srand", "strtok", "atoi",
                     "atof", "setjmp", "longjmp", "alloca", "clock_gettime"):
            self.put("sim/base/b.c", f"void b(void)\n{{\n    {call}(0);\n}}\n")
            self.assert_found("banned", "sim/base/b.c", 3, call)
        self.put("sim/base/b.c", "typedef struct b b;\nfloat t;\n")
        self.assert_found("banned", "sim/base/b.c", 1, "typedef struct")
        self.assert_found("banned", "sim/base/b.c", 2, "float")

    def test_libm_where_order_is_decided(self):
        for call in ("log", "exp", "pow", "cos", "gsl_ran_gamma"):
            self.put("sim/workload/w.c", f"double w(double x)\n{{\n    return {call}(x);\n}}\n")
            self.assert_found("banned", "sim/workload/w.c", 3, call)


class Sizes(Case):
    @staticmethod
    def function(name, lines):
        return f"int {name}(void)\n{{\n" + "    ;\n" * (lines - 3) + "}\n"

    def test_at_the_limit(self):
        self.put("sim/base/b.c", self.function("b_one", 70) + "/* " + "é" * 97 + "\n*/\n")
        self.assert_clean("sizes")

    def test_beyond(self):
        self.put("sim/base/b.c", "int b_x;\n" + self.function("b_one", 71) + "/" * 101 + "\n")
        self.assert_found("sizes", "sim/base/b.c", 2, "b_one has 71 lines")
        self.assert_found("sizes", "sim/base/b.c", 73, "101 columns")
        self.put("sim/base/c.c", "\n" * 901)
        self.assert_found("sizes", "sim/base/c.c", 900, "901 lines")

    def test_a_check_test_is_a_function(self):
        self.put("tests/unit/test_b.c", "START_TEST(one)\n{\n    ;\n}\nEND_TEST\n"
                 "START_TEST(two)\n{\n" + "    ;\n" * 80 + "}\nEND_TEST\n")
        self.assert_found("sizes", "tests/unit/test_b.c", 6, "START_TEST has")


class Prefixes(Case):
    def test_own_or_declaring_file(self):
        self.put("sim/base/a.h", GUARDED.format("SIM_BASE_A_H", "void a_one(void);\nvoid a(void);"))
        self.put("sim/base/a.c", "void a_one(void)\n{\n}\nvoid a(void)\n{\n}\n"
                                 "static int helper(void)\n{\n    return 0;\n}\n")
        self.put("sim/base/a_more.c", "void a_one(void)\n{\n}\nvoid a_more_two(void)\n{\n}\n")
        self.assert_clean("prefixes")

    def test_files_that_share_a_header(self):
        self.put("sim/fleet/fleet.h", "")
        self.put("sim/fleet/fleet_pool.c", "void fleet_open(void)\n{\n}\n")
        self.assert_clean("prefixes")
        self.put("sim/fleet/fleet_pool.c", "void pool_open(void)\n{\n}\n")
        self.assert_found("prefixes", "sim/fleet/fleet_pool.c", 1, "pool_open")

    def test_stray_names(self):
        self.put("sim/base/a.c", "\nint stray(void)\n{\n    return 0;\n}\n")
        self.put("sim/base/a.h", "static inline int other(void)\n{\n    return 0;\n}\n")
        self.assert_found("prefixes", "sim/base/a.c", 2, "stray")
        self.assert_found("prefixes", "sim/base/a.h", 1, "other")


class Globals(Case):
    def test_constants_types_and_prototypes(self):
        self.put("sim/base/a.c", """
enum { A_MAX = 3 };
enum color { RED = 1, BLUE };
struct pair { int a; int (*call)(void); };
extern int a_elsewhere;
int a_call(int (*f)(void));
static const int table[] = {1, 2};
static const char *const names[] = {"x", 0};
const struct pair a_pair = {.a = 1};
int a_get(void)
{
    static const int seven = 7;
    int local = seven;
    return local;
}
_Static_assert(A_MAX == 3, "three");
""")
        self.assert_clean("globals")

    def test_what_can_be_written(self):
        self.put("sim/base/a.c", "int a_count;\nstatic const char *name = 0;\n"
                                 "struct pair { int a; } a_pair;\nint a_get(void)\n{\n"
                                 "    static int calls = 0;\n"
                                 "    return calls++;\n}\n")
        self.assert_found("globals", "sim/base/a.c", 1, "a_count")
        self.assert_found("globals", "sim/base/a.c", 2, "name")
        self.assert_found("globals", "sim/base/a.c", 3, "a_pair")
        self.assert_found("globals", "sim/base/a.c", 6, "calls")


class Objects(Case):
    """What only the compiler sees: symbols and data that come out of macros."""

    SOURCE = ("#define MAKE(name) int name##_total; void name##_go(void) { name##_total++; }\n"
              "MAKE(wild)\n/* wild_total wild_go */\nconst int *a_ptr(void);\n"
              "static int *const pointer = 0;\nconst int *a_ptr(void)\n{\n    return pointer;\n}\n"
              "int *wild_total_of(void) { return &wild_total; }\nvoid a_w(void) { wild_go(); }\n")

    def test_macro_made(self):
        if not (shutil.which("cc") and shutil.which("nm") and shutil.which("objdump")):
            self.skipTest("cc, nm or objdump is not installed")
        self.put("sim/base/a.c", self.SOURCE)
        out = self.root / "build/x/CMakeFiles/fs_base.dir/sim/base"
        out.mkdir(parents=True)
        subprocess.run(["cc", "-c", str(self.root / "sim/base/a.c"), "-o", str(out / "a.c.o")],
                       check=True)
        build = self.root / "build/x"
        names = [m for _, _, m in self.found("prefixes", build)]
        self.assertTrue(any("wild_go" in m for m in names), names)
        data = [m for _, _, m in self.found("globals", build)]
        self.assertEqual(data, ["mutable data: wild_total in .bss"])


class Guards(Case):
    def test_path(self):
        self.put("sim/base/a_b.h",
                 "/* words first */\n" + GUARDED.format("SIM_BASE_A_B_H", "int x;"))
        self.assert_clean("guards")

    def test_wrong_late_or_missing(self):
        self.put("sim/base/a.h", GUARDED.format("SIM_BASE_B_H", ""))
        self.put("sim/base/b.h", GUARDED.format("SIM_BASE_B_H", "") + "int after;\n")
        self.put("sim/base/c.h", "#pragma once\n")
        self.put("sim/base/d.h", "")
        for name in "abcd":
            self.assert_found("guards", f"sim/base/{name}.h", 1, "include guard")


class Dead(Case):
    def test_all_in_use(self):
        self.put("sim/base/a.h", "")
        self.put("sim/base/a.c", '#include "sim/base/a.h"\n')
        self.put("tests/unit/support_x.c", "")
        self.put("analysis/fleetio.py", "x = 1\n")
        self.put("analysis/plot.py", "import fleetio\nif __name__ == '__main__':\n    pass\n")
        self.assert_clean("dead")

    def test_unused(self):
        self.put("sim/base/a.h", '#include "sim/base/a.h"\n')
        self.put("sim/base/deep/a.c", "")
        self.put("tests/unit/helper.c", "")
        self.put("analysis/alone.py", "x = 1\n")
        for name in ("sim/base/a.h", "sim/base/deep/a.c", "tests/unit/helper.c",
                     "analysis/alone.py"):
            self.assertIn(name, [n for n, _, _ in self.found("dead")])


class Words(Case):
    def test_ordinary_text(self):
        self.put("docs/a.md", "Mastodon, stubborn, mktemp x.XXXXXX, /usr/bin/python3, a/home/b\n")
        self.put("bootstrap", 'd=$(mktemp -d "${TMPDIR:-/' 'tmp}/x.XXXXXX")\n')
        self.assert_clean("unfinished")
        self.assert_clean("paths")

    def test_unfinished(self):
        for word in ("TO" "DO", "FIX" "ME:", "not yet imple" "mented", "a st" "ub",
                     "Place" "holder"):
            self.put("docs/a.md", f"\nSee {word} here\n")
            self.assert_found("unfinished", "docs/a.md", 2, word.strip(":").split()[-1])

    def test_machine_paths(self):
        for path in ("/wo" "rk/main", "/ho" "me/someone/x", "/ro" "ot/.cache", "/tm" "p/x.h5"):
            self.put("sim/base/a.c", f'\nconst char *const p = "{path}";\n')
            self.assert_found("paths", "sim/base/a.c", 2, path.split("/")[1])
        self.put("bootstrap", "url=http://deb.deb" "ian.org/debian\n")
        self.assert_found("paths", "bootstrap", 1, "of one machine")


class Pages(Case):
    def test_scenario_folders(self):
        self.put("scenarios/good/README.md", "")
        self.put("scenarios/good/scenario.yaml", "")
        self.assert_clean("scenarios")
        self.put("scenarios/bare/scenario.yaml", "")
        self.assert_found("scenarios", "scenarios/bare", 1, "README.md")

    def test_links(self):
        self.put("docs/a.md", "[b](b.md) [up](../README.md#x) [web](https://example.org/x)\n")
        self.put("docs/b.md", "```\n[no](link.md)\n```\n")
        self.put("README.md", "[docs](docs/)\n")
        self.assert_clean("links")
        self.put("docs/b.md", "\n[gone](gone.md)\n")
        self.assert_found("links", "docs/b.md", 2, "gone.md")

    def test_python(self):
        self.put("analysis/a.py", "x = 1\n")
        self.assert_clean("python")
        self.put("analysis/a.py", "x = 1\ndef f(:\n")
        self.assert_found("python", "analysis/a.py", 2, "does not compile")
        self.put("analysis/a.py", "x = '" + "y" * 100 + "'\n")
        self.assert_found("python", "analysis/a.py", 1, "106 columns")


class Format(Case):
    def test_layout(self):
        tool = shutil.which("clang-format")
        if not tool or f"version {lint.CLANG_FORMAT_MAJOR}." not in subprocess.run(
                [tool, "--version"], stdout=subprocess.PIPE, universal_newlines=True,
                check=False).stdout:
            self.skipTest(f"clang-format {lint.CLANG_FORMAT_MAJOR} is not installed")
        self.put(".clang-format", "BasedOnStyle: LLVM\n")
        self.put("sim/base/a.c", "int a_one(int x) { return x; }\n")
        self.assert_clean("format")
        self.put("sim/base/a.c", "int a_one(int x) { return x; }\nint  a_two( int x);\n")
        self.assert_found("format", "sim/base/a.c", 2, "clang-format")


class Whole(Case):
    def test_every_rule_has_a_case_and_a_description(self):
        text = Path(__file__).read_text(encoding="utf-8")
        for rule in lint.RULES:
            self.assertTrue(rule.__doc__)
            self.assertIn(f'"{rule.__name__[len("rule_"):]}"', text)

    def test_exit_codes(self):
        script = str(Path(lint.__file__))
        self.put("sim/base/a.c", "int a_count;\n")
        run = subprocess.run([sys.executable, script, "--root", str(self.root)],
                             stdout=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("sim/base/a.c:1: globals: mutable global: int a_count\n", run.stdout)
        self.put("sim/base/a.c", "const int a_count = 1;\n")
        run = subprocess.run([sys.executable, script, "--root", str(self.root)],
                             stdout=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertEqual((run.returncode, "0 findings" in run.stdout), (0, True))


if __name__ == "__main__":
    unittest.main()
