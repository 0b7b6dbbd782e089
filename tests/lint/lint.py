#!/usr/bin/env python3
"""Holds the tree to its own rules: layers, names, sizes, banned calls, dead files.

    lint.py [--root DIR] [--build DIR] [--list]

Prints one `file:line: rule: message` per finding and exits 1 when there is one. With --build the
object files found there are read too (nm and objdump): the symbols and the writable data that the
compiler saw, instead of what the text looks like.

Each rule is one function below, listed in RULES. Exceptions are in EXCEPTIONS, with their reason.
Standard library only; tests/lint/test_lint.py shows every rule a good and a bad snippet.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

LINE_COLUMNS = 100
FUNCTION_LINES = 70
FILE_LINES = 900
CLANG_FORMAT_MAJOR = 14  # other versions lay some code out differently: not a fault of the tree

# Layer (a folder) -> what its files may include, as prefixes of the include's path.
LAYERS = {
    "sim/base": ["sim/base/"],
    "models": ["sim/base/", "models/"],
    "sim/engine": ["sim/base/", "models/", "sim/engine/"],
    "sim/fleet": ["sim/base/", "models/", "sim/engine/", "sim/fleet/"],
    "sim/workload": ["sim/base/", "sim/workload/"],
    "sim/metrics": ["sim/base/", "sim/metrics/", "models/price.h"],
    "sim/trace": ["sim/base/", "sim/trace/"],
    "sim/scenario": ["sim/base/", "sim/scenario/"],
    "sim/run": ["sim/base/", "models/", "sim/engine/", "sim/fleet/", "sim/workload/",
                "sim/metrics/", "sim/trace/", "sim/scenario/", "sim/run/"],
    "sim/cli": ["sim/", "models/"],
}

# Header of a library (regex) -> folders that may include it; tests may include any of them.
LIBRARIES = {
    r"hdf5(_hl)?\.h|H5\w+\.h": ["sim/trace"],
    r"libfyaml\.h": ["sim/scenario"],
    r"jansson\.h": ["sim/workload", "sim/run", "sim/cli"],
    r"gsl/.*": ["sim/base", "models", "sim/workload", "sim/metrics", "sim/run"],
    r"Random123/.*": ["sim/base"],
    r"zlib\.h": ["sim/workload"],
    r"libdeflate\.h": ["sim/workload"],
    r"xxhash\.h": ["sim/workload", "sim/run"],
    r"uthash\.h|utlist\.h|utarray\.h": ["models", "sim/engine", "sim/fleet", "sim/workload",
                                        "sim/metrics", "sim/run", "sim/scenario", "sim/cli"],
    r"revision\.h": ["sim/run"],  # made by the build
    r"check\.h": [],
    r"argp\.h": ["sim/cli"],
    r"pthread\.h": ["sim/run", "sim/cli"],
}
SYSTEM_HEADERS = set("""
assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h
stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h
signal.h time.h wchar.h wctype.h
dirent.h fcntl.h glob.h libgen.h poll.h regex.h spawn.h strings.h sysexits.h termios.h unistd.h
sys/file.h sys/ioctl.h sys/mman.h sys/prctl.h sys/queue.h sys/resource.h sys/stat.h sys/time.h
sys/types.h sys/utsname.h sys/wait.h getopt.h execinfo.h malloc.h
""".split())

# Call or word (regex) -> (folders it is banned in, what to do instead).
CODE = ["sim", "models"]
CODE_AND_TESTS = CODE + ["tests"]
ORDER_DECIDING = ["sim/engine", "sim/fleet", "sim/workload"]
BANNED = {
    r"\b(gets|strcpy|strcat|sprintf|vsprintf)\s*\(": (CODE_AND_TESTS, "bounded copies: snprintf"),
    r"\b(strtok)\s*\(": (CODE_AND_TESTS, "strtok_r, or scan by hand"),
    r"\b(rand|srand|rand_r|random|srandom|drand48)\s*\(": (CODE_AND_TESTS, "sim/base/rng.h"),
    r"\b(atoi|atol|atoll|atof)\s*\(": (CODE_AND_TESTS, "sim/base/units.h, or strtol with a check"),
    r"\b(setjmp|longjmp|sigsetjmp|siglongjmp)\s*\(": (CODE, "errors as values"),
    r"\b(alloca)\s*\(": (CODE_AND_TESTS, "an arena, or a fixed size"),
    r"\b(typedef\s+(?:struct|union))\b": (CODE_AND_TESTS, "name the struct: struct noun"),
    r"\b(float)\b(?!\.h)": (CODE, "double; and time is int64_t picoseconds"),
    r"\b(gettimeofday|localtime|localtime_r|mktime|clock|ftime)\s*\(":
        (CODE, "results hold no wall-clock time; the command line may use clock_gettime"),
    r"\b(clock_gettime|time)\s*\(":
        (["sim/base", "models", "sim/engine", "sim/fleet", "sim/workload", "sim/metrics",
          "sim/trace", "sim/scenario"], "simulated time; wall time belongs to sim/run and sim/cli"),
    r"\b(gsl_ran_\w+|log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos)\s*\(":
        (ORDER_DECIDING, "sim/base/detmath.h: the C library's result depends on the CPU, and here"
                         " it can decide the order of events"),
}

# (rule, file, word in the message) -> reason. Keep it short.
EXCEPTIONS = {
    ("globals", "sim/base/check.c", "_Thread_local"): "what a failed check prints, per thread",
    ("globals", "sim/base/check.c", ".tbss"): "the same, as the compiler sees it",
    ("globals", "sim/base/check.c", ".tdata"): "the same",
    ("globals", "sim/cli/main.c", "argp_program_version"): "argp's own interface",
    ("globals", "sim/cli/main.c", "argp_program_bug_address"): "argp's own interface",
}
# Header (without .h) -> prefixes it may declare besides its own name.
FAMILIES = {
    "sim/base/arena": ["memory_"],        # allocation that cannot fail lives beside the arena
    "sim/base/event_queue": ["event_"],   # the order of struct event
    "sim/base/request": ["outcome_"],     # names of enum outcome
    "models/step_time": ["step_"],        # step_law_*, step_batch_*
}
# Where a C file is built; anywhere else it is dead.
BUILT = [r"sim/\w+/[^/]+\.c", r"models/[^/]+\.c",
         r"tests/(unit|prop|theory|validation)/(test|support)_[^/]+\.c",
         r"tests/(fuzz|bench|golden|cli|bad)/[^/]+\.c"]
SKIPPED_FOLDERS = {"build", "__pycache__", ".git", ".cache", ".vscode"}
TEXT_SUFFIXES = {".c", ".h", ".py", ".sh", ".bats", ".bash", ".md", ".txt", ".cmake", ".json",
                 ".yaml", ".yml", ""}


def strip_c(text):
    """The text with comments, strings and character constants blanked, line for line."""
    def blank(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[0]

    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text,
                  flags=re.S)


def blank_preprocessor(code):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  code, flags=re.M)


class CFile:
    """A C file: its text, its code without comments, and its top-level pieces."""

    def __init__(self, path, name):
        self.name = name
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.splitlines()
        self.code = strip_c(self.text)
        self.includes = []  # (line, '<' or '"', target)
        for number, line in enumerate(self.lines, 1):
            match = re.match(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]", line)
            if match:
                self.includes.append((number, match.group(1), match.group(2)))
        self.functions = []   # (name, static, first line, last line)
        self.statements = []  # (line, text): declarations and definitions of data
        self._split()

    def _split(self):
        code = blank_preprocessor(self.code)
        depth, start, body, line = 0, 0, None, 1
        piece_line = lambda at: code.count("\n", 0, at) + 1
        for match in re.finditer(r"[{};]", code):
            token, at = match.group(0), match.start()
            if token == "{":
                if depth == 0 and body is None:
                    body = at
                depth += 1
            elif token == "}":
                depth = max(0, depth - 1)
                if depth == 0 and body is not None and self._function(code, start, body, at):
                    start, body = at + 1, None
            elif depth == 0:
                head = code[start:at]
                text = re.sub(r"\s+", " ", re.sub(r"\bEND_TEST\b", "", head)).strip()
                if text:
                    offset = len(head) - len(head.lstrip())
                    self.statements.append((piece_line(start + offset), text))
                start, body = at + 1, None

    def _function(self, code, start, body, end):
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", lambda m: " " * len(m.group(0)),
                      code[start:body], flags=re.S)
        head = head.replace("END_TEST", "        ")
        match = re.search(r"(\w+)\s*\(", head)
        if not match or "=" in head[:match.start()]:
            return False
        first = start + len(head) - len(head.lstrip())
        self.functions.append((match.group(1), bool(re.search(r"\bstatic\b", head)),
                               code.count("\n", 0, first) + 1, code.count("\n", 0, end) + 1))
        return True


class Tree:
    def __init__(self, root, build=None):
        self.root = Path(root).resolve()
        self.build = Path(build).resolve() if build else None
        self.files = sorted(self._walk(self.root))
        self.notes = []  # what could not be looked at, said aloud
        self.c_files = {name: CFile(self.root / name, name) for name in self.files
                        if name.endswith((".c", ".h"))}

    def _walk(self, folder):
        for path in folder.iterdir():
            if path.is_symlink():
                continue
            if path.is_dir():
                if path.name not in SKIPPED_FOLDERS:
                    yield from self._walk(path)
            elif path.suffix not in (".h5", ".part", ".pyc", ".png"):
                yield path.relative_to(self.root).as_posix()

    def within(self, folders, suffixes=(".c", ".h")):
        for name, c_file in self.c_files.items():
            if name.endswith(suffixes) and any(name.startswith(f + "/") for f in folders):
                yield c_file

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def texts(self):
        for name in self.files:
            if Path(name).suffix in TEXT_SUFFIXES and name != "LICENSE":
                yield name, self.read(name)

    def objects(self):
        """(source file, object file) of the layers, as the build folder has them."""
        if not self.build:
            return
        for path in sorted(self.build.glob("CMakeFiles/*.dir/**/*.c.o")):
            source = path.relative_to(self.build).as_posix().split(".dir/", 1)[1][:-len(".o")]
            if source in self.c_files and layer_of(source):
                yield source, path


def layer_of(name):
    folder = name.rsplit("/", 1)[0]
    return folder if folder in LAYERS else None


def rule_layers(tree):
    """Includes go down the layers only, by their path from the root."""
    for c_file in tree.c_files.values():
        layer = layer_of(c_file.name)
        for line, kind, target in c_file.includes:
            if kind != '"':
                continue
            if target not in tree.c_files:
                yield c_file.name, line, f'"{target}" is not a file of the tree, by its whole path'
            elif layer and not any(target.startswith(allowed) for allowed in LAYERS[layer]):
                yield c_file.name, line, f'{layer} must not include "{target}"'


def rule_libraries(tree):
    """Each library is included only where it belongs, and no unlisted one at all."""
    for c_file in tree.within(CODE_AND_TESTS):
        layer = layer_of(c_file.name)
        for line, kind, target in c_file.includes:
            if kind != "<" or target in SYSTEM_HEADERS:
                continue
            for pattern, folders in LIBRARIES.items():
                if re.fullmatch(pattern, target):
                    if layer and layer not in folders:
                        where = ", ".join(folders) or "tests"
                        yield c_file.name, line, f"<{target}> belongs to {where}"
                    break
            else:
                yield c_file.name, line, f"<{target}> is in no table of tests/lint/lint.py"


def rule_banned(tree):
    """Calls and types that the style rules out."""
    for pattern, (folders, instead) in BANNED.items():
        for c_file in tree.within(folders):
            for match in re.finditer(pattern, blank_preprocessor(c_file.code)):
                line = c_file.code.count("\n", 0, match.start()) + 1
                yield c_file.name, line, f"{match.group(1)} is banned here; use {instead}"


def rule_sizes(tree):
    """Lines, functions and files stay readable."""
    for c_file in tree.within(CODE_AND_TESTS):
        for number, line in enumerate(c_file.lines, 1):
            if len(line) > LINE_COLUMNS:
                yield c_file.name, number, f"line has {len(line)} columns, at most {LINE_COLUMNS}"
        for name, _, first, last in c_file.functions:
            if last - first + 1 > FUNCTION_LINES:
                yield (c_file.name, first,
                       f"{name} has {last - first + 1} lines, at most {FUNCTION_LINES}")
        if len(c_file.lines) > FILE_LINES:
            yield (c_file.name, FILE_LINES,
                   f"file has {len(c_file.lines)} lines, at most {FILE_LINES}")


def prefix_ok(tree, source, symbol):
    """A symbol carries its file's name, or that of the header beside it that declares it; where
    several files share a header (fleet.h: fleet_pool.c, fleet_internal.h), that header's."""
    folder, stem = source.rsplit("/", 1)
    stem = stem.rsplit(".", 1)[0]
    homes = [f"{folder}/{stem}"]
    for name, header in tree.c_files.items():
        if name.endswith(".h") and name.rsplit("/", 1)[0] == folder and \
                re.search(rf"\b{re.escape(symbol)}\b", header.code):
            homes.append(name[:-len(".h")])
    homes += [name[:-len(".h")] for name in tree.c_files if name.endswith(".h") and
              any(home.startswith(name[:-len(".h")] + "_") for home in homes)]
    for home in homes:
        prefix = home.rsplit("/", 1)[1]
        if symbol == prefix or symbol.startswith(prefix + "_"):
            return True
        if any(symbol.startswith(family) for family in FAMILIES.get(home, [])):
            return True
    return False


