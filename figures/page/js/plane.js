// Tokens in their principal plane: fixed axes, the path through the stops, the place at the chosen depth.
let plane = null;

function place(token, depth = state.depth) {
  const { k, share } = between(depth);
  const a = part(layer().places, k, token).data, b = part(layer().places, k + 1, token).data;
  return [0, 1].map((i) => (1 - share) * a[i] + share * b[i]);
}

// Offsets of the labels that cover each other least, over all stops; they do not jump while tokens move.
function labelOffsets(at, tokens, stops) {
  const choices = [[8, 4, "start"], [-8, 4, "end"], [0, -10, "middle"], [0, 19, "middle"], [8, -7, "start"], [-8, 15, "end"], [8, 15, "start"], [-8, -7, "end"], [0, -23, "middle"], [0, 32, "middle"]];
  const boxes = [];
  const cost = (box) => boxes.reduce((sum, b) =>
    sum + (b.stop === box.stop && Math.abs(b.x - box.x) < (b.w + box.w) / 2 && Math.abs(b.y - box.y) < 15), 0);
  return tokens.map((word, i) => {
    const w = 7.2 * word.length + 2;
    const options = choices.map(([dx, dy, anchor]) => {
      const made = stops.map((_, stop) => {
        const [x, y] = at(i, stop);
        const centre = x + dx + (anchor === "start" ? w / 2 : anchor === "end" ? -w / 2 : 0);
        return { stop, x: centre, y: y + dy - 4, w };
      });
      const others = tokens.reduce((sum, _, j) => sum + made.filter((box) => {
        const [x, y] = at(j, box.stop);
        return j !== i && Math.abs(x - box.x) < box.w / 2 + 5 && Math.abs(y - box.y) < 11;
      }).length, 0);
      return { dx, dy, anchor, made, cost: made.reduce((sum, box) => sum + cost(box), 0) + 0.6 * others };
    });
    const best = options.reduce((a, b) => (b.cost < a.cost ? b : a));
    boxes.push(...best.made);
    return best;
  });
}

function buildPlane() {
  const { places, tokens } = layer(), [m, n] = places.shape;
  const side = (i) => Array.from(places.data).filter((_, k) => k % 2 === i);
  const range = (v) => [Math.min(...v), Math.max(...v)].map((e, k, all) => e + (k ? 0.06 : -0.06) * (all[1] - all[0]));
  const node = $("plane");
  const axes = frame(node, {
    ...fit(node, 0.78), xs: range(side(0)), ys: range(side(1)), xlabel: t("first"), ylabel: t("second"), left: 52,
  });
  const at = (i, stop) => { const p = part(places, stop, i).data; return [axes.x(p[0]), axes.y(p[1])]; };
  const stops = Array.from({ length: m }, (_, k) => k);
  const offsets = labelOffsets(at, tokens, stops);
  const points = tokens.map((word, i) => {
    const path = stops.map((stop) => at(i, stop).join(",")).join(" ");
    node.append(svg("polyline", { points: path, fill: "none", stroke: "var(--softmax)", opacity: 0.35, "stroke-width": 1.5 }));
    const [x, y] = at(i, 0);
    node.append(svg("circle", { cx: x, cy: y, r: 3, fill: "var(--paper)", stroke: "var(--softmax)" }));
    return i;
  }).map((i) => {
    const dot = svg("circle", { r: 5.5, fill: "var(--softmax)", class: "dot", cursor: "pointer" });
    const name = svg("text", { "text-anchor": offsets[i].anchor, cursor: "pointer", style: "paint-order:stroke", stroke: "var(--paper)", "stroke-width": 3 }, tokens[i]);
    for (const part of [dot, name]) part.addEventListener("click", () => set({ query: i }));
    node.append(dot, name);
    return { dot, name };
  });
  plane = { axes, points, offsets, n };
  drawPlane();
}

function drawPlane() {
  const { axes, points, offsets } = plane;
  points.forEach(({ dot, name }, i) => {
    const [a, b] = place(i), x = axes.x(a), y = axes.y(b), chosen = i === state.query;
    Object.assign(dot.dataset, { x: a, y: b });
    for (const [key, value] of Object.entries({ cx: x, cy: y, r: chosen ? 8 : 5.5,
      fill: chosen ? "var(--warm)" : "var(--softmax)", stroke: chosen ? "var(--ink)" : "none", "stroke-width": 2 })) dot.setAttribute(key, value);
    name.setAttribute("x", x + offsets[i].dx * (chosen ? 1.4 : 1));
    name.setAttribute("y", y + offsets[i].dy);
    name.setAttribute("font-weight", chosen ? 700 : 400);
  });
  const { exact, share, from, to } = between(state.depth), k = currentStep();
  const where = exact ? t("exact", { k }) : t("between", { k, share: (100 * share).toFixed(0), from: stateName(from), to: stateName(to) });
  const badge = $("depth-badge");
  badge.textContent = where;
  badge.className = `badge ${exact ? "exact" : "between"}`;
  $("depth").setAttribute("aria-valuetext", where);
  $("plane").setAttribute("aria-label", t("plane.label", { depth: state.depth.toFixed(2), where }));
}

// The letter that the formula of a step gives its result.
const stateName = (k) => (k === 0 ? "x" : /^after/.test(layer().names[k - 1]) ? `x${k}` : layer().formulas[k - 1].split(" ")[0]);

view("model language theme size", () => {
  const [a, b] = Array.from(layer().plane_share.data, (v) => (100 * v).toFixed(0));
  $("plane-caption").textContent = t("plane.caption", { a, b });
  $("model-note").textContent = t(`note.${state.model}`);
  $("depth").max = lastStep();
  buildPlane();
});
view("depth query", drawPlane);
view("depth model", () => { $("depth").value = state.depth; });
