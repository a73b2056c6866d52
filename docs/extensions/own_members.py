"""Pages of classes show what this package gives them, not what they have from scikit-learn."""

from typing import Any

from sphinx.application import Sphinx


def skip_foreign(
    app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Skip a member that another package defines; None: as Sphinx likes."""
    own = member.fget if isinstance(member, property) else member
    module = getattr(own, "__module__", None) or ""
    return None if module.startswith("sklboost") else True


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}
