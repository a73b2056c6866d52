"""The pictures of the front page: kept, small, shown by a page, and what their script draws."""

import pytest
from PIL import Image

from tests.conftest import ROOT, draw_again

FOLDER = ROOT / "docs" / "pictures"
KEPT = sorted(path for path in FOLDER.iterdir() if path.suffix in {".png", ".webp"})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Draw everything again, into another folder."""
    return draw_again(FOLDER, tmp_path_factory.mktemp("pictures"))


def colours(file):
    """Return a picture as few large points, which versions of fonts and libraries do not change."""
    with Image.open(file) as image:
        return list(image.convert("L").resize((12, 8), Image.Resampling.BOX).tobytes())


@pytest.mark.slow
def test_all_are_kept(drawn):
    assert [path.name for path in KEPT] == sorted(path.name for path in drawn.iterdir())
    assert len(KEPT) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_picture_shows_what_its_script_draws(kept, drawn):
    remedy = f"draw it again and look at it: python docs/pictures/draw.py {kept.name}"
    differences = [
        abs(a - b) for a, b in zip(colours(kept), colours(drawn / kept.name), strict=True)
    ]
    assert sum(differences) / len(differences) < 4, remedy


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_picture_is_small_and_large_enough(kept):
    assert kept.stat().st_size < 150_000
    with Image.open(kept) as image:
        assert min(image.size) >= 400


def test_the_front_page_shows_them():
    front = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [kept.name for kept in KEPT if f"(pictures/{kept.name})" not in front] == []
