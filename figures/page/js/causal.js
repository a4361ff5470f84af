// Another last word in the small layer: what changes in which token at which step, from two recorded runs.
const toy = layers.toy;

// Largest change of token i at step k under edit e; scores before the mask count where the mask lets them be seen.
function tokenChange(k, e, i) {
  const before = stepOf(toy, k), after = part(stepOf(toy, k, "edited"), e), n = toy.tokens.length;
  const [heads, rows, p] = before.shape.length === 3 ? before.shape : [1, ...before.shape];
  const hidden = k === 12 || k === 13 ? (j) => j <= i : () => true;
  let most = 0;
  for (let h = 0; h < heads; h++) {
    const start = (h * rows + i) * p;
    most = Math.max(most, change(before.data.subarray(start, start + p), after.data.subarray(start, start + p), p === n ? hidden : undefined));
  }
  return most;
}

function openChange(e, i) {
  return change(part(toy.open, 0, i).data, part(toy.open, e + 1, i).data);
}

function changes() {
  const n = toy.tokens.length, e = state.edit - 1;
  if (!state.mask) return [[t("causal.output"), Array.from({ length: n }, (_, i) => (e < 0 ? 0 : openChange(e, i)))]];
  return Array.from({ length: toy.names.length + 1 }, (_, k) =>
    [String(k), Array.from({ length: n }, (_, i) => (e < 0 ? 0 : tokenChange(k, e, i)))]);
}

function drawCausal() {
  const n = toy.tokens.length, last = n - 1, columns = changes(), word = toy.edit_words[state.edit - 1];
  const earlier = Math.max(...columns.flatMap(([, values]) => values.slice(0, last)));
  const end = columns[columns.length - 1][1][last], verdict = $("causal-verdict");
  verdict.innerHTML = state.edit === 0 ? t("causal.same.verdict")
    : state.mask && earlier === 0 ? t("causal.zero", { last: words(end) }) : t("causal.open", { most: words(earlier) });
  Object.assign(verdict.dataset, { earlier, last: end });
  $("sentence").replaceChildren(toy.tokens.slice(0, last).join(" ") + " ",
    ...(state.edit ? [el("del", {}, toy.tokens[last]), " ", el("ins", {}, word)] : [toy.tokens[last]]));
  const cell = 30, tall = 22, left = 84, top = 22, most = Math.max(...columns.flatMap(([, v]) => v)) || 1;
  const wide = state.mask ? cell : 150, node = $("causal"), full = left + cell * (toy.names.length + 1) + 6;
  node.setAttribute("viewBox", `0 0 ${full} ${top + tall * n + 4}`);
  node.setAttribute("aria-label", t("causal.label"));
  node.replaceChildren(...toy.tokens.map((name, i) => svg("text", { x: left - 8, y: top + tall * (i + 0.7), "text-anchor": "end" },
    i === last && state.edit ? word : name)));
  columns.forEach(([label, values], c) => {
    const x = left + wide * c;
    node.append(svg("text", { x: x + wide / 2, y: top - 7, "text-anchor": "middle", class: "quiet" }, label));
    values.forEach((value, i) => {
      const share = value === 0 ? 0 : 0.25 + 0.75 * Math.sqrt(value / most);
      const fill = css(mix(hex(color("--zero")), hex("#D55E00"), share));
      const y = top + tall * i;
      node.append(svg("rect", { x, y, width: wide - 1.5, height: tall - 1.5, fill, "data-change": value, "data-token": i, "data-step": label },
        svg("title", {}, t("causal.cell", { k: label, word: toy.tokens[i], value: words(value) }))));
      const shown = value === 0 ? "0" : state.mask ? "●" : words(value, 3);
      node.append(svg("text", { x: x + wide / 2 - 1, y: y + tall * 0.68, "text-anchor": "middle", "pointer-events": "none",
        class: value === 0 ? "quiet" : "", style: "font-size:11px" }, shown));
    });
  });
}

function buildCausal() {
  const last = toy.tokens[toy.tokens.length - 1];
  $("edit").replaceChildren(el("option", { value: 0 }, t("causal.same", { word: last })),
    ...toy.edit_words.map((word, e) => el("option", { value: e + 1 }, word)));
  $("edit").value = state.edit;
  drawCausal();
}

$("edit").addEventListener("change", (event) => set({ edit: Number(event.target.value) }));
$("mask").addEventListener("change", (event) => set({ mask: event.target.checked }));
view("language", buildCausal);
view("edit mask theme", drawCausal);
