"""How many small mistakes in the package the tests notice.

    python -m tests.mutations list                     the mutations: where, and what becomes what
    python -m tests.mutations run --out found.jsonl    make one after the other, and run tests
    python -m tests.mutations table --out found.jsonl  what came out, as a table in Markdown

A mutation changes one expression of the package: a comparison, a number, a term, two arguments, a
default, a check or a condition. The same number is drawn from each folder, by a seed. Each is tried
on copies of the checkout, against the doctests of its module, the test files that are nearest
to it, by imports and by words, and some files that test everything, until a test fails. All tests
must pass before. A mutation with which the package cannot be imported is not counted.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import sklboost

ROOT = Path(__file__).parents[1]
KINDS = ["comparison", "number", "term", "arguments", "default", "check", "condition"]
OTHER = {
    **{ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="},
    **{ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"},
}
# Run for every mutation, after the test files that are nearest to it.
GENERAL = ["worked_examples", "reference", "properties", "same_bits", "sampling", "errors"]
SECONDS = 900  # for one mutation
PYTEST = ["pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", "--tb=line", "--timeout=600"]


class Mutation(NamedTuple):
    path: str  # of the file, from the root
    line: int
    kind: str
    start: int  # of the bytes of the file that are replaced
    stop: int
    new: str
    old: str  # what is replaced

    def apply(self, source: bytes) -> bytes:
        if source[self.start : self.stop].decode() != self.old:
            raise ValueError(f"{self.path} is no longer as it was when {self} was drawn")
        return source[: self.start] + self.new.encode() + source[self.stop :]


# --- drawing -------------------------------------------------------------------------------------


class Sites(ast.NodeVisitor):
    """All mutations of one file."""

    def __init__(self, path, source):
        self.path, self.source, self.found, self.kind = path, source, [], "number"
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self.starts = [sum(lengths[:i]) for i in range(len(lengths))]
        self.visit(ast.parse(source))

    def add(self, kind, start, stop, new):
        line = self.source.count(b"\n", 0, start) + 1
        old = self.source[start:stop].decode()
        self.found.append(Mutation(self.path, line, kind, start, stop, new, old))

    def span(self, node):
        starts = self.starts
        end = starts[node.end_lineno - 1] + node.end_col_offset
        return starts[node.lineno - 1] + node.col_offset, end

    def text(self, node):
        return self.source[slice(*self.span(node))].decode()

    def visit_defaults(self, nodes):
        self.kind = "default"
        for node in filter(None, nodes):
            self.visit(node)
        self.kind = "number"

    def visit_FunctionDef(self, node):
        self.visit_defaults([*node.args.defaults, *node.args.kw_defaults])
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node):
        self.visit_defaults([node.value])

    def visit_Constant(self, node):
        if self.kind == "default" and isinstance(node.value, bool):
            self.add(self.kind, *self.span(node), str(not node.value))
        elif isinstance(node.value, int | float) and not isinstance(node.value, bool):
            self.add(self.kind, *self.span(node), repr(node.value + 1))

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            start, stop = self.span(node.left)[1], self.span(node.comparators[0])[0]
            if not set(self.source[start:stop].decode()) & set("()#"):
                self.add("comparison", start, stop, f" {OTHER[type(node.ops[0])]} ")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            self.add("term", *self.span(node), f"({self.text(node.left)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        self.add("term", *self.span(node), f"({self.text(node.values[0])})")
        self.generic_visit(node)

    def visit_Call(self, node):
        given = [arg for arg in node.args[:2] if not isinstance(arg, ast.Starred)]
        if len(given) == 2 and self.text(given[0]) != self.text(given[1]):
            start, stop = self.span(given[0])[0], self.span(given[1])[1]
            self.add("arguments", start, stop, f"{self.text(given[1])}, {self.text(given[0])}")
        self.generic_visit(node)

    def visit_If(self, node):
        if "TYPE_CHECKING" in self.text(node.test):
            return
        if isinstance(node.body[-1], ast.Raise):
            self.add("check", *self.span(node.test), "False")
        else:
            self.add("condition", *self.span(node.test), f"not ({self.text(node.test)})")
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.add("condition", *self.span(node.test), f"not ({self.text(node.test)})")
        self.generic_visit(node)

    def visit_Raise(self, node):
        """Leave the texts of errors alone."""

    def visit_JoinedStr(self, node):
        """Leave texts alone."""


def draw(n_of_a_folder, seed):
    """Return as many mutations of each folder, of one kind after the other."""
    folders = defaultdict(lambda: defaultdict(list))
    for path in sorted((ROOT / "sklboost").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for site in Sites(name, path.read_bytes()).found:
            folders["/".join(name.split("/")[1:-1][:2])][site.kind].append(site)
    generator, kinds, drawn = random.Random(seed), cycle(KINDS), []
    for _, sites in sorted(folders.items()):
        n_left = min(n_of_a_folder, sum(map(len, sites.values())))
        while n_left:
            if left := sites[next(kinds)]:
                drawn.append(left.pop(generator.randrange(len(left))))
                n_left -= 1
    return drawn


# --- which tests ---------------------------------------------------------------------------------


def imports(path):
    """Return the files of the package and of the tests that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "sklboost":
            values = [getattr(sklboost, alias.name, None) for alias in node.names]
            names |= {getattr(value, "__module__", value.__name__) for value in values if value}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    places = [ROOT / name.replace(".", "/") for name in names]
    files = [file for place in places for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.exists()]


