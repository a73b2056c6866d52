// Elements of the page. Whatever comes from the data is put in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function byId(id) {
  return document.getElementById(id);
}

// Make an HTML element with attributes and children, which are elements or texts.
function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function shortened(text, longest) {
  const letters = [...text];
  return letters.length <= longest ? text : `${letters.slice(0, longest - 1).join("")}…`;
}

function counted(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

// Make the choices of a select element; their values are 0, 1, 2, ...
function fillChoices(select, names) {
  select.replaceChildren(...names.map((name, index) => html("option", { value: index }, name)));
}

// Give the head of a table; some of the texts stand above numbers.
function headings(texts, ofNumbers) {
  const cells = texts.map((text) => html(
    "th",
    { scope: "col", class: ofNumbers.includes(text) ? "number" : "" },
    text,
  ));
  return html("thead", {}, html("tr", {}, ...cells));
}

// A bar from one number to another, in a drawing as wide as the numbers from `low` to `high`.
function bar(from, to, low, high) {
  const scale = 100 / (high - low || 1);
  const x = (Math.min(from, to) - low) * scale;
  const width = to === from ? 0 : Math.max(Math.abs(to - from) * scale, 0.3);
  const own = svg("rect", { x, y: 1, width, height: 8, class: to < from ? "falls" : "rises" });
  const drawing = { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" };
  return svg("svg", drawing, own);
}
