"""The rules that keep the package readable, as tests."""

import ast
import inspect
import logging
import re
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.conftest import ROOT

PACKAGE = ROOT / "sklboost"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_LINES_IN_A_FILE = 400
MOST_LINES_IN_A_FUNCTION = 60
MOST_ARGUMENTS_OF_A_KERNEL = 7


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def each_file(test):
    return pytest.mark.parametrize("path", FILES, ids=relative)(test)


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def is_kernel(function):
    names = [
        getattr(decorator, "func", decorator) for decorator in function.decorator_list
    ]  # late is called
    return any(getattr(name, "id", "") in {"kernel", "inlined", "late"} for name in names)


def imported(path):
    """Return the names of all modules that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_the_rules_look_at_something():
    assert len(FILES) > 15
    assert sum(is_kernel(function) for path in FILES for function in functions(path)) > 30


@each_file
def test_length_of_files(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_IN_A_FILE


@each_file
def test_length_of_functions(path):
    for function in functions(path):
        body = function.body
        if ast.get_docstring(function) is not None:
            body = body[1:]
        n_lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        assert n_lines <= MOST_LINES_IN_A_FUNCTION, function.name


@each_file
def test_arguments_of_kernels(path):
    for function in filter(is_kernel, functions(path)):
        assert not function.args.vararg, function.name
        assert not function.args.kwonlyargs, function.name
        n_arguments = len(function.args.posonlyargs) + len(function.args.args)
        assert n_arguments <= MOST_ARGUMENTS_OF_A_KERNEL, function.name


@each_file
def test_every_function_and_class_says_what_it_does(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef) and is_kernel(node)
        ):
            assert ast.get_docstring(node), node.name


@each_file
def test_only_quantization_knows_the_bits(path):
    if relative(path) == "tree/core/quantization.py":
        return
    shifts = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.LShift | ast.RShift)
        and any(isinstance(n, ast.Constant) and n.value == 32 for n in ast.walk(node.right))
    ]
    assert shifts == []


def test_quantization_is_where_the_bits_are():
    assert ">> 32" in (PACKAGE / "tree" / "core" / "quantization.py").read_text(encoding="utf-8")


@each_file
def test_only_parallel_has_threads(path):
    threads = {"threading", "_thread", "multiprocessing", "concurrent.futures"}
    if relative(path) == "engine/parallel.py":
        assert "threading" in imported(path)
    elif relative(path) == "engine/thread_counts.py":  # asks what kind of process this is
        assert threads & imported(path) == {"multiprocessing"}
    else:
        assert not threads & imported(path)


@each_file
def test_one_way_to_compile(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    assert not names & {"prange", "jitclass", "vectorize", "guvectorize", "objmode"}
    assert not keywords & {"fastmath", "parallel"}
    assert "jit" not in names
    # without a private name of numba's
    assert ("njit" in names) == (relative(path) == "engine/compiler/making.py")
    assert ("CPUDispatcher" in names) == (relative(path) == "engine/compiler/kernels.py")


@each_file
def test_no_room_for_odds_and_ends(path):
    assert not re.search(r"util|common|helper|misc", relative(path))


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
def test_every_parameter_is_documented_with_its_default(estimator):
    text = inspect.getdoc(estimator)
    parameters = inspect.signature(estimator).parameters
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    entries = dict(re.findall(r"^(\w+) : (.*)$", section, flags=re.MULTILINE))
    assert list(entries) == list(parameters)  # the same order, too
    for name, parameter in parameters.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if parameter.default is None:
            assert re.search(r"None|optional", entries[name]), name
        else:
            default = re.search(r"default=(.*)$", entries[name]).group(1)
            assert default.strip('"') == str(parameter.default), name  # as text: NaN is no equal


def test_both_estimators_take_the_same_parameters_but_for_classes():
    first, second = (inspect.signature(e).parameters for e in (XGBRegressorLite, XGBClassifierLite))
    of_classes = {"class_weight", "scale_pos_weight", "calibrated_prior"}
    assert set(second) - set(first) == of_classes
    common = [parameter for name, parameter in second.items() if name not in of_classes]
    assert list(map(str, first.values())) == list(map(str, common))


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
def test_every_public_method_is_documented(estimator):
    for name, member in inspect.getmembers(estimator):
        if name.startswith("_") or not getattr(member, "__module__", "").startswith("sklboost"):
            continue
        if callable(member):
            text = inspect.getdoc(member)
            assert text, name
            for parameter in list(inspect.signature(member).parameters)[1:]:
                assert re.search(rf"^(\*\*)?{parameter} : ", text, flags=re.MULTILINE), (
                    name,
                    parameter,
                )


def test_imports_run_down_the_rooms(monkeypatch):
    monkeypatch.chdir(ROOT)
    try:
        status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    finally:  # it disables the loggers of others, which later tests of this process read
        logging.getLogger("sklboost").disabled = False
    assert status == EXIT_STATUS_SUCCESS
