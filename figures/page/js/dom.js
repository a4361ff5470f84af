// Elements, numbers in words, and axes.
const $ = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A number for people: four digits, a proper minus sign, exactly zero only when it is.
function words(value, digits = 4) {
  if (value === 0) return "0";
  if (!isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = size < 1e-3 || size >= 1e5 ? value.toExponential(digits - 1) : value.toPrecision(digits);
  return text.replace(/-/g, "−");
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function ticks(low, high, about = 5) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return found;
}

// A number on an axis.
const tickText = (v) => String(Number(v.toPrecision(6))).replace("-", "−");

// Size of an SVG in its own pixels, so that text is as large on a phone as on a desk.
function fit(node, ratio) {
  const width = Math.max(280, Math.round(node.getBoundingClientRect().width) || 560), height = Math.round(ratio * width);
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { width, height };
}

// A frame with fixed axes in an SVG of the given size; x(...) and y(...) map values to its units.
function frame(node, { width, height, xs, ys, equal = true, xlabel = "", ylabel = "", left = 46, bottom = 40 }) {
  node.replaceChildren();
  const right = 12, top = 12;
  let [x0, x1] = xs, [y0, y1] = ys;
  if (equal) {
    const unit = Math.max((x1 - x0) / (width - left - right), (y1 - y0) / (height - top - bottom));
    const wide = unit * (width - left - right) - (x1 - x0), tall = unit * (height - top - bottom) - (y1 - y0);
    [x0, x1, y0, y1] = [x0 - wide / 2, x1 + wide / 2, y0 - (ys.fixed ? 0 : tall / 2), y1 + tall / (ys.fixed ? 1 : 2)];
  }
  const x = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right);
  const y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - top - bottom);
  const edge = { stroke: "var(--line)" }, inner = { stroke: "var(--grid)" };
  for (const v of ticks(x0, x1)) {
    node.append(svg("line", { x1: x(v), x2: x(v), y1: top, y2: height - bottom, ...inner }));
    node.append(svg("text", { x: x(v), y: height - bottom + 16, "text-anchor": "middle", class: "quiet" }, tickText(v)));
  }
  for (const v of ticks(y0, y1)) {
    node.append(svg("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), ...inner }));
    node.append(svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end", class: "quiet" }, tickText(v)));
  }
  node.append(svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, ...edge }));
  node.append(svg("line", { x1: left, x2: left, y1: top, y2: height - bottom, ...edge }));
  node.append(svg("text", { x: width - right, y: height - 5, "text-anchor": "end", class: "quiet" }, xlabel));
  node.append(svg("text", { x: 12, y: top, "text-anchor": "end", transform: `rotate(-90 12 ${top})`, class: "quiet" }, ylabel));
  return { x, y, unit: (width - left - right) / (x1 - x0) };
}

// The marker of a variant: never told by colour alone.
function marker(shape, x, y, size, attributes) {
  const s = size, paths = {
    o: `M${x - s},${y}a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0`,
    s: `M${x - s},${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    "^": `M${x},${y - 1.2 * s}l${1.15 * s},${2.1 * s}h${-2.3 * s}z`,
    v: `M${x},${y + 1.2 * s}l${1.15 * s},${-2.1 * s}h${-2.3 * s}z`,
    X: `M${x - s},${y - s}l${2 * s},${2 * s}m0,${-2 * s}l${-2 * s},${2 * s}`,
  };
  return svg("path", { d: paths[shape] || paths.o, ...(shape === "X" ? { "stroke-width": 2.5 } : {}), ...attributes });
}
