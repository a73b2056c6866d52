"""A training on a cluster: who holds what, and who sends what to whom."""

from svg import BOX, ORANGE, ORANGE_BOX, PALE, TEAL, TEAL_BOX, Drawing

WIDTH, HEIGHT = 780, 486
LEFT, WIDE, GAP = 24, 228, 24
CLIENT, WORKERS, TASKS, ACTOR = 20, 214, 236, 342  # tops
N_WORKERS = 3


def draw() -> str:
    drawing = Drawing(WIDTH, HEIGHT, "What the client and the workers of a training have and send")
    drawing.box(LEFT, CLIENT, WIDTH - 2 * LEFT, 92, BOX, PALE)
    _lines(
        drawing,
        *(WIDTH / 2, CLIENT + 22),
        "client: the process that calls fit",
        "parameters, classes, cut points, trees",
        "a sample of 200,000 rows; rows for validation; callbacks",
        "rankings, survival times: their targets",
    )
    for number in range(N_WORKERS):
        left = LEFT + number * (WIDE + GAP)
        middle = left + WIDE / 2
        drawing.box(left, WORKERS, WIDE, 228, "#ffffff", PALE)
        drawing.text(middle, WORKERS + 16, f"worker {number}", size=12, color=PALE)
        drawing.box(left + 12, TASKS, WIDE - 24, 66, ORANGE_BOX, ORANGE)
        _lines(
            drawing,
            middle,
            TASKS + 19,
            "tasks",
            "partitions of X, y, weights",
            "reading, bins",
        )
        drawing.arrow([(middle, TASKS + 66), (middle, ACTOR)])
        drawing.text(middle + 8, ACTOR - 15, "blocks of rows", anchor="start", size=12)
        drawing.box(left + 12, ACTOR, WIDE - 24, 88, TEAL_BOX, TEAL)
        _lines(
            drawing,
            *(middle, ACTOR + 19),
            "actor, with all threads",
            "bins, targets, weights,",
            "raw scores, derivatives",
            "of its blocks; the tree",
        )
        if number > 0:
            for y in (ACTOR + 38, ACTOR + 62):
                ends = [(left - GAP - 12, y), (left + 12, y)]
                drawing.arrow(ends if y < ACTOR + 50 else ends[::-1], TEAL)
    right = LEFT + (N_WORKERS - 1) * (WIDE + GAP) + WIDE / 2
    to_tasks = ("down: tasks, by the scheduler", "up: counts, sums, the sample")
    to_actors = ("down: calls, so many rounds", "up: new trees, from worker 0")
    _between(drawing, LEFT + WIDE / 2, to_tasks, ORANGE, is_left=True)
    _between(drawing, right, to_actors, TEAL, is_left=False)
    drawing.text(
        *(WIDTH / 2, HEIGHT - 24),
        "between workers, for a tree: sums of each block; at each depth histograms and best splits",
        color=TEAL,
        size=13,
    )
    return str(drawing)


def _lines(drawing: Drawing, x: float, y: float, first: str, *others: str) -> None:
    drawing.text(x, y, first, bold=True)
    for number, words in enumerate(others, start=1):
        drawing.text(x, y + 19 * number, words, size=12)


def _between(
    drawing: Drawing, x: float, words: tuple[str, str], color: str, *, is_left: bool
) -> None:
    """Draw what goes from the client to workers, and what comes back."""
    top, bottom = CLIENT + 92, WORKERS
    drawing.arrow([(x - 7, top), (x - 7, bottom)], color)
    drawing.arrow([(x + 7, bottom), (x + 7, top)], color)
    start, anchor = (x + 18, "start") if is_left else (x - 18, "end")
    for number, line in enumerate(words):
        y = (top + bottom) / 2 - 4 + 20 * number
        drawing.text(start, y, line, anchor=anchor, color=color, size=12)
