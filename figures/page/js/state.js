// What is chosen, and who is told when it changes.
const state = {
  model: record.order[0], depth: 0, query: 0, head: 0, playing: false, edit: 1, mask: true,
  normToken: 0, shift: 0, variant: "softmax", beta: 1, sign: 1, time: 0, flowPlaying: false,
  language: "en", theme: "", size: 0,
};
const views = [];

// A view is drawn at once, and again whenever one of its keys changes.
function view(keys, draw) {
  views.push({ keys: keys.split(" "), draw });
}

function set(changes) {
  const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
  Object.assign(state, changes);
  for (const { keys, draw } of views) if (keys.some((key) => changed.includes(key))) draw();
}

const layer = () => layers[state.model];
const lastStep = () => layer().names.length;
const currentStep = () => Math.min(Math.ceil(state.depth - 1e-9), lastStep());

// Where the tokens stand at a depth: between two stops, with the share of the way; exact on the stops.
function between(depth) {
  const stops = Array.from(layer().stops.data);
  let k = stops.length - 2;
  while (k > 0 && stops[k] > depth) k--;
  const share = (depth - stops[k]) / (stops[k + 1] - stops[k]);
  return { k, share, from: stops[k], to: stops[k + 1], exact: share === 0 || share === 1 };
}
