// The drawing of a tree: a box for each node, lines between them.

// Letters that a box has room for, in its two sizes of type.
const LONGEST = { title: 26, numbers: 34 };

// Draw the listed nodes of a tree into `target`; give the element of each node.
//
// `picture` has nodes, listed, pruned (see trees.js), places (see layout.js), way (numbers of the
// nodes that a row passes) and output (which of a node's values is shown).
function drawTree(target, model, picture) {
  const edges = [];
  const boxes = new Map();
  for (const node of picture.listed) {
    if (node.parent !== null) edges.push(...edgeTo(node, picture));
    boxes.set(node.number, nodeBox(model, node, picture));
  }
  target.replaceChildren(...edges, ...boxes.values());
  return boxes;
}

function edgeTo(node, picture) {
  const parent = picture.nodes[node.parent];
  const isFirst = parent.children[0] === node.number;
  const from = picture.places.get(node.parent);
  const to = picture.places.get(node.number);
  const start = { x: from.x + BOX.width, y: from.y + BOX.height / 2 };
  const end = { x: to.x, y: to.y + BOX.height / 2 };
  const bend = (start.x + end.x) / 2;
  const path = `M${start.x},${start.y} C${bend},${start.y} ${bend},${end.y} ${end.x},${end.y}`;
  const isOnWay = picture.way.has(node.number) && picture.way.has(node.parent);
  const words = (isFirst ? "yes" : "no") + (isFirst === parent.missingLeft ? ", missing" : "");
  const label = { class: "edge-label", x: end.x - 4, y: end.y + (isFirst ? -5 : 13), "text-anchor": "end" };
  return [
    svg("path", { class: isOnWay ? "edge on-way" : "edge", d: path, "aria-hidden": "true" }),
    svg("text", { ...label, "aria-hidden": "true" }, words),
  ];
}

function nodeBox(model, node, picture) {
  const { x, y } = picture.places.get(node.number);
  const isSplit = node.children.length > 0 && !picture.pruned.has(node.number);
  const value = node.values[picture.output];
  const titleOf = (longest) => (isSplit ? conditionOf(model, node, longest) : `value ${numberText(value)}`);
  const numbers = isSplit
    ? `gain ${numberText(node.gain)}, cover ${numberText(node.cover)}`
    : `cover ${numberText(node.cover)}`;
  const state = stateOf(node, picture.pruned);
  const words = `Node ${node.number}${state === "" ? "" : `, ${state}`}: ${titleOf(Infinity)}, ${numbers}`;
  const kinds = ["node", picture.pruned.has(node.number) ? "pruned" : "", node.isRemoved ? "removed" : ""];
  if (picture.way.has(node.number)) kinds.push("on-way");
  const attributes = {
    class: kinds.filter((kind) => kind !== "").join(" "),
    transform: `translate(${x},${y})`,
    role: "treeitem",
    tabindex: -1,
    "data-node": node.number,
    "aria-level": depthOf(picture.nodes, node) + 1,
    "aria-selected": "false",
    "aria-label": words,
  };
  if (isSplit) attributes["aria-expanded"] = "true";
  const parts = [
    svg("title", {}, words),
    svg("rect", { class: "box", width: BOX.width, height: BOX.height, rx: 5 }),
    svg("text", { x: 8, y: 17 }, titleOf(LONGEST.title)),
    svg("text", { x: 8, y: 33, class: "numbers" }, shortened(numbers, LONGEST.numbers)),
  ];
  if (!isSplit) parts.push(valueBar(value, model.largest_value));
  return svg("g", attributes, ...parts);
}

function stateOf(node, pruned) {
  if (pruned.has(node.number)) return "pruned split";
  return node.isRemoved ? "split that the model pruned" : "";
}

// A leaf's value as a bar at the bottom of its box, to the right of the middle if it is above 0.
function valueBar(value, largest) {
  const half = BOX.width / 2 - 4;
  const length = Math.max(1, (Math.abs(value) / (largest || 1)) * half);
  const x = value < 0 ? BOX.width / 2 - length : BOX.width / 2;
  const place = { x, y: BOX.height - 4, width: length, height: 3 };
  return svg("rect", { ...place, class: value < 0 ? "falls" : "rises" });
}
