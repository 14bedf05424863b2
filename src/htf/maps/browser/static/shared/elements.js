/* Small helpers for the document. */

/** @returns {any} whatever kind of element it is */
export const byId = (id) => document.getElementById(id);

/* Properties that are neither text nor class become attributes. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "className" || key === "textContent") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function svgElement(name, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/* Gives the reader a file, and returns its name. */
export function save(content, type, name) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
  return name;
}

/* HTML names its labels with data-text and data-label; words.js has their texts. */
export function fillLabels(labels) {
  const textOf = (name) => {
    if (!(name in labels)) throw new Error(`words.js has no label ${name}`);
    return labels[name];
  };
  for (const place of document.querySelectorAll("[data-text]")) {
    place.textContent = textOf(place.getAttribute("data-text"));
  }
  for (const place of document.querySelectorAll("[data-label]")) {
    place.setAttribute("aria-label", textOf(place.getAttribute("data-label")));
  }
}
