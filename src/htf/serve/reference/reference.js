/* The colours of the system: light or dark. */

const query = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => {
  document.querySelector("rapi-doc").setAttribute("theme", query.matches ? "dark" : "light");
};
query.addEventListener("change", setTheme);
setTheme();
