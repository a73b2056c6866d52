// Derivations, put together from templates and columns of numbers.

const MARK = "\ufffc"; // where a number of a sentence goes
const SYMBOL = /[A-Za-zα-ωΑ-Ω]+(?:_[A-Za-z0-9]+(?:,[A-Za-z0-9]+)*)?/g;

// Prepare to unfold: a function that gives the derivation of a node by its place among all nodes.
function derivationReader(folded) {
  const counts = folded.templates.map(() => 0);
  const indices = folded.kinds.map((kind) => counts[kind]++); // among those of its kind
  return (place) => {
    const template = folded.templates[folded.kinds[place]];
    return unfold(template, indices[place], folded.sentences);
  };
}

// Give { title, sections: [{ heading, lines }] }; a line is a sentence or { name, parts }.
function unfold(template, index, sentences) {
  let slot = 0;
  const next = () => {
    const column = template.columns[template.slots[slot++]];
    return Array.isArray(column) ? column[index] : column;
  };
  const lineOf = (line) => (Array.isArray(line) ? step(line, next) : sentence(line, next, sentences));
  const [title, ...sections] = template.sections.map(([heading, lines]) => ({
    heading,
    lines: lines.map(lineOf),
  }));
  return { title: title.lines[0], sections };
}

function sentence(nNumbers, next, sentences) {
  const text = sentences[next()];
  if (nNumbers === 0) return text;
  return text.split(MARK).reduce((before, after) => `${before}${next()}${after}`);
}

// Give { name, parts }, where the parts are equal: symbol, formula, numbers in it, result.
function step([name, symbol, formula, symbols], next) {
  const values = new Map(symbols.map((own) => [own, String(next())]));
  const result = String(next());
  const numbers = filledIn(formula, values);
  const parts = [symbol, formula, numbers === formula || numbers === result ? "" : numbers, result];
  return { name, parts: parts.filter((part) => part !== "") };
}

// Put numbers in place of symbols; a negative one in brackets, unless it stands alone.
function filledIn(formula, values) {
  return formula.replace(SYMBOL, (symbol, place) => {
    const text = values.get(symbol);
    if (text === undefined) return symbol;
    const before = formula.slice(0, place).trimEnd();
    const after = formula.slice(place + symbol.length);
    const isMisread = after.startsWith("²") || /[-+·/]$/.test(before);
    return text.startsWith("-") && isMisread ? `(${text})` : text;
  });
}
