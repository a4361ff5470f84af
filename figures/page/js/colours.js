// Colours of values: cividis for what is positive, blue to orange around a true zero for the rest.
const hex = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
const mix = (a, b, share) => a.map((v, k) => Math.round(v + share * (b[k] - v)));
const css = (rgb) => `rgb(${rgb.join(",")})`;

// A function value -> colour, with the ends and the name of its scale.
function palette(values, positive) {
  const most = largest(values) || 1;
  const empty = css(mix(hex(color("--paper")), hex(color("--quiet")), 0.25));
  if (positive) {
    const table = record.cividis.map(hex);
    const at = (v) => table[Math.round((Math.min(Math.max(v / most, 0), 1)) * (table.length - 1))];
    return { of: (v) => (isFinite(v) ? css(at(v)) : empty), low: 0, high: most, at: (s) => css(at(s * most)) };
  }
  const zero = hex(color("--zero")), below = hex("#0072B2"), above = hex("#D55E00");
  const at = (v) => mix(zero, v < 0 ? below : above, Math.min(Math.abs(v) / most, 1) ** 0.8);
  return { of: (v) => (isFinite(v) ? css(at(v)) : empty), low: -most, high: most, at: (s) => css(at((2 * s - 1) * most)) };
}

// A row of cells, one a value, each with its number as a tooltip.
function strip(values, paint) {
  const node = el("span", { class: "strip", "aria-hidden": "true" });
  for (const value of values) node.append(el("i", { style: `background:${paint.of(value)}`, title: words(value, 7) }));
  return node;
}
