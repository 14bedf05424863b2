/* A list to choose from for each further axis of names, such as kinds of offences. */

import { element } from "../shared/elements.js";
import { words } from "../words.js";
import { state } from "./state.js";

/* A label has its level in front, because two levels may have the same label. */
const valueOf = (level, label) => `${level.name}:${label}`;

export function selectOf({ name, names: { levels } }, only, onChange) {
  const select = element("select", { "data-axis": name });
  select.append(element("option", { value: "", textContent: words.wholeRange }));
  for (const level of levels) {
    const options = level.labels.map((label) => (
      element("option", { value: valueOf(level, label), textContent: label })
    ));
    if (levels.length === 1) select.append(...options);
    else select.append(element("optgroup", { label: level.name }, ...options));
  }
  const asked = state.where[name];
  select.value = typeof asked === "string" ? asked : "";
  if (!select.value) delete state.where[name];
  select.addEventListener("change", () => {
    if (select.value) state.where[name] = select.value;
    else delete state.where[name];
    onChange();
  });
  return element("label", { className: "field named" }, `${name}${only}`, select);
}
