"""The rules that keep the package readable, as tests."""

import ast
import inspect
import logging
import re

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.conftest import ROOT

PACKAGE = ROOT / "sklboost"
MOST_ARGUMENTS_OF_A_KERNEL = 7
QUANTIZATION = "tree/core/quantization.py"
THREADS = {"threading", "_thread", "multiprocessing", "concurrent.futures"}


class Source:
    """A file of the package, parsed once for all rules."""

    def __init__(self, path):
        self.name = path.relative_to(PACKAGE).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.nodes = list(ast.walk(self.tree))

    def of_kind(self, *kinds):
        return [node for node in self.nodes if isinstance(node, kinds)]

    @property
    def kernels(self):
        return [node for node in self.of_kind(ast.FunctionDef) if is_kernel(node)]

    @property
    def imported(self):
        """The names of all modules that are imported, wherever in the file."""
        names = {alias.name for node in self.of_kind(ast.Import) for alias in node.names}
        for node in self.of_kind(ast.ImportFrom):
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        return names


def is_kernel(function):
    names = [
        getattr(decorator, "func", decorator) for decorator in function.decorator_list
    ]  # late is called
    return any(getattr(name, "id", "") in {"kernel", "inlined", "late"} for name in names)


@pytest.fixture(scope="module")
def sources():
    return [Source(path) for path in sorted(PACKAGE.rglob("*.py"))]


def test_the_rules_look_at_something(sources):
    assert len(sources) > 15
    assert sum(len(source.kernels) for source in sources) > 30


def test_kernels_take_few_arguments(sources):
    for source in sources:
        for kernel in source.kernels:
            arguments = kernel.args
            assert not arguments.vararg, (source.name, kernel.name)
            assert not arguments.kwonlyargs, (source.name, kernel.name)
            n_arguments = len(arguments.posonlyargs) + len(arguments.args)
            assert n_arguments <= MOST_ARGUMENTS_OF_A_KERNEL, (source.name, kernel.name)


def test_modules_classes_and_kernels_say_what_they_do(sources):
    for source in sources:
        assert ast.get_docstring(source.tree), source.name
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) or node in source.kernels:
                assert ast.get_docstring(node), (source.name, node.name)


def test_only_quantization_knows_the_bits(sources):
    shifts = {
        source.name
        for source in sources
        for node in source.of_kind(ast.BinOp)
        if isinstance(node.op, ast.LShift | ast.RShift)
        and any(isinstance(n, ast.Constant) and n.value == 32 for n in ast.walk(node.right))
    }
    assert shifts == {QUANTIZATION}


def test_only_parallel_has_threads(sources):
    found = {source.name: THREADS & source.imported for source in sources}
    assert {name: names for name, names in found.items() if names} == {
        # the second for a process's kind, the third for the results of tasks
        "engine/parallel.py": {"threading", "multiprocessing", "concurrent.futures"},
    }


def test_one_way_to_compile(sources):
    for source in sources:
        names = {node.id for node in source.of_kind(ast.Name)}
        names |= {node.attr for node in source.of_kind(ast.Attribute)}
        keywords = {node.arg for node in source.of_kind(ast.keyword)}
        refused = {"prange", "jitclass", "vectorize", "guvectorize", "objmode", "jit"}
        assert not names & refused, source.name
        assert not keywords & {"fastmath", "parallel"}, source.name
        assert "njit" not in names, source.name
        assert ("CPUDispatcher" in names) == (source.name == "engine/compiler/kernels.py")


def test_no_room_for_odds_and_ends(sources):
    names = [source.name for source in sources]
    assert [name for name in names if re.search(r"util|common|helper|misc", name)] == []


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


def test_both_estimators_take_the_same_parameters_but_for_classes_and_losses():
    first, second = (inspect.signature(e).parameters for e in (XGBRegressorLite, XGBClassifierLite))
    of_classes = {"class_weight", "scale_pos_weight", "calibrated_prior", "focal_gamma"}
    assert set(second) - set(first) == of_classes
    both = [
        [str(own) for name, own in one.items() if name in {*first} & {*second}]
        for one in (first, second)
    ]
    assert both[0] == both[1]
    losses = {"quantile_alpha", "expectile_alpha", "huber_slope", "fair_c"}
    assert set(first) - set(second) == losses | {"tweedie_variance_power"}


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
