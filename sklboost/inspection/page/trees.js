// The trees of the model, from the columns of their nodes, and pruning.

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

function depthOf(nodes, node) {
  return node.parent === null ? 0 : 1 + depthOf(nodes, nodes[node.parent]);
}

// List the nodes from the root to this one.
function wayTo(nodes, number) {
  const way = [];
  for (let at = number; at !== null; at = nodes[at].parent) way.unshift(at);
  return way;
}

// Say which rows go to the first child; with a `longest` length, names are cut and thresholds kept.
function conditionOf(model, node, longest = Infinity) {
  const special = model.trees.conditions[node.place];
  if (special !== undefined) return shortened(special, longest);
  const name = model.features[model.trees.feature[node.place]];
  const rest = ` < ${model.trees.threshold[node.place]}`;
  return `${shortened(name, longest - rest.length)}${rest}`;
}