def rule_prefixes(tree):
    """Exported symbols start with the name of their file."""
    seen = set()
    for source, path in tree.objects():
        for line in run_tool(tree, ["nm", "-g", "--defined-only", "-P", str(path)]):
            symbol = line.split(" ", 1)[0]
            if symbol.startswith("__") or (source, symbol) in seen:
                continue
            seen.add((source, symbol))
            if symbol != "main" and symbol not in tree.c_files[source].code:
                continue  # an object older than its source
            if symbol != "main" and not symbol.startswith("argp_program_") and \
                    not prefix_ok(tree, source, symbol):
                line_number = first_line(tree.c_files[source], symbol)
                yield source, line_number, f"exported {symbol} lacks its file's prefix"
    for c_file in tree.within(CODE):
        for name, static, first, _ in c_file.functions:
            exported = not static or c_file.name.endswith(".h")
            if exported and (c_file.name, name) not in seen and name != "main" and \
                    not prefix_ok(tree, c_file.name, name):
                seen.add((c_file.name, name))
                yield c_file.name, first, f"exported {name} lacks its file's prefix"


def first_line(c_file, word):
    match = re.search(rf"\b{re.escape(word)}\b", c_file.code)
    return c_file.code.count("\n", 0, match.start()) + 1 if match else 1