def nearest_tests(n_files):
    """Return a function that gives the arguments of pytest for a mutation."""
    importers, users = defaultdict(list), defaultdict(set)
    for folder in ("sklboost", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for imported in imports(path):
                importers[imported].append(path)
    tests = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.name != "test_docs.py" and "wheel" not in path.parts
    ]
    for path in tests:
        for word in words(path.read_text("utf-8")):
            users[word].add(path)

    def arguments(mutation):
        """Half of the files by imports, the others by the words that they share with the place."""
        start = ROOT / mutation.path
        distance, queue = {start: 0}, [start]
        for path in queue:
            for importer in importers[path]:
                if importer not in distance:
                    distance[importer] = distance[path] + 1
                    queue.append(importer)
        own = start.stem.rstrip("s"), start.parent.name.rstrip("s")
        same = {path: sum(name in path.stem for name in own) for path in tests}
        by_imports = sorted(tests, key=lambda path: (-same[path], distance.get(path, len(tests))))
        lines = start.read_text("utf-8").splitlines()[max(mutation.line - 6, 0) : mutation.line + 5]
        shared = words("\n".join(lines))
        score = {
            path: sum(path in users[w] and 1 / len(users[w]) for w in shared) for path in tests
        }
        by_words = sorted(tests, key=score.get, reverse=True)
        general = [ROOT / "tests" / f"test_{name}.py" for name in GENERAL]
        doctests = [start] if b">>>" in start.read_bytes() else []
        half = n_files // 2
        chosen = [*doctests, *by_imports[:half], *by_words[: n_files - half], *general]
        return [path.relative_to(ROOT).as_posix() for path in dict.fromkeys(chosen)]

    return arguments


def words(text):
    """Return the names in a text that are made of several words."""
    return set(re.findall(r"[A-Za-z]+_\w+|[A-Z][a-z]+[A-Z]\w+", text))


# --- running -------------------------------------------------------------------------------------


def copy_of_the_tree(folder):
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listing, cwd=ROOT, text=True).split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def run_tests(folder, arguments):
    """Return "caught", "survived", "too slow", "no import" or "error", and what failed."""
    environment = dict(os.environ, PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1", CI="1")
    imported = [sys.executable, "-c", "import sklboost; sklboost.XGBRankerLite"]
    if subprocess.run(imported, cwd=folder, env=environment, capture_output=True).returncode:
        return "no import", ""
    process = subprocess.Popen(
        [sys.executable, "-m", *PYTEST, *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "too slow", ""
    if process.returncode == 0:
        return "survived", ""
    if process.returncode < 0:
        return "caught", f"the process was ended by signal {-process.returncode}"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    what = failed[0].split(" - ")[0] if failed else output.strip().splitlines()[-1]
    # 1: a test failed; 2: a file of tests could not be read
    return "caught" if process.returncode in (1, 2) else "error", what


def run(mutations, n_files, n_workers, out, go_on, extra):
    arguments = nearest_tests(n_files)
    folders = Queue()
    known = {}
    if out.exists():
        if not go_on:
            sys.exit(f"{out} exists: --continue that run, or remove it")
        known = {tuple(row["mutation"]): row for row in map(json.loads, out.open())}
    with tempfile.TemporaryDirectory() as parent:
        for i in range(n_workers):
            folders.put(copy_of_the_tree(Path(parent) / str(i)))

        def attempt(mutation):
            if tuple(mutation) in known:
                return known[tuple(mutation)]
            folder, start = folders.get(), time.monotonic()
            path = folder / mutation.path
            source = path.read_bytes()
            try:
                path.write_bytes(mutation.apply(source))
                outcome, test = run_tests(folder, [*arguments(mutation), *extra])
            finally:
                path.write_bytes(source)
                folders.put(folder)
            seconds = round(time.monotonic() - start, 1)
            row = dict(mutation=mutation, outcome=outcome, test=test, seconds=seconds)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{outcome:9s} {seconds:6.1f} s {described(mutation)} {test}", flush=True)
            return row

        with ThreadPoolExecutor(n_workers) as pool:
            rows = list(pool.map(attempt, mutations))
    outcomes = Counter(row["outcome"] for row in rows)
    print(f"{outcomes['caught']} of {len(rows) - outcomes['no import']} caught; {dict(outcomes)}")


def print_table(path):
    rows = [json.loads(line) for line in path.open()]
    print("| place | mistake | outcome | test |\n| --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: row["mutation"]):
        place, _, mistake = described(Mutation(*row["mutation"])).partition(" ")
        test = row["test"].removeprefix("FAILED ").removeprefix("ERROR ")
        mistake = " ".join(mistake.split()).replace("|", "\\|")
        print(f"| {place.removeprefix('sklboost/')} | `{mistake}` | {row['outcome']} | {test} |")


def described(mutation):
    place = f"{mutation.path}:{mutation.line}"
    return f"{place} {mutation.kind}: {mutation.old.strip()} -> {mutation.new.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=["list", "run", "table"])
    parser.add_argument("--of-each-folder", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of", type=Path, help="file of an earlier run: make its mutations again")
    parser.add_argument("--files", type=int, default=10, help="nearest test files of a mutation")
    parser.add_argument("--workers", type=int, default=2, help="mutations at the same time")
    parser.add_argument("--continue", action="store_true", dest="go_on", help="--out of that run")
    parser.add_argument("--out", type=Path, default=Path("mutations.jsonl"))
    given, extra = parser.parse_known_args()  # what is left over goes to pytest
    if given.of:
        mutations = [Mutation(*json.loads(line)["mutation"]) for line in given.of.open()]
    else:
        mutations = draw(given.of_each_folder, given.seed)
    if given.do == "list":
        print(*map(described, mutations), sep="\n")
    elif given.do == "table":
        print_table(given.out)
    else:
        run(mutations, given.files, given.workers, given.out, given.go_on, extra)


if __name__ == "__main__":
    main()
