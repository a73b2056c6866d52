// The panel beside the tree that explains a node: how its numbers are calculated.

const SUBSCRIPT = /([A-Za-zα-ωΑ-Ω]+)_([A-Za-z0-9]+(?:,[A-Za-z0-9]+)*)/;

// Show the derivation of a node in `panel`; `close` is called by its button.
function showNode(panel, model, tree, node, close) {
  const button = html("button", { type: "button" }, "Close");
  button.addEventListener("click", close);
  const [title, ...content] = model.derivationOf === null
    ? withoutDerivation(tree, node)
    : derivationElements(model.derivationOf(node.place));
  panel.replaceChildren(button, title, ...content);
  panel.dataset.node = node.number;
  panel.hidden = false;
  panel.scrollTop = 0;
}

function withoutDerivation(tree, node) {
  const words = `This page was saved without calculations. In Python, call explain_split(${tree}, ${node.number}).`;
  return [html("h3", {}, `Tree ${tree}, node ${node.number}`), html("p", {}, words)];
}

function derivationElements(derivation) {
  const elements = [html("h3", {}, derivation.title)];
  for (const { heading, lines } of derivation.sections) {
    elements.push(html("h4", {}, heading));
    for (const line of lines) {
      if (typeof line === "string") elements.push(html("p", {}, line));
      else tableAtEnd(elements).append(stepRow(line));
    }
  }
  return elements;
}

// Give the table that the steps before have begun, or a new one.
function tableAtEnd(elements) {
  if (elements.at(-1).tagName !== "TABLE") elements.push(html("table"));
  return elements.at(-1);
}

function stepRow({ name, parts }) {
  const equation = parts.flatMap((part, index) => [
    ...(index > 0 ? [" = "] : []),
    ...(index < 2 ? withSubscripts(part) : [part]), // symbol and formula
  ]);
  return html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, ...equation));
}

// Give the pieces of a formula, with G_L as G and a lower L.
function withSubscripts(formula) {
  const pieces = formula.split(SUBSCRIPT); // text, letters, subscript, text, ...
  return pieces.map((piece, index) => (index % 3 === 2 ? html("sub", {}, piece) : piece));
}