def run_tool(tree, command):
    if not shutil.which(command[0]):
        note = f"{command[0]} is not installed: object files were not read"
        if note not in tree.notes:
            tree.notes.append(note)
        return []
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True, check=False)
    return result.stdout.splitlines()


def declares_mutable(text):
    """Whether a declaration of data leaves something that can be written to."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)
    declared = re.sub(r"\{.*\}", " ", text).split("=", 1)[0].strip()
    if re.match(r"(typedef|extern|_Static_assert|static_assert)\b", declared) or "(" in declared:
        return False  # declares no object, or is a prototype; objdump sees what hides in a macro
    if re.fullmatch(r"(struct|union|enum)( \w+)?", declared):
        return False  # a type
    last = declared.rsplit("*", 1)[-1]
    return "const" not in last.split()


def rule_globals(tree):
    """Nothing at file scope, or static in a function, can be written to."""
    for c_file in tree.within(CODE):
        for line, text in c_file.statements:
            if declares_mutable(text):
                words = re.sub(r"\[.*", "", text.split("=", 1)[0]).strip()
                yield c_file.name, line, f"mutable global: {words}"
        for number, line in enumerate(c_file.code.splitlines(), 1):
            match = re.match(r"\s+(static\b[^;(]*)[;=]", line)
            if match and declares_mutable(match.group(1).strip()):
                yield c_file.name, number, f"mutable static: {match.group(1).strip()}"
    for source, path in tree.objects():
        for line in run_tool(tree, ["objdump", "-t", str(path)]):
            match = re.match(r"[0-9a-f]+ .{7} (\.data|\.bss|\*COM\*|\.tdata|\.tbss)"
                             r"(\.\w+)*\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", line)
            if not match or ".data.rel.ro" in line:
                continue
            section, symbol = match.group(1), match.group(3)
            name = symbol.split(".")[0]
            if name and not symbol.startswith(("__", ".")) and name in tree.c_files[source].code:
                yield (source, first_line(tree.c_files[source], name),
                       f"mutable data: {symbol} in {section}")


def rule_guards(tree):
    """A header's guard is its path."""
    for c_file in tree.within(CODE_AND_TESTS, (".h",)):
        guard = "FLEETSIM_" + re.sub(r"\W", "_", c_file.name).upper()
        code = [(number, line.strip()) for number, line in enumerate(c_file.code.splitlines(), 1)
                if line.strip()]
        wanted = [f"#ifndef {guard}", f"#define {guard}"]
        if [text for _, text in code[:2]] != wanted or code[-1][1] != "#endif":
            line = code[0][0] if code else 1
            yield c_file.name, line, f"include guard must be {guard}, around the whole file"


