/* Requests go to where this page is, behind whatever proxy. */
const reference = document.querySelector("rapi-doc");
reference.setAttribute("server-url", new URL(".", location.href).href.replace(/\/$/, ""));

/* The colours of the system: light or dark. */
const query = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => {
  reference.setAttribute("theme", query.matches ? "dark" : "light");
};
query.addEventListener("change", setTheme);
setTheme();
