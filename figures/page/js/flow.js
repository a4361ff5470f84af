// The flow of the words under each attention, and the Gaussian that started with their moments.
const unique = (key) => [...new Set(flows.map((run) => run[key]))];
const SETTING = ["variant", "beta", "sign"];
const matching = (wanted) => flows.find((one) => SETTING.every((key) => one[key] === wanted[key]));
const run = () => matching(state);
const outputTimes = flows.reduce((a, b) => (b.times.data.length > a.times.data.length ? b : a)).times.data;

// Fixed axes: all that runs reach that come to their end, for one sign of V.
function flowReach() {
  const whole = flows.filter((one) => one.sign === state.sign && one.blow_up === null);
  return 1.08 * Math.max(...whole.map((one) => largest(one.points.data)));
}

function choices() {
  const group = (key, name) => el("fieldset", {}, el("legend", {}, t(name)), ...unique(key).map((value) => {
    const input = el("input", { type: "radio", name: key, value });
    input.checked = state[key] === value;
    input.addEventListener("change", () => {
      // A record may have holes: then the nearest thing that has what was asked for.
      const { variant, beta, sign } = matching({ ...state, [key]: value }) || flows.find((one) => one[key] === value);
      set({ variant, beta, sign, flowPlaying: false });
    });
    const shown = key === "variant" ? t(value) : key === "sign" ? (value > 0 ? "V = I" : "V = −I") : String(value);
    return el("label", {}, input, shown);
  }));
  $("flow-choices").replaceChildren(group("variant", "flow.variant"), group("beta", "flow.beta"), group("sign", "flow.sign"));
}

// Points of the curve m + s L (cos, sin), L the Cholesky factor of the covariance.
function ellipse(mean, covariance, deviations, { x, y }) {
  const [a, b, , d] = covariance, l = Math.sqrt(a), m = b / l, n = Math.sqrt(Math.max(d - m * m, 0));
  return Array.from({ length: 73 }, (_, k) => {
    const [u, v] = [Math.cos((k * Math.PI) / 36) * deviations, Math.sin((k * Math.PI) / 36) * deviations];
    return `${x(mean[0] + l * u)},${y(mean[1] + m * u + n * v)}`;
  }).join(" ");
}

// Mean and covariance of points (n, 2), divided by n.
function momentsOfPoints(points) {
  const n = points.length / 2, sum = (f) => { let s = 0; for (let i = 0; i < n; i++) s += f(points[2 * i], points[2 * i + 1]); return s / n; };
  const mean = [sum((a) => a), sum((_, b) => b)], cross = sum((a, b) => (a - mean[0]) * (b - mean[1]));
  return [mean, [sum((a) => (a - mean[0]) ** 2), cross, cross, sum((_, b) => (b - mean[1]) ** 2)]];
}

function clip(node, { width, height }) {
  node.append(svg("clipPath", { id: `${node.id}-clip` }, svg("rect", { x: 46, y: 12, width: width - 58, height: height - 52 })));
  const group = svg("g", { "clip-path": `url(#${node.id}-clip)` });
  node.append(group);
  return group;
}

function drawFlow() {
  const one = run(), reach = flowReach(), steps = one.times.data.length, k = Math.min(state.time, steps - 1);
  const size = { ...fit($("flow-tokens"), 0.8), xs: [-reach, reach], ys: [-reach, reach], xlabel: t("first"), ylabel: t("second") };
  const look = record.looks[state.variant], fill = state.variant === "masked" || state.variant === "softmax" ? `var(--${state.variant})` : look.color;
  const now = part(one.points, k).data, n = now.length / 2, left = $("flow-tokens"), right = $("flow-gaussian");
  const axes = frame(left, size), inside = clip(left, size);
  let away = 0;
  const places = Array.from({ length: n }, (_, i) => [axes.x(now[2 * i]), axes.y(now[2 * i + 1])]);
  const offsets = labelOffsets((i, stop) => { const p = part(one.points, stop, i).data; return [axes.x(p[0]), axes.y(p[1])]; },
    one.tokens, [0, Math.floor(steps / 2), steps - 1]);  // by the whole run, so that labels do not jump as time goes on
  for (let i = 0; i < n; i++) {
    const path = Array.from({ length: k + 1 }, (_, j) => { const p = part(one.points, j, i).data; return `${axes.x(p[0])},${axes.y(p[1])}`; });
    inside.append(svg("polyline", { points: path.join(" "), fill: "none", stroke: fill, opacity: 0.4, "stroke-width": 1.5 }));
  }
  for (let i = 0; i < n; i++) {
    const [x, y] = places[i], values = { "data-x": now[2 * i], "data-y": now[2 * i + 1] };
    if (Math.max(Math.abs(now[2 * i]), Math.abs(now[2 * i + 1])) > 1.15 * reach) away++;
    inside.append(marker(look.marker, x, y, 5.5, { fill, stroke: look.marker === "X" ? fill : "var(--paper)", class: "dot", ...values }),
      svg("text", { x: x + offsets[i].dx, y: y + offsets[i].dy, "text-anchor": offsets[i].anchor, style: "paint-order:stroke", stroke: "var(--paper)", "stroke-width": 3 }, one.tokens[i]));
  }
  drawGaussian(one, k, right, size, fill);
  flowWords(one, k, away);
}

