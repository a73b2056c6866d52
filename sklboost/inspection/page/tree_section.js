// The section of the trees: which one is shown, how far it is pruned, which node is selected.

class TreeSection {
  constructor(model) {
    this.model = model;
    this.gamma = model.gamma;
    this.output = 0; // which of the raw scores, or of the values of a leaf
    this.tree = 0;
    this.selected = 0;
    this.row = null; // leaves that a row reaches, one for each tree
    this.open = new Set(); // nodes whose children are drawn
    this.drawing = byId("drawing");
    this.panel = byId("node");
    this.view = new View(this.drawing);
    this.#prepareControls();
    this.#listen();
    this.showTree(0);
  }

  // The numbers of the trees that add to the chosen output.
  get #trees() {
    const { n_trees: nTrees, n_outputs: nOutputs, is_vector: isVector } = this.model;
    if (isVector) return { first: 0, step: 1, count: nTrees };
    return { first: this.output, step: nOutputs, count: nTrees / nOutputs };
  }

  showTree(tree) {
    this.tree = tree;
    this.nodes = readTree(this.model.trees, tree);
    this.selected = 0;
    this.open.clear();
    this.#draw();
    this.#openView();
    this.#refreshPanel();
  }

  // Go to the tree at a position among those of the output; beyond the ends, to the nearest.
  showPosition(position) {
    const { first, step, count } = this.#trees;
    const nearest = Math.min(Math.max(Math.round(position), 0), count - 1);
    this.showTree(first + step * nearest);
  }

  get #position() {
    const { first, step } = this.#trees;
    return (this.tree - first) / step;
  }

  setGamma(gamma) {
    this.gamma = gamma;
    this.#draw();
    if (!this.boxes.has(this.selected)) this.selected = 0;
    this.#mark();
  }

  setRow(leaves, name) {
    [this.row, this.rowName] = [leaves, name];
    this.#draw();
    this.#openView();
  }

  #openView() {
    this.view.open(extentOf(this.places), this.places.get(0));
    this.view.reveal(this.places.get(this.selected));
  }

  // Draw the children of a node.
  #openNode(number) {
    this.open.add(number);
    this.#draw();
    this.view.extent = extentOf(this.places);
    const room = STEP.x - BOX.width; // what is written beside a closed node
    for (const child of this.nodes[number].children) this.view.reveal(this.places.get(child), room);
    this.select(number);
  }

  #isPathShown() {
    return this.row !== null && byId("show-path").checked;
  }

  #isClosed(number) {
    return this.boxes.get(number).getAttribute("aria-expanded") === "false";
  }

  // Select a node, and explain it where one is explained already.
  select(number) {
    this.selected = number;
    if (!this.boxes.has(number)) { // below a node whose children are not drawn
      for (const above of pathTo(this.nodes, number)) this.open.add(above);
      this.#draw();
    }
    this.#mark();
    this.view.reveal(this.places.get(number));
    this.boxes.get(number).focus({ preventScroll: true });
    this.#refreshPanel();
  }

  // Explain the selected node, or close the panel.
  toggle() {
    const isShown = !this.panel.hidden && Number(this.panel.dataset.node) === this.selected;
    if (isShown) this.close();
    else this.#explain();
  }

  close() {
    this.panel.hidden = true;
    this.boxes.get(this.selected).focus({ preventScroll: true });
  }

  #explain() {
    const node = this.nodes[this.selected];
    showNode(this.panel, this.model, this.tree, node, () => this.close());
    // over the lower half of a narrow screen: the tree goes to the upper half
    if (getComputedStyle(this.panel).position === "fixed") this.drawing.scrollIntoView();
  }

  #refreshPanel() {
    if (!this.panel.hidden) this.#explain();
  }

  #draw() {
    const pruned = prunedSplits(this.nodes, this.gamma);
    const path = new Set(this.#isPathShown() ? pathTo(this.nodes, this.row[this.tree]) : []);
    this.left = leftNodes(this.nodes, pruned);
    const isWhole = byId("all-levels").checked;
    this.listed = isWhole ? this.left : shownNodes(this.nodes, this.left, new Set([...this.open, ...path]));
    this.places = placeNodes(this.nodes, this.listed);
    const output = this.model.is_vector ? this.output : 0;
    const { nodes, listed, places } = this;
    const picture = { nodes, listed, places, pruned, path, output };
    this.boxes = drawTree(this.drawing, this.model, picture);
    this.#mark();
    this.#tell(pruned);
  }

  // Mark the selected node, the one that the Tab key comes to.
  #mark() {
    for (const [number, box] of this.boxes) {
      box.setAttribute("aria-selected", String(number === this.selected));
      box.setAttribute("tabindex", number === this.selected ? 0 : -1);
    }
  }

  #tell(pruned) {
    const { count } = this.#trees;
    const nSplits = this.nodes.filter((node) => node.children.length > 0).length;
    const nLeft = this.left.filter((n) => n.children.length > 0 && !pruned.has(n.number)).length;
    const ofOutput = this.model.outputs.length > 1 ? ` of ${this.model.outputs[this.output]}` : "";
    const splits = nLeft === nSplits ? counted(nSplits, "split", "splits") : `${nLeft} of ${nSplits} splits`;
    const leaves = counted(nLeft + 1, "leaf", "leaves");
    const why = nLeft === nSplits ? "" : `, pruned with gamma ${numberText(this.gamma)}`;
    const end = this.#isPathShown() ? ` Row ${this.rowName} ends in leaf ${this.row[this.tree]}.` : "";
    byId("tree-status").textContent =
      `Tree ${this.tree}${ofOutput}, ${this.#position + 1} of ${count}: ${splits}, ${leaves}${why}.${end}`;
    this.drawing.setAttribute("aria-label", `Tree ${this.tree}${ofOutput}`);
    byId("tree-number").value = this.tree;
    byId("tree-slider").max = count - 1;
    byId("tree-slider").value = this.#position;
    byId("previous-tree").disabled = this.#position === 0;
    byId("next-tree").disabled = this.#position === count - 1;
    byId("gamma").value = this.gamma;
    byId("gamma-slider").value = this.#slideOf(this.gamma);
    byId("gamma-slider").setAttribute("aria-valuetext", numberText(this.gamma));
  }

  // The slider is finer where gammas are small: few splits have large gains.
  #gammaOf(slide) {
    const { least_gain: least, largest_gain: largest } = this.model;
    const gamma = least + (slide / 1000) ** 3 * (largest - least);
    return slide === 1000 ? largest * 1.001 : Number(gamma.toPrecision(6));
  }

  #slideOf(gamma) {
    const { least_gain: least, largest_gain: largest } = this.model;
    return Math.round(1000 * Math.cbrt((gamma - least) / (largest - least || 1)));
  }

  #prepareControls() {
    const { outputs, features, n_trees: nTrees } = this.model;
    fillChoices(byId("output"), outputs);
    byId("output-control").hidden = outputs.length < 2;
    byId("tree-number").max = nTrees - 1;
    byId("feature-names").append(...features.slice(0, 1000).map((name) => html("option", { value: name })));
    byId("path-control").hidden = this.model.rows === null;
    const { starts } = this.model.trees;
    byId("levels-control").hidden = !starts.some((start, tree) => hasManyLeaves(starts[tree + 1] - start));
  }

  #listen() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("output", "change", () => {
      const position = this.#position;
      this.output = Number(byId("output").value);
      this.showPosition(position);
    });
    on("previous-tree", "click", () => this.showPosition(this.#position - 1));
    on("next-tree", "click", () => this.showPosition(this.#position + 1));
    on("tree-slider", "input", () => this.showPosition(Number(byId("tree-slider").value)));
    on("tree-number", "change", () => this.#goTo(Number(byId("tree-number").value)));
    on("gamma-slider", "input", () => this.setGamma(this.#gammaOf(Number(byId("gamma-slider").value))));
    on("gamma", "change", () => this.setGamma(Number(byId("gamma").value)));
    on("reset-gamma", "click", () => this.setGamma(this.model.gamma));
    on("zoom-in", "click", () => this.view.zoom(1.3));
    on("zoom-out", "click", () => this.view.zoom(1 / 1.3));
    on("zoom-fit", "click", () => this.view.showAll());
    for (const id of ["show-path", "all-levels"]) {
      on(id, "change", () => {
        if (id === "all-levels") this.open.clear();
        this.#draw();
        if (!this.boxes.has(this.selected)) this.selected = 0;
        this.#mark();
        this.#openView();
      });
    }
    on("search", "submit", (event) => {
      event.preventDefault();
      this.#find(byId("search-text").value);
    });
    on("drawing", "click", (event) => {
      const box = event.target.closest(".node");
      if (box === null || this.view.hasMoved) return;
      if (event.target.classList.contains("more")) {
        this.#openNode(Number(box.dataset.node));
        return;
      }
      this.select(Number(box.dataset.node));
      this.toggle();
    });
    on("drawing", "keydown", (event) => this.#press(event));
  }

  // Go to a tree by its number, and to the output that it adds to.
  #goTo(tree) {
    const nearest = Math.min(Math.max(Math.round(tree) || 0, 0), this.model.n_trees - 1);
    if (!this.model.is_vector) this.output = nearest % this.model.n_outputs;
    byId("output").value = this.output;
    this.showTree(nearest);
  }

  #press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const act = this.#keys()[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  }

  #keys() {
    const order = this.listed.map((node) => node.number); // each before its children
    const at = order.indexOf(this.selected);
    const to = (number) => {
      if (number !== undefined && number !== null && this.boxes.has(number)) this.select(number);
    };
    const turn = (step) => {
      this.showPosition(this.#position + step);
      this.select(0);
    };
    return {
      ArrowRight: () => {
        if (this.#isClosed(this.selected)) this.#openNode(this.selected);
        else to(this.nodes[this.selected].children[0]);
      },
      ArrowLeft: () => to(this.nodes[this.selected].parent),
      ArrowDown: () => to(order[at + 1]),
      ArrowUp: () => to(order[at - 1]),
      Home: () => to(0),
      End: () => to(order.at(-1)),
      PageDown: () => turn(1),
      PageUp: () => turn(-1),
      Enter: () => this.toggle(),
      " ": () => this.toggle(),
      Escape: () => this.close(),
      "+": () => this.view.zoom(1.3),
      "-": () => this.view.zoom(1 / 1.3),
      0: () => this.view.showAll(),
    };
  }

  // Go to the next split whose condition has the text, in this tree or a later one.
  #find(text) {
    const wanted = text.trim().toLowerCase();
    const { n_trees: nTrees } = this.model;
    for (let ahead = 0; wanted !== "" && ahead <= nTrees; ahead += 1) {
      const tree = (this.tree + ahead) % nTrees;
      const nodes = ahead === 0 ? this.nodes : readTree(this.model.trees, tree);
      const listed = leftNodes(nodes, prunedSplits(nodes, this.gamma));
      const isNew = ahead > 0 || this.foundFor !== wanted;
      const start = isNew ? 0 : listed.findIndex((node) => node.number === this.selected) + 1;
      const found = listed.slice(start).find((node) => this.#hasText(node, nodes, wanted));
      if (found !== undefined) {
        this.foundFor = wanted;
        if (ahead > 0) this.#goTo(tree);
        this.select(found.number);
        byId("found").textContent = `Tree ${tree}, node ${found.number}`;
        return;
      }
    }
    byId("found").textContent = "No split found.";
  }

  #hasText(node, nodes, wanted) {
    const isSplit = node.children.length > 0 && !prunedSplits(nodes, this.gamma).has(node.number);
    return isSplit && conditionOf(this.model, node).toLowerCase().includes(wanted);
  }
}
