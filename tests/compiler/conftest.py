"""What tests of the compiler share."""

import pytest

from sklboost.engine.compiler import caching


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Let kernels be kept in an empty folder, not found where an earlier run has left them."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.setattr(caching, "_folders", lambda: [folder])
    return folder
