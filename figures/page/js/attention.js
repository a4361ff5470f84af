// The chosen word's row of attention: a list to choose from, bars, arcs, and the weighted sum of the values.
const ROW = 30;

function buildTokens() {
  const list = $("tokens");
  list.replaceChildren(...layer().tokens.map((word, i) => {
    const button = el("button", { type: "button", class: "token", role: "radio", "aria-checked": "false", tabindex: -1 },
      el("span", { class: "word" }, word),
      el("span", { class: "track" }, el("span", { class: "fill" })), el("span", { class: "number" }), el("span"));
    button.addEventListener("click", () => set({ query: i }));
    return button;
  }));
  const inside = Boolean(layer().attention_step);
  $("head-label").hidden = !inside;
  if (inside) {
    const heads = stepOf(layer(), layer().attention_step).shape[0];
    $("head").replaceChildren(...Array.from({ length: heads }, (_, h) => el("option", { value: h }, String(h + 1))));
    $("head").value = state.head;
  }
  drawAttention();
}

function drawAttention() {
  const { attention_step: step, value_step, output_step, tokens } = layer();
  const rows = Array.from($("tokens").querySelectorAll(".token"));
  $("tokens").parentNode.parentNode.querySelector(".sum")?.remove();
  const weights = step ? part(stepOf(layer(), step), state.head, state.query).data : null;
  const values = step ? stepOf(layer(), value_step) : null;
  const paint = step ? palette(part(values, state.head).data, false) : null;
  rows.forEach((row, j) => {
    const chosen = j === state.query;
    row.setAttribute("aria-checked", chosen);
    row.tabIndex = chosen ? 0 : -1;
    row.style.gridTemplateColumns = step ? "" : "1fr";
    for (const node of Array.from(row.children).slice(1)) node.hidden = !step;
    row.setAttribute("aria-label", step ? t("attention.pick", { word: tokens[j], k: j + 1, weight: words(weights[j]) }) : tokens[j]);
    if (!step) return;
    row.querySelector(".fill").style.width = `${100 * weights[j]}%`;
    row.querySelector(".number").textContent = weights[j] === 0 ? "0" : weights[j].toFixed(4);
    row.querySelector(".number").dataset.value = weights[j];
    row.lastChild.replaceWith(strip(part(values, state.head, j).data, paint));
  });
  drawArcs(weights, rows.length);
  if (!step) {
    $("attention-note").textContent = t("attention.none");
    return;
  }
  const size = values.shape[2], sum = new Float64Array(size);
  weights.forEach((w, j) => part(values, state.head, j).data.forEach((v, p) => { sum[p] += w * v; }));
  const recorded = part(stepOf(layer(), output_step), state.head, state.query).data;
  const error = change(sum, recorded);
  const cells = strip(sum, paint);
  cells.dataset.values = JSON.stringify(Array.from(sum));
  $("attention").after(el("div", { class: "sum" }, t("attention.sum", { step: output_step, error: words(error, 2) }), cells));
  const most = weights.indexOf(Math.max(...weights));
  $("attention-note").textContent = t("attention.note", { word: tokens[state.query], seen: tokens[most], weight: words(weights[most], 3), step });
}

// Arcs from the chosen row to every row it looks at, as wide as the weight.
function drawArcs(weights, count) {
  const node = $("arcs"), height = ROW * count, at = (j) => ROW * (j + 0.5);
  node.setAttribute("viewBox", `0 0 68 ${height}`);
  node.setAttribute("preserveAspectRatio", "none");
  node.style.height = `${height}px`;
  node.replaceChildren();
  if (!weights) return;
  weights.forEach((w, j) => {
    if (w < 1e-3) return;
    const reach = Math.min(64, 12 + 7 * Math.abs(j - state.query));
    const d = j === state.query ? `M66,${at(j) - 5}c-18,0 -18,10 0,10` : `M66,${at(state.query)}C${66 - 1.3 * reach},${at(state.query)} ${66 - 1.3 * reach},${at(j)} 66,${at(j)}`;
    node.append(svg("path", { d, fill: "none", stroke: "var(--accent)", "stroke-width": 1 + 7 * w, opacity: 0.35 + 0.6 * w, "vector-effect": "non-scaling-stroke" }));
  });
}

$("tokens").addEventListener("keydown", (event) => {
  const move = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const n = layer().tokens.length;
  const next = move ? (state.query + move + n) % n : { Home: 0, End: n - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  set({ query: next });
  $("tokens").children[next].focus();
});
$("head").addEventListener("change", (event) => set({ head: Number(event.target.value) }));
view("model", buildTokens);
view("query head language theme", drawAttention);
