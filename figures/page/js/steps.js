// The list of steps, and the matrix of the current one as a heat map that can be read with pointer or keys.
let heat = null;

function buildSteps() {
  const stops = Array.from(layer().stops.data);
  $("steps-title").textContent = t("steps.title", { count: lastStep() });
  $("steps").replaceChildren(...Array.from({ length: lastStep() + 1 }, (_, k) => {
    const shape = stepOf(layer(), k).shape;
    const button = el("button", { type: "button", "data-step": k }, el("span", { class: "index" }, String(k)),
      el("span", {}, stepName(layer(), k)), el("span", { class: "shape" }, shape.join("×")));
    if (stops.includes(k)) button.classList.add("stop");
    button.addEventListener("click", () => set({ depth: k, playing: false }));
    return el("li", {}, button);
  }));
  heat = null;
  drawStep();
}

function drawStep() {
  const k = currentStep();
  if (heat && heat.k === k && heat.model === state.model && heat.language === state.language) return;
  for (const button of $("steps").querySelectorAll("button")) {
    const own = Number(button.dataset.step);
    button.classList.toggle("done", own < k);
    if (own === k) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
  }
  const chosen = $("steps").querySelector("[aria-current]"), list = $("steps");
  if (chosen.offsetTop < list.offsetTop + list.scrollTop || chosen.offsetTop > list.offsetTop + list.scrollTop + list.clientHeight - 30)
    list.scrollTop = chosen.offsetTop - list.offsetTop - list.clientHeight / 2;
  $("step-formula").replaceChildren(el("strong", {}, `${k} · ${stepName(layer(), k)}`), " ", el("code", {}, k ? layer().formulas[k - 1] : "x"));
  drawHeat(k);
}

// Panels of the heads: as many side by side as make the cells largest without needing more than a screen.
function panels(heads, n, p, width) {
  const gap = 12, names = width < 500 ? 62 : 80, top = heads === 1 ? 4 : 20;
  const options = Array.from({ length: heads }, (_, k) => {
    const across = k + 1, cell = Math.min(38, (width - names - gap * k) / across / p), down = Math.ceil(heads / across);
    const tall = heads === 1 ? 30 : Math.min(30, Math.max(cell, 9));
    return { gap, names, top, across, cell, tall, height: down * (n * tall + top + 4) };
  });
  const fit = options.filter((one) => one.height <= 660 && one.cell >= 2);
  return (fit.length ? fit : options).reduce((a, b) => (b.cell > a.cell ? b : a));
}

function drawHeat(k) {
  const array = stepOf(layer(), k), [heads, n, p] = array.shape.length === 3 ? array.shape : [1, ...array.shape];
  const canvas = $("heat"), width = Math.max(canvas.parentNode.clientWidth, 200), ratio = window.devicePixelRatio || 1;
  const { gap, names, top, across, cell, tall, height } = panels(heads, n, p, width);
  Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d"), positive = k === layer().attention_step, paint = palette(array.data, positive);
  pen.scale(ratio, ratio);
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  heat = { k, model: state.model, language: state.language, array, heads, n, p, cell, tall, cursor: [0, 0, 0] };
  const corner = (h) => [names + (h % across) * (cell * p + gap), Math.floor(h / across) * (n * tall + top + 4) + top];
  heat.corner = corner;
  for (let h = 0; h < heads; h++) {
    const [x, y] = corner(h);
    pen.fillStyle = color("--quiet");
    if (heads > 1) pen.fillText(heads === 8 && k === 5 ? ["Q1", "Q2", "Q3", "Q4", "K1", "K2", "V1", "V2"][h] : String(h + 1), x, y - 6);
    for (let i = 0; i < n; i++) for (let j = 0; j < p; j++) {
      pen.fillStyle = paint.of(array.data[(h * n + i) * p + j]);
      pen.fillRect(x + j * cell, y + i * tall, Math.max(cell - (cell > 4 ? 0.5 : 0), 0.4), tall - 0.5);
    }
    pen.fillStyle = color("--ink");
    if (h % across === 0 && tall >= 12) for (let i = 0; i < n; i++) pen.fillText(layer().tokens[i], 0, y + (i + 0.5) * tall + 4.5, names - 6);
  }
  canvas.setAttribute("aria-label", t("heat.label", { k, name: stepName(layer(), k), shape: array.shape.join(" × ") }));
  const ramp = Array.from({ length: 9 }, (_, s) => paint.at(s / 8)).join(",");
  $("heat-scale").replaceChildren(words(paint.low, 3), el("i", { style: `background:linear-gradient(90deg,${ramp})` }), words(paint.high, 3));
  $("heat-value").textContent = t("heat.none");
  delete $("heat-value").dataset.value;
}

function readCell(h, i, j) {
  const { array, heads, n, p, k } = heat, value = array.data[(h * n + i) * p + j], tokens = layer().tokens;
  const pair = heads > 1 && p === n && /^(S_h|−∞|P_h)/.test(layer().formulas[k - 1] || "");
  const shown = value === -Infinity ? t("heat.hidden") : words(value, 8);
  const what = pair ? t("heat.pair", { word: tokens[i], seen: tokens[j], value: shown }) : t("heat.cell", { word: tokens[i], column: j + 1, value: shown });
  $("heat-value").textContent = (heads > 1 ? t("heat.head", { head: h + 1 }) : "") + what;
  Object.assign($("heat-value").dataset, { value, cell: [h, i, j].join(",") });
  heat.cursor = [h, i, j];
}

$("heat").addEventListener("pointermove", (event) => {
  const { heads, n, p, cell, tall, corner } = heat;
  for (let h = 0; h < heads; h++) {
    const [x, y] = corner(h), j = Math.floor((event.offsetX - x) / cell), i = Math.floor((event.offsetY - y) / tall);
    if (i >= 0 && i < n && j >= 0 && j < p) return readCell(h, i, j);
  }
});
$("heat").addEventListener("keydown", (event) => {
  const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!move) return;
  event.preventDefault();
  const { n, p, heads } = heat;
  let [h, i, j] = heat.cursor;
  [i, j] = [Math.min(Math.max(i + move[0], 0), n - 1), j + move[1]];
  if (j >= p) [h, j] = h + 1 < heads ? [h + 1, 0] : [h, p - 1];
  if (j < 0) [h, j] = h > 0 ? [h - 1, p - 1] : [h, 0];
  readCell(Math.min(h, heads - 1), i, j);
});
view("model language", buildSteps);
view("depth", drawStep);
view("theme size", () => drawHeat(currentStep()));