def rule_dead(tree):
    """Every C file is built, every header included, every Python module used or a script."""
    included = {target for c_file in tree.c_files.values() for _, _, target in c_file.includes
                if target != c_file.name}
    for name in tree.c_files:
        if name.endswith(".h") and name not in included:
            yield name, 1, "no file includes this header"
        if name.endswith(".c") and not any(re.fullmatch(pattern, name) for pattern in BUILT):
            yield name, 1, "no build rule takes files here"
    for name in tree.files:
        if name.endswith(".py") and "__main__" not in tree.read(name):
            module = Path(name).stem
            users = [other for other in tree.files if other != name and other.endswith(".py") and
                     re.search(rf"\b(import|from)\s+{module}\b", tree.read(other))]
            if not users:
                yield name, 1, "neither a script nor imported by one"


def rule_unfinished(tree):
    """Nothing says that it is not done yet."""
    # Built from halves so that this file does not find itself.
    words = ["TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK", "WI" "P"]
    phrases = ["not (?:yet )?imple" "mented", "place" "holder", r"\bst" r"ubs?\b", "lorem ip" "sum"]
    pattern = re.compile(r"\b(?:" + "|".join(words) + r")\b|(?i:" + "|".join(phrases) + ")")
    for name, text in tree.texts():
        for number, line in enumerate(text.splitlines(), 1):
            match = pattern.search(line)
            if match:
                yield name, number, f"a mark of unfinished work: {match.group(0)}"


