"""What several tests of pages share."""

import itertools

EVIL = "</script><img src=x onerror=alert(1)>"
DOSAGE, EFFECT = [[10], [20], [25], [35]], [-10, 7, 8, -7]
WORKED = dict(n_estimators=1, learning_rate=1, reg_lambda=0, base_score=0.5, max_depth=2)


def node_texts(page):
    """Unfold every node of every tree and give the text of each derivation."""
    return page.run("""
        const set = (id, value) => {
          document.getElementById(id).value = value;
          document.getElementById(id).dispatchEvent(new Event("change", { bubbles: true }));
        };
        set("gamma", -1e300);
        const panel = document.getElementById("node");
        const textOf = (element) => element.tagName === "TABLE"
          ? [...element.rows].map((row) => [...row.cells].map((c) => c.textContent).join(": "))
          : [element.textContent];
        const texts = [];
        const last = Number(document.getElementById("tree-number").max);
        for (let tree = 0; tree <= last; tree += 1) {
          set("tree-number", tree);
          const nNodes = document.querySelectorAll(".node").length;
          for (let node = 0; node < nNodes; node += 1) {
            panel.hidden = true;
            const box = document.querySelector(`[data-node="${node}"]`);
            box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
            texts.push([...panel.querySelectorAll("h3, h4, p, table")].flatMap(textOf));
          }
        }
        return texts;
    """)


def expected_texts(model):
    """Return the same from Python."""
    texts = []
    for tree in range(model.model_.n_trees):
        for node in itertools.count():
            try:
                text = str(model.explain_split(tree, node))
            except ValueError:  # there is no such node
                break
            texts.append([line.strip() for line in text.splitlines() if line])
    return texts


def plain(texts):
    """Leave out `_`: what comes after one stands lower on the page."""
    return [[line.replace("_", "") for line in lines] for lines in texts]


def table_of(page, selector):
    return [
        [cell.get_attribute("textContent") for cell in row.find_elements("css selector", "th, td")]
        for row in page.all(f"{selector} tbody tr")
    ]
