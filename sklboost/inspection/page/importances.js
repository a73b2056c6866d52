// Importances of the features as bars, largest first.

const FEW = 20;

function showImportances(target, features, importances) {
  const choice = html("select", { id: "importance-kind" });
  fillChoices(choice, importances.map((own) => own.name));
  const more = html("button", { type: "button" }, `Show all ${features.length} features`);
  const table = html("div", { class: "table" });
  let limit = FEW;
  const draw = () => {
    const own = importances[Number(choice.value)];
    table.replaceChildren(importanceTable(own, features, limit));
    more.hidden = features.length <= limit;
  };
  choice.addEventListener("change", draw);
  more.addEventListener("click", () => {
    limit = features.length;
    draw();
  });
  const label = html("label", {}, "Measured by ", choice);
  target.append(html("div", { class: "controls" }, label), table, more);
  draw();
}

function importanceTable({ about, values }, features, limit) {
  const order = features.map((_, feature) => feature).sort((a, b) => values[b] - values[a]);
  const largest = Math.max(...values, 0);
  const rows = order.slice(0, limit).map((feature) => html(
    "tr",
    {},
    html("th", { scope: "row" }, features[feature]),
    html("td", { class: "number" }, numberText(values[feature])),
    html("td", { class: "bar" }, bar(0, Math.max(values[feature], 0), 0, largest)),
  ));
  return html(
    "table",
    { class: "bars" },
    html("caption", {}, about),
    headings(["Feature", "Importance", "Bar"], ["Importance"]),
    html("tbody", {}, ...rows),
  );
}