def rule_paths(tree):
    """No path of one machine, no package registry."""
    folders = "|".join(["wo" "rk", "fa" "rm", "ro" "ot", "ho" "me", "Us" "ers", "mn" "t", "tm" "p"])
    hosts = "|".join(["deb\\.deb" "ian", "py" "pi\\.org", "files\\.python" "hosted",
                      "registry\\.np" "m", "crates\\." "io"])
    pattern = re.compile(rf"(?<![\w.}}/~-])/(?:{folders})(?:/[\w.]+|\b(?![\w-]))|(?:{hosts})")
    for name, text in tree.texts():
        for number, line in enumerate(text.splitlines(), 1):
            match = pattern.search(line)
            if match and not re.search(r"\$\{TMPDIR:-", line[:match.start() + 1]):
                yield name, number, f"{match.group(0)} is of one machine"


def rule_scenarios(tree):
    """A scenario folder stands alone: the question and the file."""
    folders = {name.split("/")[1] for name in tree.files if re.match(r"scenarios/[^/]+/", name)}
    for folder in sorted(folders):
        for wanted in ("README.md", "scenario.yaml"):
            if f"scenarios/{folder}/{wanted}" not in tree.files:
                yield f"scenarios/{folder}", 1, f"lacks {wanted}"


def rule_links(tree):
    """A relative link in a page leads to a file."""
    for name in tree.files:
        if not name.endswith(".md"):
            continue
        fenced = False
        for number, line in enumerate(tree.read(name).splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            for target in [] if fenced else re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                if not (tree.root / name).parent.joinpath(target).exists():
                    yield name, number, f"link to {target}, which does not exist"


def rule_python(tree):
    """Python files compile, and their lines fit."""
    for name in tree.files:
        if name.endswith(".py"):
            for number, line in enumerate(tree.read(name).splitlines(), 1):
                if len(line) > LINE_COLUMNS:
                    yield name, number, f"line has {len(line)} columns, at most {LINE_COLUMNS}"
            try:
                compile(tree.read(name), name, "exec")
            except SyntaxError as error:
                yield name, error.lineno or 1, f"does not compile: {error.msg}"


def rule_format(tree):
    """clang-format has nothing to change."""
    names = [c_file.name for c_file in tree.within(CODE_AND_TESTS)]
    if not names or not (tree.root / ".clang-format").exists():
        return
    tool = shutil.which(f"clang-format-{CLANG_FORMAT_MAJOR}") or shutil.which("clang-format")
    version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, universal_newlines=True,
                             check=False).stdout if tool else ""
    if f"version {CLANG_FORMAT_MAJOR}." not in version:
        tree.notes.append(f"SKIP: format: clang-format {CLANG_FORMAT_MAJOR} is not installed")
        return
    result = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=3", *names],
                            cwd=tree.root, stderr=subprocess.PIPE, universal_newlines=True,
                            check=False)
    found = re.findall(r"^(\S+?):(\d+):\d+: error: ", result.stderr, flags=re.M)
    for name, line in found:
        yield name, int(line), f"clang-format would change this (clang-format -i {name})"
    if result.returncode and not found:
        yield ".clang-format", 1, result.stderr.strip().splitlines()[0]


