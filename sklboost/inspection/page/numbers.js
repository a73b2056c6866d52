// Numbers as text, as the derivations of sklboost write them.

// Four decimals; below 1 six; beyond 1e10 and below 0.001 six significant digits.
function numberText(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e10) return withoutZeros(value.toFixed(size >= 1 ? 4 : 6));
  return withPower(value, 6);
}

function withPower(value, nDigits) {
  const [mantissa, exponent] = value.toExponential(nDigits - 1).split("e");
  const digits = exponent.slice(1).padStart(2, "0");
  return `${withoutZeros(mantissa)}e${exponent[0]}${digits}`;
}

// Four significant digits; beyond 1e7 and below 0.001 with a power of ten.
function fourDigits(value) {
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e7)) return String(Number(value.toPrecision(4)));
  return withPower(value, 4);
}

function withoutZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// What raw scores stand for, by the name of the link; null where other outputs have a say.
function predictionOf(link, rawScore) {
  if (link === "logit") return 1 / (1 + Math.exp(-rawScore));
  if (link === "log") return Math.exp(rawScore);
  return null;
}
