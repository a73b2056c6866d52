// The trees of the model, from the columns of their nodes, and pruning.

// So many leaves, and so many levels, are drawn at a size that can be read.
const [MANY_LEAVES, FIRST_DEPTH] = [10, 3];

// Give a tree as a list of nodes, by their numbers.
function readTree(columns, number) {
  const start = columns.starts[number];
  const nodes = [];
  for (let place = start; place < columns.starts[number + 1]; place += 1) {
    const left = columns.left[place];
    nodes.push({
      number: place - start,
      place, // among the nodes of all trees
      children: left > 0 ? [left, left + 1] : [],
      parent: null,
      missingLeft: columns.missing_left[place] === 1,
      isRemoved: columns.removed[place] === 1,
      gain: columns.gain[place],
      cover: columns.cover[place],
      values: columns.values.map((own) => own[place]),
    });
  }
  for (const node of nodes) {
    for (const child of node.children) nodes[child].parent = node.number;
  }
  return nodes;
}

// Tell which splits go, from the bottom up: one goes if its gain is below gamma and both its
// children are leaves, or have become leaves. So a weak split stays above a strong one.
function prunedSplits(nodes, gamma) {
  const pruned = new Set();
  const isLeaf = (number) => nodes[number].children.length === 0 || pruned.has(number);
  for (const node of [...nodes].reverse()) { // children have larger numbers than their parent
    const isSplit = node.children.length > 0;
    if (isSplit && node.children.every(isLeaf) && node.gain < gamma) pruned.add(node.number);
  }
  return pruned;
}

// List the nodes that pruning leaves, each before its children.
function leftNodes(nodes, pruned) {
  const listed = [];
  const waiting = [0];
  while (waiting.length > 0) {
    const node = nodes[waiting.pop()];
    listed.push(node);
    if (!pruned.has(node.number)) waiting.push(...[...node.children].reverse());
  }
  return listed;
}

function hasManyLeaves(nNodes) {
  return nNodes + 1 > 2 * MANY_LEAVES;
}

// List the nodes that are drawn at first: of a tree of many leaves those near the root, and the
// children of the open ones.
function shownNodes(nodes, left, open) {
  if (!hasManyLeaves(left.length)) return left;
  const shown = new Set();
  for (const node of left) {
    const isNear = depthOf(nodes, node) <= FIRST_DEPTH || open.has(node.parent);
    if (node.parent === null || (shown.has(node.parent) && isNear)) shown.add(node.number);
  }
  return left.filter((node) => shown.has(node.number));
}

// Count the leaves that pruning leaves below a node.
function leavesBelow(nodes, node, pruned) {
  if (node.children.length === 0 || pruned.has(node.number)) return 1;
  const [first, second] = node.children.map((child) => leavesBelow(nodes, nodes[child], pruned));
  return first + second;
}

function depthOf(nodes, node) {
  return node.parent === null ? 0 : 1 + depthOf(nodes, nodes[node.parent]);
}

// List the nodes from the root to this one.
function pathTo(nodes, number) {
  const path = [];
  for (let at = number; at !== null; at = nodes[at].parent) path.unshift(at);
  return path;
}

// Say which rows go to the first child; with a `longest` length, names are cut and thresholds kept.
function conditionOf(model, node, longest = Infinity) {
  const special = model.trees.conditions[node.place];
  if (special !== undefined) {
    const isCut = longest < Infinity; // then quotes around categories take room from names
    return isCut ? shortened(special.replaceAll(/'([^',]*)'/g, "$1"), longest) : special;
  }
  const name = model.features[model.trees.feature[node.place]];
  const threshold = model.trees.threshold[node.place];
  const isShort = longest < Infinity && typeof threshold === "number";
  const rest = ` < ${isShort ? Number(threshold.toPrecision(7)) : threshold}`;
  return `${shortened(name, longest - rest.length)}${rest}`;
}
