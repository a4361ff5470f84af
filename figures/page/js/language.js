// Texts in the chosen language, English where there is no other.
function t(key, values = {}) {
  const text = TEXTS[state.language][key] ?? TEXTS.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const stepName = (layer, k) => {
  if (k === 0) return t("steps.input");
  const name = layer.names[k - 1];
  return (TEXTS[state.language].names || {})[name] || name;
};

view("language", () => {
  document.documentElement.lang = state.language === "zh" ? "zh-Hans" : "en";
  document.title = t("title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  $("language").textContent = t("other");
  $("language").lang = state.language === "zh" ? "en" : "zh";
});
