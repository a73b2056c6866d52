// Learning curves: a metric after each round, a line for each set of rows.

const CHART = { width: 480, height: 260, left: 70, right: 10, top: 10, bottom: 40 };

function showCurves(target, curves) {
  if (curves.metrics.length === 0) {
    target.append(html("p", {}, "No learning curves: the model was fitted without validation data (eval_set)."));
    return;
  }
  const charts = curves.metrics.map((metric) => chart(metric, curves.first_round, curves.best));
  target.append(html("div", { class: "charts" }, ...charts));
}

// Draw one metric: { name, sets: [{ name, values }] }; values begin with the round `first`, and
// `best` is a round, or null.
function chart({ name, sets }, first, best) {
  const values = sets.flatMap((set) => set.values.filter((value) => value !== null));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const last = first + Math.max(...sets.map((set) => set.values.length)) - 1;
  const { width, height, left, right, top, bottom } = CHART;
  const x = (round) => left + ((round - first) / Math.max(last - first, 1)) * (width - left - right);
  const y = (value) => top + ((high - value) / (high - low || 1)) * (height - top - bottom);
  const ends = sets.map((set) => `${set.name} ends at ${lastOf(set)}`);
  const label = `${name} after each round: ${ends.join(", ")}`;
  const attributes = { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" };
  const drawing = svg("svg", { ...attributes, "aria-label": label });
  drawing.append(
    svg("path", { class: "axis", fill: "none", d: `M${left},${top} V${height - bottom} H${width - right}` }),
    svg("text", { x: left - 6, y: y(high) + 4, "text-anchor": "end" }, numberText(high)),
    svg("text", { x: left - 6, y: y(low) + 4, "text-anchor": "end" }, numberText(low)),
    svg("text", { x: left, y: height - bottom + 16 }, String(first)),
    svg("text", { x: width - right, y: height - bottom + 16, "text-anchor": "end" }, String(last)),
    svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "round"),
  );
  if (best !== null) {
    drawing.append(svg("path", { class: "best", d: `M${x(best)},${top} V${height - bottom}` }));
  }
  const lines = sets.map(
    (set, index) => svg("path", { class: curveClass(index), d: path(set.values, first, x, y) }),
  );
  drawing.append(...lines);
  const note = best === null ? "" : ` (best round: ${best})`;
  return html("figure", {}, html("figcaption", {}, `${name}${note}`), drawing, keyOf(sets));
}

function path(values, first, x, y) {
  const points = values.map((value, i) => (value === null ? null : `${x(first + i)},${y(value)}`));
  return `M${points.filter((point) => point !== null).join(" L")}`;
}

function keyOf(sets) {
  const items = sets.map((set, index) => {
    const line = svg("path", { class: curveClass(index), d: "M0,5 H40" });
    const sample = svg("svg", { viewBox: "0 0 40 10", "aria-hidden": "true" }, line);
    return html("li", {}, sample, ` ${set.name}: ${lastOf(set)}`);
  });
  return html("ul", { class: "key" }, ...items);
}

function lastOf(set) {
  const last = set.values.at(-1);
  return last === null ? "no number" : numberText(last);
}

function curveClass(index) {
  return `curve curve-${index % 4}`;
}
