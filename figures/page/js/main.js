// Controls of the whole page, play and keys; nothing moves before it is asked to.
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Move one number of the state from where it is to its end while a flag stands; from the start if it stands at the end.
function player(flag, key, last, perSecond, whole) {
  let before = null;
  const tick = (now) => {
    if (!state[flag]) return;
    const step = perSecond() * (now - before) / 1000;
    if (!whole() || step >= 1) {
      before = now;
      const next = Math.min(last(), whole() ? Math.floor(state[key]) + 1 : state[key] + step);
      set({ [key]: next, ...(next >= last() ? { [flag]: false } : {}) });
    }
    requestAnimationFrame(tick);
  };
  return () => {
    if (!state[flag]) return;
    if (state[key] >= last()) set({ [key]: 0 });
    before = performance.now();
    requestAnimationFrame(tick);
  };
}

const playDepth = player("playing", "depth", lastStep, () => lastStep() / 11, calm);
const playFlow = player("flowPlaying", "time", () => outputTimes.length - 1, () => 8, () => true);

function button(id, flag) {
  $(id).textContent = t(state[flag] ? "pause" : "play");
  $(id).setAttribute("aria-pressed", state[flag]);
}
view("playing language", () => button("play", "playing"));
view("flowPlaying language", () => button("flow-play", "flowPlaying"));
view("playing", playDepth);
view("flowPlaying", playFlow);
$("play").addEventListener("click", () => set({ playing: !state.playing }));
$("flow-play").addEventListener("click", () => set({ flowPlaying: !state.flowPlaying }));
$("depth").addEventListener("input", (event) => set({ depth: Number(event.target.value), playing: false }));

function moveStep(by) {
  const k = by > 0 ? Math.floor(state.depth + 1e-9) + 1 : Math.ceil(state.depth - 1e-9) - 1;
  set({ depth: Math.min(Math.max(k, 0), lastStep()), playing: false });
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select")) return;
  if (event.key === "n") moveStep(1);
  if (event.key === "p") moveStep(-1);
  if (event.key === " " && !event.target.matches("button, input, canvas")) {
    event.preventDefault();
    set({ playing: !state.playing });
  }
});

view("language model", () => {
  $("model").replaceChildren(...record.order.map((name) => el("option", { value: name }, t(`model.${name}`))));
  $("model").value = state.model;
});
view("language", () => {
  $("origin").textContent = t("origin", { quick: record.quick ? " --quick" : "", seed: record.seed, source: record.source });
});
$("model").addEventListener("change", (event) => {
  const next = layers[event.target.value];
  // What is chosen must exist in the new layer before anything of it is drawn.
  Object.assign(state, { depth: 0, head: 0, query: Math.min(state.query, next.tokens.length - 1), playing: false });
  set({ model: event.target.value });
  button("play", "playing");
});
$("language").addEventListener("click", () => set({ language: state.language === "en" ? "zh" : "en" }));
$("theme").addEventListener("click", () => {
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  set({ theme: dark ? "light" : "dark" });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { keys, draw } of views) if (keys.includes("theme")) draw();
});

// Pictures are drawn in the pixels they have.
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  set({ size: width });
});

state.query = Math.min(8, layer().tokens.length - 1);
for (const { draw } of views) draw();
