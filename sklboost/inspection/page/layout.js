// Where the nodes of a tree are drawn: the root on the left, leaves evenly from top to bottom.

const BOX = { width: 220, height: 46 };
const STEP = { x: 296, y: 56 };

// Give a place { x, y } for each of the nodes, which are listed parents first.
function placeNodes(nodes, listed) {
  const places = new Map();
  const isListed = new Set(listed.map((node) => node.number));
  let leaves = 0;
  for (const node of listed) {
    const isLeaf = !node.children.some((child) => isListed.has(child));
    places.set(node.number, {
      x: depthOf(nodes, node) * STEP.x,
      y: isLeaf ? STEP.y * leaves++ : 0,
    });
  }
  for (const node of [...listed].reverse()) { // children are placed before their parent
    const below = node.children.filter((child) => isListed.has(child));
    if (below.length === 0) continue;
    const [first, second] = below.map((own) => places.get(own).y);
    places.get(node.number).y = (first + second) / 2;
  }
  return places;
}

// Give the rectangle that has all of the tree in it.
function extentOf(places) {
  let [right, bottom] = [0, 0];
  for (const { x, y } of places.values()) {
    right = Math.max(right, x);
    bottom = Math.max(bottom, y);
  }
  return { x: -20, y: -20, width: right + BOX.width + 40, height: bottom + BOX.height + 40 };
}
