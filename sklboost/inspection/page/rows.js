// Rows and what each of their features adds to the raw score, from the expected score to the row's.

const ABOUT = "SHAP values: how much each feature changes the raw score, largest first. "
  + "Features that change nothing are left out.";

class RowSection {
  // `onRow` is told the leaves of the row that is shown, and what the row is called.
  constructor(target, model, onRow) {
    this.target = target;
    this.model = model;
    this.rows = model.rows;
    this.onRow = onRow;
    this.row = html("select", { id: "row" });
    this.output = html("select", { id: "row-output" });
    fillChoices(this.row, this.rows.labels);
    fillChoices(this.output, model.outputs);
    const ofOutput = html("label", {}, "Explain ", this.output);
    ofOutput.hidden = model.outputs.length < 2;
    this.table = html("div");
    this.about = html("p", { role: "status" });
    const turn = (words, step) => {
      const button = html("button", { type: "button" }, words);
      button.addEventListener("click", () => this.show(Number(this.row.value) + step));
      return button;
    };
    const choice = html("label", {}, "Row ", this.row);
    const buttons = [turn("Previous row", -1), choice, turn("Next row", 1)];
    target.append(html("div", { class: "controls" }, ...buttons, ofOutput), this.about, this.table);
    this.row.addEventListener("change", () => this.show(Number(this.row.value)));
    this.output.addEventListener("change", () => this.show(Number(this.row.value)));
    this.show(0);
  }

  show(row) {
    const nearest = Math.min(Math.max(row, 0), this.rows.labels.length - 1);
    this.row.value = nearest;
    this.about.textContent = this.rows.summaries[nearest];
    this.table.replaceChildren(...this.#contributions(nearest, Number(this.output.value)));
    this.onRow(this.rows.leaves[nearest], this.rows.labels[nearest]);
  }

  // The table of a row and output: largest contributions first, with the running sum.
  #contributions(row, output) {
    if (this.rows.contributions === null) return [html("p", {}, this.rows.why_none)];
    const added = this.rows.contributions[row][output];
    const order = added.map((_, feature) => feature).filter((feature) => added[feature] !== 0);
    order.sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]));
    const steps = runningSums(this.rows.start[row][output], order.map((feature) => added[feature]));
    const sums = [this.rows.start[row][output], ...steps.map((step) => step.to)];
    const range = [Math.min(...sums), Math.max(...sums)];
    const names = ["Feature", "Value", "SHAP value", "Change", "Raw score"];
    if (predictionOf(this.rows.link, 0) !== null) names.push(this.rows.linked);
    const first = tableLine(["start: mean raw score", "", "", ""], sums[0], this.rows.link);
    const others = order.map((feature, index) => {
      const { from, to } = steps[index];
      const named = [this.model.features[feature], this.rows.values[row][feature]];
      const cells = [...named, numberText(added[feature]), bar(from, to, ...range)];
      return tableLine(cells, to, this.rows.link);
    });
    const table = html(
      "table",
      { class: "bars", "aria-label": "SHAP values" },
      headings(names, ["SHAP value", "Raw score", this.rows.linked]),
      html("tbody", {}, first, ...others),
    );
    return [html("p", { class: "note" }, ABOUT), html("div", { class: "table" }, table)];
  }
}

function predictedText(link, prediction) {
  return link === "logit" ? prediction.toFixed(4) : numberText(prediction);
}

function runningSums(start, added) {
  let sum = start;
  return added.map((value) => {
    const from = sum;
    sum += value;
    return { from, to: sum };
  });
}

function tableLine([name, value, added, drawn], sum, link) {
  const numbers = [numberText(sum)];
  if (predictionOf(link, sum) !== null) numbers.push(predictedText(link, predictionOf(link, sum)));
  return html(
    "tr",
    {},
    html("th", { scope: "row" }, name),
    html("td", {}, value),
    html("td", { class: "number" }, added),
    html("td", { class: "bar" }, drawn),
    ...numbers.map((number) => html("td", { class: "number" }, number)),
  );
}
