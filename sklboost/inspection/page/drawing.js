// The drawing of a tree: a box for each node, lines between them.

// Letters that a box has room for, in its two sizes of type.
const LONGEST = 30;
const PAD = 8;

// Draw the listed nodes of a tree into `target`; give the element of each node.
//
// `picture` has nodes, listed, pruned (see trees.js), places (see layout.js), path (numbers of the
// nodes that a row passes) and output (which of a node's values is shown).
function drawTree(target, model, picture) {
  const edges = [];
  const boxes = new Map();
  for (const node of picture.listed) {
    if (node.parent !== null) edges.push(...edgeTo(node, picture));
    boxes.set(node.number, nodeBox(model, node, picture));
  }
  target.replaceChildren(...edges, ...boxes.values());
  squeezeTexts(target);
  return boxes;
}

// Make texts narrower that are wider than their box in the font of this browser.
function squeezeTexts(target) {
  const room = BOX.width - 2 * PAD;
  const texts = [...target.querySelectorAll(".node text:not(.more)")];
  const isWide = texts.map((text) => text.getComputedTextLength() > room);
  for (const text of texts.filter((_, index) => isWide[index])) {
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
}

function edgeTo(node, picture) {
  const parent = picture.nodes[node.parent];
  const isFirst = parent.children[0] === node.number;
  const from = picture.places.get(node.parent);
  const to = picture.places.get(node.number);
  const start = { x: from.x + BOX.width, y: from.y + BOX.height / 2 };
  const end = { x: to.x, y: to.y + BOX.height / 2 };
  const bend = (start.x + end.x) / 2;
  const d = `M${start.x},${start.y} C${bend},${start.y} ${bend},${end.y} ${end.x},${end.y}`;
  const isOnPath = picture.path.has(node.number) && picture.path.has(node.parent);
  const words = (isFirst ? "yes" : "no") + (isFirst === parent.missingLeft ? ", missing" : "");
  const label = { class: "edge-label", x: end.x - 4, y: end.y + (isFirst ? -5 : 14), "text-anchor": "end" };
  return [
    svg("path", { class: isOnPath ? "edge on-path" : "edge", d, "aria-hidden": "true" }),
    svg("text", { ...label, "aria-hidden": "true" }, words),
  ];
}

function nodeBox(model, node, picture) {
  const { x, y } = picture.places.get(node.number);
  const isSplit = node.children.length > 0 && !picture.pruned.has(node.number);
  const value = node.values[picture.output];
  const title = (longest, written) => (
    isSplit ? conditionOf(model, node, longest) : `value ${written(value)}`
  );
  const numbers = (written) => `${isSplit ? `gain ${written(node.gain)}, ` : ""}cover ${written(node.cover)}`;
  const state = stateOf(node, picture.pruned);
  const name = `Node ${node.number}${state === "" ? "" : `, ${state}`}`;
  const words = `${name}: ${title(Infinity, numberText)}, ${numbers(numberText)}`;
  const kinds = ["node", picture.pruned.has(node.number) ? "pruned" : "", node.isRemoved ? "removed" : ""];
  if (picture.path.has(node.number)) kinds.push("on-path");
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
  if (isSplit) attributes["aria-expanded"] = String(picture.places.has(node.children[0]));
  const parts = [
    svg("title", {}, words),
    svg("rect", { class: "box", width: BOX.width, height: BOX.height, rx: 5 }),
    svg("text", { x: PAD, y: 19 }, title(LONGEST, fourDigits)),
    svg("text", { x: PAD, y: 36, class: "numbers" }, numbers(fourDigits)),
  ];
  if (isSplit && !picture.places.has(node.children[0])) {
    const nLeaves = counted(leavesBelow(picture.nodes, node, picture.pruned), "leaf", "leaves");
    parts.push(svg("text", { x: BOX.width + 6, y: BOX.height / 2 + 4, class: "more" }, `+ ${nLeaves}`));
  }
  if (!isSplit) parts.push(valueBar(value, model.largest_value));
  return svg("g", attributes, ...parts);
}

function stateOf(node, pruned) {
  if (pruned.has(node.number)) return "pruned split";
  return node.isRemoved ? "split that was pruned in training" : "";
}

// A leaf's value as a bar at the bottom of its box, to the right of the middle if it is above 0.
function valueBar(value, largest) {
  const half = BOX.width / 2 - 4;
  const length = Math.max(1, (Math.abs(value) / (largest || 1)) * half);
  const x = value < 0 ? BOX.width / 2 - length : BOX.width / 2;
  const place = { x, y: BOX.height - 4, width: length, height: 3 };
  return svg("rect", { ...place, class: value < 0 ? "falls" : "rises" });
}
