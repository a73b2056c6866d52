// What is done when the page is opened.

const model = JSON.parse(byId("data").textContent);
model.derivationOf = model.derivations === null ? null : derivationReader(model.derivations);

byId("theme").addEventListener("change", (event) => {
  document.documentElement.dataset.theme = event.target.value;
});
byId("facts").append(...model.facts.map(
  ([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value)),
));
const trees = new TreeSection(model);
if (model.rows === null) {
  const words = "This page was saved without rows to explain. To include some, call to_html(path, X) in Python.";
  document.querySelector("#rows .content").append(html("p", {}, words));
} else {
  const onRow = (leaves, name) => trees.setRow(leaves, name);
  new RowSection(document.querySelector("#rows .content"), model, onRow);
}
showImportances(document.querySelector("#importances .content"), model.features, model.importances);
showCurves(document.querySelector("#curves .content"), model.curves);
