"""The script that shows the package at work, on data that users bring."""

import importlib.util
import subprocess
import sys
import warnings

import pandas as pd
import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "docs" / "examples" / "quickstart.py"


@pytest.fixture(scope="module")
def quickstart():
    spec = importlib.util.spec_from_file_location("quickstart", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["quickstart"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["quickstart"]


@pytest.fixture
def messy(tmp_path):
    """Text, dates, names of rows, a column without values, missing values, targets as text."""
    rows = range(120)
    table = pd.DataFrame(
        {
            "Name": [f"person {row}" for row in rows],
            "city": [["Oslo", "Rome", None][row % 3] for row in rows],
            "since": [f"2024-01-{row % 28 + 1:02}" for row in rows],
            "born": [f"{row % 28 + 1}/2/1990" for row in rows],
            "nothing": None,
            "size": [None if row % 7 == 0 else row % 5 for row in rows],
            "grade": [["low", "high", None, "low"][row % 4] if row else "odd" for row in rows],
        }
    )
    path = tmp_path / "messy.csv"
    table.to_csv(path, index=False, sep=";")
    return path


def test_columns_get_the_type_that_they_mean(quickstart, messy, monkeypatch, capsys):
    problem = quickstart.read_problem(messy, "grade")
    assert list(problem.X) == ["city", "since", "born", "size"]
    model = quickstart.our_model(problem).fit(problem.X, problem.y)
    assert list(model.categories_) == ["city"]
    converted = quickstart.for_scikit_learn(problem.X)
    kinds = {name: dtype.kind for name, dtype in converted.dtypes.items()}
    assert kinds == {"city": "O", "since": "i", "born": "i", "size": "f"}
    assert isinstance(converted["city"].dtype, pd.CategoricalDtype)
    dated = problem.X.assign(since=pd.to_datetime(problem.X["since"]))
    dated["born"] = pd.to_datetime(dated["born"], format="%d/%m/%Y")
    assert (model.predict_proba(dated) == model.predict_proba(problem.X)).all()
    assert problem.task == "classification"
    assert set(problem.y) == {"low", "high"}
    printed = capsys.readouterr().out
    assert "30 rows without a value of 'grade' are left out." in printed
    assert "1 classes of fewer than 5 rows are left out: odd." in printed
    assert "Columns left out, since they have no values: nothing." in printed
    assert "Columns left out, since they name the rows: Name." in printed
    monkeypatch.setattr(quickstart, "MOST_ROWS", 100)
    assert len(quickstart.read_problem(messy, "size").X) < 100
    assert "120 rows: 100 of them, drawn at random, are used." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "task", "message"),
    [
        ("Grade", None, "--target Grade: there is no such column; did you mean 'grade'?"),
        ("xyz", None, "the columns are Name, city, since, born, nothing, size, grade"),
        ("Name", None, "no class of 'Name' has 5 rows"),
        ("grade", "regression", "--task regression: 'grade' is text; its first value is 'odd'"),
        ("nothing", None, "that column has no values"),
    ],
)
def test_what_cannot_be_predicted_is_said(quickstart, messy, target, task, message):
    with pytest.raises(quickstart.DataError) as error:
        quickstart.read_problem(messy, target, task)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("a\n1\n", "one column only"),
        ("größe,b\n1,2\n", "cannot be read as UTF-8; save it with that"),
    ],
)
def test_a_file_that_is_no_table(quickstart, tmp_path, text, message):
    path = tmp_path / "table.csv"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(quickstart.DataError, match=message):
        quickstart.read_problem(path, "a")


def test_semicolons_may_come_with_decimal_commas(quickstart, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b;c\n" + 10 * "1,5;x;0,25\n2;y;-3,5\n")
    table = quickstart.read_table(path)
    assert table["a"].tolist()[:2] == [1.5, 2.0]
    assert table["c"].tolist()[:2] == [0.25, -3.5]
    path.write_text("a;b\n1.5;x\n2;y\n")
    assert quickstart.read_table(path)["a"].tolist() == [1.5, 2.0]


@pytest.mark.slow
def test_a_run_on_a_file_prints_the_tour_and_writes_a_picture_and_a_page(
    quickstart, messy, tmp_path, monkeypatch, capsys
):
    arguments = [str(SCRIPT), str(messy), "--target", "grade", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    with warnings.catch_warnings():  # it has filters of its own
        quickstart.main()
    printed = capsys.readouterr().out
    for part in (
        "HistGB fit",
        "Best of the grid",
        "Where its first split comes from",
        "gain = S_L",
    ):
        assert part in printed
    assert (tmp_path / "out" / "tree.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "model.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert (tmp_path / "out" / "model.html").as_uri() in printed


def test_a_folder_that_cannot_be_made_is_said_at_once(
    quickstart, messy, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").write_text("")
    arguments = [str(SCRIPT), str(messy), "--target", "grade", "--out", str(tmp_path / "file")]
    monkeypatch.setattr(sys, "argv", arguments)
    with warnings.catch_warnings(), pytest.raises(SystemExit, match="1"):
        quickstart.main()
    printed = capsys.readouterr()
    assert "choose another folder with --out" in printed.err
    assert "First use" not in printed.out


def test_the_census_is_split_on_categories(quickstart, capsys):
    adult, *_ = quickstart.bundled_problems()
    assert adult.X.shape == (5000, 12)
    quickstart.print_first_tree(quickstart.our_model(adult, n_estimators=1).fit(adult.X, adult.y))
    assert "\nrelationship in {Husband, Wife}?" in capsys.readouterr().out


def test_a_missing_package_is_named_with_the_remedy():
    hidden = (
        "import runpy, sys\n"
        "class NotInstalled:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pandas':\n"
        "            raise ModuleNotFoundError(f'No module named {name}', name=name)\n"
        "sys.meta_path.insert(0, NotInstalled())\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", hidden],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 1
    assert "quickstart.py needs pandas, which is not installed" in done.stderr
    assert 'pip install ".[demo]"' in done.stderr
