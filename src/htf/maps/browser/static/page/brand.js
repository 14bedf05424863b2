/* The operator's own title and logo, which the server puts into the head of the page (site.py). */

import { element } from "../shared/elements.js";

const markOf = (name) =>
  document.querySelector(`meta[name="htf-${name}"]`)?.getAttribute("content");

export function showBrand() {
  const heading = document.querySelector(".side-head h1");
  const title = markOf("title");
  if (title) {
    heading.textContent = title;
    document.title = title;
  }
  const logo = markOf("logo");
  if (logo) heading.before(element("img", { className: "logo", src: logo, alt: "" }));
}
