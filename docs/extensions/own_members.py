"""Pages of classes show what this package gives them, not what scikit-learn's classes bring along.

Nor do they show the many parameters twice: the signature of an estimator is that of its
``__new__``, which looks at their names, and the list below it says the rest.
"""

from typing import Any

from sphinx.application import Sphinx


def skip_foreign(
    app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Skip a member that another package defines; None: as Sphinx likes."""
    own = member.fget if isinstance(member, property) else member
    module = getattr(own, "__module__", None) or ""
    return None if module.startswith("sklboost") else True


def shorten_signature(
    app: Sphinx, kind: str, name: str, own: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Return the signature that is shown; None: as it is."""
    return ("(**parameters)", returns) if signature == "(*arguments, **parameters)" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-signature", shorten_signature)
    return {"parallel_read_safe": True}
