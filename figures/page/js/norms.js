// LayerNorm and RMSNorm of one token plus a constant, in the plane of mean and standard deviation.
const NORMS = [["before", "o", "var(--quiet)"], ["layer", "^", "var(--good)"], ["rmsnorm", "s", "var(--warm)"]];

// (mean, standard deviation, RMS) of token + c, of its LayerNorm and of its RMSNorm.
const momentsOf = (shift, token) => NORMS.map((_, k) => Array.from(part(toy.moments, k, shift, token).data));

function drawNorms() {
  const all = momentsOf(state.shift, state.normToken), c = toy.shifts.data[state.shift];
  $("shift-value").textContent = `c = ${words(c, 3)}`;
  $("shift").setAttribute("aria-valuetext", `c = ${words(c, 3)}`);
  $("moments").tBodies[0].replaceChildren(...NORMS.map(([name, shape, fill], k) => {
    const mark = svg("svg", { viewBox: "0 0 16 16", style: "display:inline-block;width:1em;vertical-align:-.1em" }, marker(shape, 8, 8, 5.5, { fill }));
    return el("tr", { "data-norm": name }, el("th", { scope: "row" }, mark, ` ${t(`norms.${name}`)}`),
      ...all[k].map((value) => el("td", { "data-value": value }, words(Math.abs(value) < 1e-12 ? 0 : value, 6))));
  }));
  drawNormPlane(all);
  drawVectors();
  const [a, b] = toy.norm_eps.data, short = Math.floor(1 / Math.max(...all.slice(1).map((m) => Math.abs(m[2] - 1)), 1e-16));
  $("norm-note").textContent = t("norms.eps", { a: a.toExponential(0), b: b.toExponential(0), short: Number(short.toPrecision(1)).toLocaleString("en") });
}

function drawNormPlane(all) {
  const node = $("norm-plane"), before = Array.from({ length: toy.moments.shape[1] }, (_, s) => part(toy.moments, 0, s, state.normToken).data);
  const far = Math.max(...Array.from(toy.moments.data.filter((_, k) => k % 3 === 0), Math.abs));
  const high = Math.max(...toy.moments.data.filter((_, k) => k % 3 === 1));
  const ys = [0, 1.1 * high];
  ys.fixed = true;
  const { x, y, unit } = frame(node, { ...fit(node, 0.6), xs: [-far - 0.1, far + 0.1], ys, xlabel: t("mean"), ylabel: t("std") });
  node.append(svg("path", { d: `M${x(-1)},${y(0)}A${unit},${unit} 0 0 1 ${x(1)},${y(0)}`, fill: "none", stroke: "var(--warm)", "stroke-width": 2 }));
  node.append(svg("line", { x1: x(0), x2: x(0), y1: y(0), y2: 12, stroke: "var(--good)", "stroke-width": 2, "stroke-dasharray": "6 4" }));
  node.append(svg("text", { x: x(-1) - 6, y: y(0.12), "text-anchor": "end" }, t("norms.circle")));
  node.append(svg("text", { x: x(0) + 7, y: 26 }, t("norms.line")));
  node.append(svg("polyline", { points: before.map((m) => `${x(m[0])},${y(m[1])}`).join(" "), fill: "none", stroke: "var(--quiet)", "stroke-dasharray": "2 4" }));
  const [from, ln, rms] = all;
  for (const [to, stroke, dash] of [[ln, "var(--good)", "6 4"], [rms, "var(--warm)", "none"]])
    node.append(svg("line", { x1: x(from[0]), y1: y(from[1]), x2: x(to[0]), y2: y(to[1]), stroke, "stroke-width": 1.5, "stroke-dasharray": dash, opacity: 0.8 }));
  NORMS.forEach(([name, shape, fill], k) => node.append(marker(shape, x(all[k][0]), y(all[k][1]), 7,
    { fill, stroke: "var(--paper)", "data-norm": name, "data-mean": all[k][0], "data-std": all[k][1] })));
  const [a, b, c, d, e, f] = [from, ln, rms].flatMap((m) => [words(m[0], 3), words(m[1], 3)]);
  node.setAttribute("aria-label", t("norms.label", { a, b, c, d, e, f }));
}

function drawVectors() {
  const node = $("vectors"), token = part(toy.step_00, state.normToken).data, c = toy.shifts.data[state.shift];
  const rows = [token.map((v) => v + c), part(toy.layer_norm, state.shift, state.normToken).data, part(toy.rms_norm, state.shift, state.normToken).data];
  const { width, height } = fit(node, 0.4), left = 92, wide = (width - left) / token.length, tall = height / 3;
  const most = Math.max(largest(token) + largest(toy.shifts.data), 3), scale = (tall / 2 - 2) / most;
  node.setAttribute("aria-label", t("norms.vectors"));
  node.replaceChildren();
  rows.forEach((values, k) => {
    const [name, , fill] = NORMS[k], zero = tall * k + tall / 2;
    node.append(svg("text", { x: 0, y: zero + 4, class: "quiet" }, t(`norms.${name}`)));
    node.append(svg("line", { x1: left, x2: width, y1: zero, y2: zero, stroke: "var(--line)" }));
    values.forEach((v, j) => node.append(svg("rect", { x: left + wide * j + 2, width: wide - 4, y: zero - Math.max(v, 0) * scale,
      height: Math.abs(v) * scale, fill, "data-value": v }, svg("title", {}, words(v, 7)))));
  });
}

$("norm-token").replaceChildren(...toy.tokens.map((word, i) => el("option", { value: i }, `${i + 1} · ${word}`)));
$("shift").max = toy.shifts.data.length - 1;
state.shift = Math.floor(toy.shifts.data.length * 2 / 3);
state.normToken = toy.tokens.length - 1;
$("shift").value = state.shift;
$("norm-token").value = state.normToken;
$("shift").addEventListener("input", (event) => set({ shift: Number(event.target.value) }));
$("norm-token").addEventListener("change", (event) => set({ normToken: Number(event.target.value) }));
view("shift normToken language theme size", drawNorms);
