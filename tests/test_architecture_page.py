"""What the architecture page says of the code: five files, the walk of X and y, what flows."""

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "sklboost"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
# From the lowest to the highest, as in pyproject.toml.
ROOMS = ("engine", "data", "objectives", "tree", "boosting", "inspection", "estimators", "displays")

MOST_LINES_OF_FIVE_FILES = 500
MOST_STOPS = 12
MOST_FUNCTIONS_WITH_AN_ESTIMATOR = 10


def section(title):
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


# --- five files


def lines_of_code(source):
    """Return the number of lines that are not blank and no comment or docstring."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            docstrings |= set(range(first.lineno, first.end_lineno + 1))
    no_code = {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
        *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
    }
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in no_code:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_one_round_is_read_in_five_files():
    text = section("One boosting round in five files")
    names = re.findall(r"^\d\. \[[^]]*\]\(\.\./\.\./sklboost/([^)]*)\)", text, flags=re.MULTILINE)
    assert names == [
        "objectives/losses/squared_error.py",
        *(f"tree/core/{name}.py" for name in ("growing", "histogram", "splitting", "formulas")),
    ]
    n_lines = sum(lines_of_code((PACKAGE / name).read_text(encoding="utf-8")) for name in names)
    (promised,) = re.findall(r"fewer than (\d+) lines of code", text)
    assert n_lines < int(promised) <= MOST_LINES_OF_FIVE_FILES


# --- the walk of X and y

TRACE = """
import json, sys
import numpy as np
from sklboost import XGBClassifierLite

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)
model = XGBClassifierLite(n_estimators=1, max_depth=2, n_jobs=1)
calls = []


def room_and_function(frame):
    module = frame.f_globals.get("__name__", "") if frame is not None else ""
    return (module, frame.f_code.co_qualname) if module.startswith("sklboost.") else None


def note(frame, event, _):
    called = room_and_function(frame) if event == "call" else None
    if called is not None:
        calls.append((called, room_and_function(frame.f_back)))


sys.setprofile(note)
model.fit(X, y).predict_proba(X)
sys.setprofile(None)
print(json.dumps(calls))
"""


@pytest.fixture(scope="module")
def calls():
    """All calls of functions of the package in a fit and a prediction, interpreted, in order.

    Each is (called, caller), a pair of module and function; the caller is None if it is not of the
    package.
    """
    output = subprocess.run(
        [sys.executable, "-c", TRACE],
        cwd=ROOT,
        env=dict(os.environ, SKLBOOST_BACKEND="interpreter"),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    return [(tuple(called), caller and tuple(caller)) for called, caller in json.loads(output)]


@pytest.fixture(scope="module")
def stops():
    folder = str(ROOT / "docs" / "drawings")
    sys.path.insert(0, folder)
    try:
        import walk
    finally:
        sys.path.remove(folder)
    return [
        (f"sklboost.{stop.file.removesuffix('.py').replace('/', '.')}", stop.function)
        for stop in walk.STOPS
    ]


def test_the_walk_is_short(stops):
    assert len(stops) <= MOST_STOPS


def test_the_walk_is_that_of_a_fit_and_a_prediction(stops, calls):
    first_calls = {}
    for position, (called, _) in enumerate(calls):
        first_calls.setdefault(called, position)
    assert [stop for stop in stops if stop not in first_calls] == []
    positions = [first_calls[stop] for stop in stops]
    assert positions == sorted(positions)


def test_no_call_goes_up_a_floor(calls):
    """But for the thread team, which runs the kernel that it is given."""

    def floor(function):
        return ROOMS.index(function[0].split(".")[1])

    up = {(caller, called) for called, caller in calls if caller and floor(called) > floor(caller)}
    assert {caller for caller, _ in up} == {("sklboost.engine.parallel", "ThreadTeam.run")}


# --- what flows


def test_the_records_of_the_page_exist():
    names = re.findall(r"^\| (`.*?) \|", section("What flows"), flags=re.MULTILINE)
    named = {name for cell in names for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 20
    defined = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Assign):
                defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    assert named - defined == set()


def takes_an_estimator(argument):
    hint = ast.unparse(argument.annotation) if argument.annotation else ""
    is_named = argument.arg in ("estimator", "model") and hint in ("", "Any")
    return is_named or re.search(r"\b(BaseBooster|BaseEstimator|HasFittedModel)\b", hint)


def test_few_functions_take_an_estimator():
    """Functions outside the classes are given what they need of an estimator, as records."""
    found = []
    paths = set((PACKAGE / "estimators").rglob("*.py"))
    paths.remove(PACKAGE / "estimators" / "loading.py")  # takes models of other libraries
    for path in sorted(paths):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if any(map(takes_an_estimator, arguments)):
                    found.append(f"{path.stem}.{node.name}")
    assert len(found) <= MOST_FUNCTIONS_WITH_AN_ESTIMATOR, found