function drawGaussian(one, k, node, size, fill) {
  fit(node, 0.8);
  const axes = frame(node, size), inside = clip(node, size), [mean, covariance] = momentsOfPoints(part(one.points, k).data);
  for (const s of [1, 2]) inside.append(svg("polygon", { points: ellipse(mean, covariance, s, axes), fill: "none", stroke: "var(--quiet)", "stroke-dasharray": "5 4", "stroke-width": 1.5 }));
  if (!one.gaussian_times) return;
  const g = Math.min(state.time, one.gaussian_times.data.length - 1), law = part(one.gaussian_covariances, g).data, centre = part(one.gaussian_means, g).data;
  for (const s of [2, 1]) inside.append(svg("polygon", { points: ellipse(centre, law, s, axes), fill, "fill-opacity": 0.16, stroke: fill, "stroke-width": 3 - s / 2,
    "data-covariance": JSON.stringify(Array.from(law)), "data-mean": JSON.stringify(Array.from(centre)) }));
  inside.append(svg("circle", { cx: axes.x(centre[0]), cy: axes.y(centre[1]), r: 4, fill }));
}

function flowWords(one, k, away) {
  const time = outputTimes[state.time], ended = state.time >= one.times.data.length;
  const law = one.gaussian_times && state.time >= one.gaussian_times.data.length;
  const shown = `t = ${words(time, 3)}` + (ended ? ` · ${t("flow.tokens")}: ${t("flow.ended")}` : "") + (law ? ` · ${t("flow.gaussian")}: ${t("flow.ended")}` : "");
  $("time-badge").textContent = shown;
  $("time").setAttribute("aria-valuetext", shown);
  const end = words(one.times.data[one.times.data.length - 1], 3), lives = one.blow_up === null;
  const gaussian = !one.gaussian_times ? t("gaussian.none")
    : one.gaussian_blow_up !== null ? t("gaussian.dead", { t: words(one.gaussian_blow_up, 6) })
    : lives ? t("gaussian.alive") : t("gaussian.lives", { t: words(one.gaussian_times.data[one.gaussian_times.data.length - 1], 3) });
  const space = state.language === "zh" ? "" : " ", verdict = $("flow-verdict");
  verdict.textContent = (lives ? t("flow.alive", { t: end }) : t("flow.dead", { t: words(one.blow_up, 6) })) + space + gaussian
    + (away ? `${space}(${t("flow.away", { count: away })})` : "");
  Object.assign(verdict.dataset, { blowUp: one.blow_up, gaussianBlowUp: one.gaussian_blow_up });
  for (const [id, key] of [["flow-tokens", "flow.label"], ["flow-gaussian", "gaussian.label"]])
    $(id).setAttribute("aria-label", t(key, { variant: t(state.variant), t: words(time, 3) }));
}

if (!run()) Object.assign(state, Object.fromEntries(SETTING.map((key) => [key, flows[0][key]])));
$("time").max = outputTimes.length - 1;
$("time").addEventListener("input", (event) => set({ time: Number(event.target.value), flowPlaying: false }));
view("language", choices);
view("variant beta sign", () => {
  for (const input of $("flow-choices").querySelectorAll("input")) input.checked = input.value === String(state[input.name]);
});
view("variant beta sign time language theme size", drawFlow);
view("time", () => { $("time").value = state.time; });
