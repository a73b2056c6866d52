"""The drawing of the four kinds of calls names kernels of these kinds."""

import sklboost.tree.options.scanning  # noqa: F401  (else imported when it is needed)
from sklboost.engine.compiler.linking import KERNELS
from tests.conftest import ROOT


def test_the_drawing_of_calls_names_kernels_of_these_kinds(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "drawings")
    import calls

    kernels = {name.rpartition(".")[2]: kernel for name, kernel in KERNELS.items()}
    late = [name for names in calls.LATE.values() for name in names]
    kinds = {
        name: type(kernels[name]).__name__ for name in (*calls.BY_SYMBOL, *calls.INLINED, *late)
    }
    assert {kinds[name] for name in calls.BY_SYMBOL} == {"Kernel"}
    assert {kinds[name] for name in calls.INLINED} == {"InlinedKernel"}
    assert {kinds[name] for name in late} == {"LateKernel"}
