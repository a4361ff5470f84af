// The record, and its arrays: {shape, data} with data in row-major order.
const record = JSON.parse(document.getElementById("record").textContent);

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  if (!("base64" in value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, unpack(v)]));
  let data = null;  // read when it is first asked for: most arrays are never looked at
  return { shape: value.shape, get data() { return (data ??= numbers(value)); } };
}

function numbers({ base64, kind }) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = text.charCodeAt(k);
  return kind === "f4" ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

const layers = unpack(record.layers);
const flows = unpack(record.flows);

// The part of an array under its first indices: part(a, i, j) is a[i, j].
function part(array, ...indices) {
  let { shape, data } = array;
  for (const i of indices) {
    shape = shape.slice(1);
    const size = shape.reduce((a, b) => a * b, 1);
    data = data.subarray(i * size, (i + 1) * size);
  }
  return { shape, data };
}

const largest = (values) => values.reduce((a, v) => (Math.abs(v) > a && isFinite(v) ? Math.abs(v) : a), 0);

// Values of step k of a layer: the input for k = 0.
const stepOf = (layer, k, prefix = "step") => layer[`${prefix}_${String(k).padStart(2, "0")}`];

// Largest change between two equal shapes; entries that are both minus infinity have not changed.
function change(a, b, take = () => true) {
  let most = 0;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k] && take(k)) most = Math.max(most, Math.abs(a[k] - b[k]));
  return most;
}
