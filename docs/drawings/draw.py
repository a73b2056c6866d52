"""Draw the pictures of the documentation: `python docs/drawings/draw.py`.

They are kept beside this file, so that pages can be read where the repository is browsed. A test
draws them again and compares (tests/test_drawings.py).
"""

import argparse
from pathlib import Path

import calls
import cluster
import leaf
import rooms
import speed
import tree
import walk

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DRAWINGS = {
    "rooms": lambda: rooms.draw(ROOT),
    "calls": calls.draw,
    "cluster": cluster.draw,
    "leaf": leaf.draw,
    "splits": tree.draw_splits,
    "tree": tree.draw_tree,
    "walk": walk.draw,
    "speed": lambda: speed.draw(ROOT / "benchmarks" / "results" / "speed.jsonl"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(DRAWINGS)}; none: all")
    parser.add_argument("--out", type=Path, default=HERE, help="a folder")
    arguments = parser.parse_args()
    for name in arguments.names or DRAWINGS:
        (arguments.out / f"{name}.svg").write_text(DRAWINGS[name](), encoding="utf-8")


if __name__ == "__main__":
    main()
