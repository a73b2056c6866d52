"""The features of a text model of LightGBM that are categories, and their values.

LightGBM knows integers from 0 on. Those of a pandas column are the places of its values in a list
at the end of the file, a list for each column; which columns these are the file does not say.
"""

import itertools
import re
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding, list_encoding
from sklboost.files.foreign import ForeignTree
from sklboost.files.lightgbm.text import ModelText
from sklboost.files.sections import Section

_PLAIN = (str, int, float, bool)
_MOST_CHOICES = 1000  # of columns of one value that may be categories
_MOST_DIGITS = 10


class Categories(NamedTuple):
    """The categories of a feature."""

    # int64, shape (n_categories,): lightGBM's, increasing: code k is the k-th of them
    integers: np.ndarray
    encoding: Encoding  # of the values that users have


def encode_categories(
    trees: list[ForeignTree], text: ModelText, infos: list[str]
) -> tuple[list[ForeignTree], tuple[Encoding, ...] | None]:
    """Return the trees with codes for categories, and the encodings of the features.

    Raises
    ------
    ModelFileError
        If a feature is both a category and a number, or if the file does not say which values a
        category has.
    """
    split_on = {
        feature for tree in trees for feature in tree.feature[list(tree.categories)].tolist()
    }
    # of other features: the range of the numbers in brackets, or "none" if there is one value only
    listed = {i for i, info in enumerate(infos) if not info.startswith(("[", "none"))}
    features = sorted(split_on | listed)
    lists = text.pandas_categorical
    if not lists.is_null and len(lists) > 0:
        known = _of_pandas(lists, features, infos)
    else:
        of_splits = _codes_by_feature(trees)
        known = {i: _of_integers(i, of_splits.get(i, []), infos[i], text.header) for i in features}
    if not known:
        return trees, None
    coded = [
        _with_codes(tree, known, section.place)
        for tree, section in zip(trees, text.trees, strict=True)
    ]
    plain = Encoding()
    return coded, tuple(known[i].encoding if i in known else plain for i in range(len(infos)))


def _of_pandas(lists: Section, features: list[int], infos: list[str]) -> dict[int, Categories]:
    """Return the categories of the features that were pandas columns of categories."""
    # those of one value may be categories, too
    constant = [i for i, info in enumerate(infos) if info == "none" and i not in features]
    sections, n_more = list(lists), len(lists) - len(features)
    if n_more == 0:
        return {i: _of_list(values) for i, values in zip(features, sections, strict=True)}
    choices = itertools.combinations(constant, n_more) if n_more >= 0 else ()
    fitting: dict[tuple[int, ...], list[int]] = {}
    for chosen in itertools.islice(choices, _MOST_CHOICES):
        columns = sorted([*features, *chosen])
        if all(_fits(infos[i], values) for i, values in zip(columns, sections, strict=True)):
            # constant ones are split nowhere: what matters is which list the others have
            fitting[tuple(i for i, column in enumerate(columns) if column not in chosen)] = columns
    if len(fitting) == 1:
        (columns,) = fitting.values()
        return {i: _of_list(values) for i, values in zip(columns, sections, strict=True)}
    lists.fail(
        f"these are of {len(lists)} pandas columns, but {len(features)} features are categories, "
        "and the file does not say which are which: train with the codes of ordered categories, "
        "without integers that are declared as categories, and without columns of one value"
    )


def _fits(info: str, values: Section) -> bool:
    """Whether a list of categories has all codes that the header lists for a feature."""
    codes = re.findall(r"\d+", info) if not info.startswith("[") else []
    return all(int(code) < len(values) for code in codes if len(code) < _MOST_DIGITS)


def _of_list(values: Section) -> Categories:
    categories = [value.value for value in values]
    if not all(isinstance(value, _PLAIN) and value == value for value in categories):
        values.fail("must be a list of texts and numbers")
    # in other columns than pandas' all numbers are places: these are their own
    is_declared = categories == list(range(len(categories)))
    return Categories(np.arange(len(categories)), _encoding(categories, values, is_declared))


def _codes_by_feature(trees: list[ForeignTree]) -> dict[int, list[np.ndarray]]:
    found: dict[int, list[np.ndarray]] = {}
    for tree in trees:
        for node, codes in tree.categories.items():
            found.setdefault(int(tree.feature[node]), []).append(codes)
    return found


def _of_integers(
    feature: int, of_splits: list[np.ndarray], info: str, header: Section
) -> Categories:
    """Return the categories of a feature of integers: those of its splits and of the header."""
    place = Section(None, f"{header.place}.feature_infos")
    try:
        known = [int(word) for word in info.split(":") if info != "none"]
    except ValueError:
        place.fail(f"feature {feature}: no categories: {info[:40]!r}")
    integers = np.unique(np.concatenate([np.array(known, dtype=np.int64), *of_splits]))
    integers = integers[integers >= 0]  # -1 is a missing value
    return Categories(integers, _encoding(integers.tolist(), place, True))


def _encoding(categories: list[Any], section: Section, is_declared: bool) -> Encoding:
    try:
        return list_encoding(categories, is_declared=is_declared)
    except ValueError as error:
        section.fail(str(error))


def _with_codes(tree: ForeignTree, known: dict[int, Categories], place: str) -> ForeignTree:
    is_number = tree.left >= 0
    is_number[list(tree.categories)] = False
    both = set(tree.feature[is_number].tolist()) & known.keys()
    if both:
        Section(None, place).fail(f"feature {min(both)} is a category, and split by a number")
    codes = {}
    for node, integers in tree.categories.items():
        categories = known[int(tree.feature[node])].integers
        if not np.isin(integers, categories).all():
            Section(None, place).fail(f"split {node}: more categories than the feature has")
        codes[node] = np.searchsorted(categories, integers)
    return tree._replace(categories=codes)


def sends_zero_left(trees: list[ForeignTree], encodings: tuple[Encoding, ...] | None) -> bool:
    """Whether zero is a category, and one that goes left at some split."""
    zeros = {i: known.code_of[0] for i, known in enumerate(encodings or ()) if 0 in known.code_of}
    return any(
        zeros.get(int(tree.feature[node]), -1) in codes
        for tree in trees
        for node, codes in tree.categories.items()
    )