RULES = [rule_layers, rule_libraries, rule_banned, rule_sizes, rule_prefixes, rule_globals,
         rule_guards, rule_dead, rule_unfinished, rule_paths, rule_scenarios, rule_links,
         rule_python, rule_format]


def findings_of(tree, rules=None):
    found = []
    for rule in rules or RULES:
        label = rule.__name__[len("rule_"):]
        for name, line, message in rule(tree):
            if not any(label == r and name == n and word in message for r, n, word in EXCEPTIONS):
                found.append((name, line, label, message))
    return sorted(set(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=str(Path(__file__).resolve().parents[2]),
                        help="the tree (default: this file's)")
    parser.add_argument("--build", help="a build folder whose object files are read too")
    parser.add_argument("--list", action="store_true", help="print the rules and stop")
    options = parser.parse_args()
    if options.list:
        for rule in RULES:
            print(f"{rule.__name__[len('rule_'):]:12} {rule.__doc__}")
        return 0
    tree = Tree(options.root, options.build)
    found = findings_of(tree)
    for name, line, label, message in found:
        print(f"{name}:{line}: {label}: {message}")
    for note in tree.notes:
        print(note)
    objects = sum(1 for _ in tree.objects())
    print(f"lint: {len(tree.files)} files, {objects} objects, {len(RULES)} rules, "
          f"{len(found)} finding{'' if len(found) == 1 else 's'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
