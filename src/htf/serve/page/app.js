"use strict";
/* The page of `htf serve`. All that it shows comes from the API; its state is in the address. */
(async () => {
  const { element, theme } = Htf;
  const byId = (id) => document.getElementById(id);
  const state = { releases: [], first: null, second: null, mode: "side", where: {}, shape: null, outlines: false, drawing: null };
  const DEBOUNCE = 60, HOVER_DELAY = 120; // milliseconds
  const unit = "points per km²";

  // --- the API -----------------------------------------------------------------------------------------
  const keptToken = () => { try { return sessionStorage.getItem("htf-token"); } catch { return null; } };

  function askForToken(wasRefused) {
    const dialog = byId("key");
    byId("key-problem").hidden = !wasRefused;
    if (!dialog.open) dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
      try { sessionStorage.setItem("htf-token", byId("token").value); } catch { /* then it is asked for again */ }
      resolve();
    }, { once: true }));
  }
  let asking = null; // one dialog, however many requests wait for it

  async function request(path, { body, signal } = {}) {
    const token = keptToken();
    const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...(body && { "Content-Type": "application/json" }) };
    const reply = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
    if (reply.status === 401) {
      asking = asking || askForToken(token !== null).finally(() => { asking = null; });
      await asking;
      return request(path, { body, signal });
    }
    if (!reply.ok) {
      let detail = `the server says ${reply.status}`;
      try { detail = (await reply.json()).detail || detail; } catch { /* no JSON: the number has to do */ }
      throw new Error(typeof detail === "string" ? detail : JSON.stringify(detail));
    }
    return reply;
  }
  const ask = async (path, options) => (await request(path, options)).json();
  const pathOf = (id) => `/api/releases/${encodeURIComponent(id)}`;

  /* Ranges of the axes that this release has. */
  function whereOf(release) {
    return Object.fromEntries(Object.entries(state.where).filter(([name]) => release.axes.some((axis) => axis.name === name)));
  }
  function whereText(release) {
    return Object.entries(whereOf(release)).map(([name, [low, high]]) => `where=${encodeURIComponent(`${name}=${low}:${high}`)}`).join("&");
  }
  const polygonOf = (ring) => ({ type: "Polygon", coordinates: [[...ring, ring[0]]] });

  /* What a release counts in a shape, or, without one, in the whole map. */
  async function countShape(release, shape, signal) {
    const where = whereText(release);
    if (shape && (shape.kind === "polygon" || !Layers.degrees84(release))) {
      const body = { type: "Feature", properties: {}, geometry: polygonOf(shape.ring) };
      return (await ask(`${pathOf(release.id)}/polygons?${where}`, { body, signal })).answers[0];
    }
    const box = shape ? [`box=${Shapes.boundsOf(shape).join()}`] : [];
    return ask(`${pathOf(release.id)}/count?${[...box, ...(where ? [where] : [])].join("&")}`, { signal });
  }

  async function countBoxes(release, boxes, signal) {
    if (!Layers.degrees84(release)) {
      const features = boxes.map((box) => ({ type: "Feature", properties: {}, geometry: polygonOf(Shapes.box(...box).ring) }));
      const body = { type: "FeatureCollection", features };
      return (await ask(`${pathOf(release.id)}/polygons?${whereText(release)}`, { body, signal })).answers;
    }
    const found = await ask(`${pathOf(release.id)}/counts`, { body: { boxes, where: whereOf(release) }, signal });
    return found.count.map((count, i) => ({ count, std_error: found.std_error[i], low: found.low[i], high: found.high[i] }));
  }

  // --- what is chosen ------------------------------------------------------------------------------------
  const releaseOf = (id) => state.releases.find((release) => release.id === id) || null;
  const chosen = () => [releaseOf(state.first), releaseOf(state.second)].filter(Boolean);
  const isDifference = () => state.second !== null && state.mode === "difference";
  const isPlace = (release) => release.bounds84 !== null && release.bounds84 !== undefined;

  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const numbers = (text) => text.split(",").map(Number);
    const known = (id) => (releaseOf(id) ? id : null);
    state.first = known(asked.get("r")) || state.first || state.releases[0].id;
    state.second = known(asked.get("c"));
    state.mode = asked.get("m") === "difference" ? "difference" : "side";
    state.outlines = asked.get("o") === "1";
    state.where = {};
    for (const text of asked.getAll("w")) {
      const [, name, low, high] = /^(\w+)=(.+):(.+)$/.exec(text) || [];
      if (Number.isFinite(+low) && Number.isFinite(+high) && +low < +high) state.where[name] = [+low, +high];
    }
    state.shape = null;
    if (asked.has("b")) {
      const box = numbers(asked.get("b"));
      if (box.length === 4 && box.every(Number.isFinite)) state.shape = Shapes.box(...box);
    } else if (asked.has("p")) {
      const ring = asked.get("p").split(";").map(numbers);
      if (ring.length > 2 && ring.every((place) => place.length === 2 && place.every(Number.isFinite))) state.shape = { kind: "polygon", ring };
    }
    const view = asked.has("v") ? numbers(asked.get("v")) : [];
    return view.length === 3 && view.every(Number.isFinite) ? { center: [view[1], view[0]], zoom: view[2] } : null;
  }

  const rounded = (value) => +value.toFixed(6);
  function writeAddress() {
    const asked = [["r", state.first]];
    if (state.second) asked.push(["c", state.second], ["m", state.mode]);
    for (const [name, [low, high]] of Object.entries(state.where)) asked.push(["w", `${name}=${low}:${high}`]);
    if (state.shape && state.shape.kind === "box") asked.push(["b", Shapes.boundsOf(state.shape).map(rounded).join()]);
    if (state.shape && state.shape.kind === "polygon") asked.push(["p", state.shape.ring.map((place) => place.map(rounded).join()).join(";")]);
    if (state.outlines) asked.push(["o", "1"]);
    const { lng, lat } = maps[0].getCenter();
    asked.push(["v", [rounded(lat), rounded(lng), +maps[0].getZoom().toFixed(2)].join()]);
    const text = asked.map(([name, value]) => `${name}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3B/g, ";").replace(/%3A/g, ":").replace(/%3D/g, "=")}`);
    history.replaceState(null, "", `#${text.join("&")}`);
  }

  function complain(error) {
    if (error && error.name === "AbortError") return;
    const place = byId("problem");
    place.hidden = !error;
    place.textContent = error ? `${error.message || error}` : "";
  }
  function debounced(action, wait) {
    let timer = null;
    return (...given) => { clearTimeout(timer); timer = setTimeout(() => action(...given), wait); };
  }

  if (typeof maplibregl === "undefined") {
    complain("The server lacks the package maplibre, which draws this page: pip install \"htf-dp[map]\". The API works without.");
    return;
  }

  // --- the releases, and where to look first ------------------------------------------------------------------
  async function allReleases() {
    const found = [];
    for (let next = "/api/releases"; next;) {
      const told = await ask(next);
      found.push(...told.releases);
      next = told.next;
    }
    return found;
  }
  try { state.releases = await allReleases(); } catch (error) { complain(error); return; }
  if (!state.releases.length) { complain("The server has no releases."); return; }
  const view = readAddress();

  function boundsOfChosen() {
    const found = chosen().filter(isPlace).map((release) => release.bounds84);
    if (!found.length) return [[-1, -1], [1, 1]];
    const [west, south, east, north] = [0, 1, 2, 3].map((i) => Math[i < 2 ? "min" : "max"](...found.map((bounds) => bounds[i])));
    return [[west, south], [east, north]];
  }

  // --- the maps ----------------------------------------------------------------------------------------------
  const containers = [...document.querySelectorAll(".panel")];
  const maps = containers.map((container, number) => Htf.makeMap(container.querySelector(".map"), {
    bounds: boundsOfChosen(), label: `Map ${number + 1}. Arrow keys move it, plus and minus zoom; the count in the middle is read out.`,
    ...(view && { bounds: undefined, ...view }),
  }));
  const overlays = maps.map((map) => new Htf.Overlay(map));
  const layers = maps.map(() => new Htf.RectangleLayer("rectangles"));
  const fetchTile = (id, key, where, signal) => ask(`${pathOf(id)}/tiles/${key}.geojson${where ? `?${where}` : ""}`, { signal });
  const tiles = maps.map((map, number) => new Layers.Tiles(map, layers[number], fetchTile));
  const tooltips = maps.map((map) => new Htf.Tooltip(map));
  await Promise.all(maps.map((map) => (map.isStyleLoaded() ? null : map.once("load"))));
  maps.forEach((map, number) => map.addLayer(layers[number]));
  Htf.synchronise(maps);

  let limits = null, limitsKey = "", differences = null, differenceRequest = null;

  function showLegend() {
    const legend = byId("legend");
    legend.hidden = !limits;
    if (!limits) return;
    const sides = isDifference() ? chosen().map(({ name }) => name) : null;
    Htf.legend(legend, { limits, unit: sides ? `difference in ${unit}` : unit, sides });
  }

  async function loadDifference() {
    const [first, second] = chosen();
    const boxes = Layers.squares(maps[0], first, second);
    if (boxes === null) throw new Error("the two maps do not overlap: choose another to compare with");
    if (differenceRequest) differenceRequest.abort();
    const { signal } = differenceRequest = new AbortController();
    if (!boxes.length) { layers[0].set({ sheets: [] }); return; }
    const answers = await Promise.all([first, second].map((release) => countBoxes(release, boxes, signal)));
    if (signal.aborted) return;
    const made = Layers.differenceSheet(boxes, ...answers, limits);
    limits = made.limits;
    differences = made.sheet;
    differences.finder = new Htf.Finder(differences);
    layers[0].set({ sheets: [differences] });
  }

  async function loadTiles() {
    const shown = chosen();
    for (const deeper of Layers.LEVELS) {
      const done = await Promise.all(shown.map((release, number) => isPlace(release) && tiles[number].load(release, whereText(release), deeper)));
      if (!done.some(Boolean)) return;
      limits = Layers.limitsOf(shown.flatMap((_, number) => tiles[number].sheets), limits);
      shown.forEach((_, number) => tiles[number].show(limits));
      showLegend();
    }
  }

  async function loadMap() {
    const key = JSON.stringify([state.first, state.second, state.mode, state.where]);
    if (key !== limitsKey) { limits = null; limitsKey = key; }
    try {
      await (isDifference() ? loadDifference() : loadTiles());
      byId("map-note").textContent = isDifference()
        ? "Strong colours: more than 1.96 standard errors of the difference. By chance alone about one square in twenty would stand out." : "";
      showLegend();
      if (pointed) look(pointed);
    } catch (error) {
      if (error.name === "AbortError") return;
      complain(error);
    }
    await Promise.all(maps.filter((_, number) => !containers[number].hidden).map((map) => new Promise((resolve) => { map.once("idle", resolve); map.triggerRepaint(); })));
    if (key === limitsKey) document.documentElement.dataset.ready = "yes";
  }

  const outlinesOf = new Map();
  async function showOutlines() {
    chosen().slice(0, isDifference() ? 1 : 2).forEach(async (release, number) => {
      if (!state.outlines || !isPlace(release)) { layers[number].set({ showsOutlines: false }); return; }
      const key = `${pathOf(release.id)}/leaves?${whereText(release)}`;
      try {
        if (!outlinesOf.has(key)) outlinesOf.set(key, await Htf.readOutlines(await ask(key)));
        layers[number].set({ outlines: [outlinesOf.get(key)], showsOutlines: state.outlines });
      } catch (error) { complain(error); }
    });
  }

  // --- what is at a place ---------------------------------------------------------------------------------------
  let hoverRequest = null;
  function describe(answer, density, isClear) {
    const lines = [[Htf.countText(answer.count), "big"]];
    lines.push(answer.low === undefined ? ["…", "quiet"] : `95 %: ${Htf.intervalText(answer)}`);
    lines.push(isClear ? `${Htf.shortNumber(density)} ${unit}` : ["no more than noise", "quiet"]);
    return lines;
  }
  function describeDifference(found) {
    const [first, second] = chosen();
    return [[Htf.signedText(found.count), "big"], `95 %: ${Htf.signedText(found.low)} to ${Htf.signedText(found.high)}`,
      `${first.name}: ${Htf.countText(found.first.count)}`, `${second.name}: ${Htf.countText(found.second.count)}`,
      found.isBeyond ? ["more than noise", "beyond"] : ["no more than noise", "quiet"]];
  }
  const askForInterval = debounced(async (number, release, properties, show) => {
    if (hoverRequest) hoverRequest.abort();
    hoverRequest = new AbortController();
    try {
      const text = [`box=${properties.box.join()}`, whereText(release)].filter(Boolean).join("&");
      Object.assign(properties, await ask(`${pathOf(release.id)}/count?${text}`, { signal: hoverRequest.signal }));
      show();
    } catch { /* the next move asks again */ }
  }, HOVER_DELAY);

  let pointed = null;
  function look(lngLat) {
    pointed = lngLat;
    maps.forEach((map, number) => {
      if (containers[number].hidden) return;
      const { lng, lat } = lngLat, { x, y } = map.project(lngLat);
      const mark = (ring) => { overlays[number].highlight = ring; overlays[number].draw(); };
      if (isDifference()) {
        const at = differences ? differences.finder.at(Htf.squareX(lng), Htf.squareY(lat)) : -1;
        mark(at < 0 ? null : Htf.ringOf(differences, at));
        if (at < 0) tooltips[number].hide(); else tooltips[number].show(x, y, describeDifference(differences.found[at]));
        return;
      }
      const release = chosen()[number], found = tiles[number].at(lng, lat);
      mark(found && found.ring);
      if (!found) { tooltips[number].hide(); return; }
      const { properties } = found;
      const show = () => { if (pointed === lngLat) tooltips[number].show(x, y, describe(properties, properties.density, properties.clear)); };
      show();
      if (properties.low === undefined) askForInterval(number, release, properties, show);
    });
  }
  function leave() {
    pointed = null;
    overlays.forEach((overlay) => { overlay.highlight = null; overlay.draw(); });
    tooltips.forEach((tooltip) => tooltip.hide());
  }
  maps.forEach((map) => Htf.onPlace(map, (_, lngLat) => look(lngLat), leave));

  // --- the answer --------------------------------------------------------------------------------------------------
  let answerRequest = null, latest = null;
  function rowOf(name, answer) {
    const cut = answer.partial > 0.005 ? [element("div", { className: "quiet small",
      textContent: `${Math.round(100 * answer.partial)} % of it rests on boxes that the edge cuts` })] : [];
    return element("div", { className: "row" }, element("div", { className: "row-name", textContent: name }),
      element("div", { className: "row-count", textContent: Htf.countText(answer.count) }),
      element("div", { className: "row-interval", textContent: `95 %: ${Htf.intervalText(answer)}` }), ...cut);
  }
  function showAnswers(answers) {
    const place = byId("answer"), shown = chosen();
    const rows = answers.map((answer, number) => rowOf(shown.length > 1 ? shown[number].name : placeName(), answer));
    if (answers.length > 1) {
      const found = Htf.difference(...answers);
      rows.push(element("div", { className: "row difference" }, element("div", { className: "row-name", textContent: "Difference" }),
        element("div", { className: "row-count", textContent: Htf.signedText(found.count) }),
        element("div", { className: "row-interval", textContent: `95 %: ${Htf.signedText(found.low)} to ${Htf.signedText(found.high)}` }),
        element("div", { className: found.isBeyond ? "beyond" : "quiet", textContent: found.isBeyond ? "more than noise" : "no more than noise" })));
    }
    place.replaceChildren(...rows);
  }
  const placeName = () => (state.shape ? `In your ${state.shape.kind}` : "In the whole map");

  const answer = debounced(async () => {
    if (answerRequest) answerRequest.abort();
    const { signal } = answerRequest = new AbortController();
    const shape = state.shape, turn = turns;
    try {
      const answers = await Promise.all(chosen().map((release) => countShape(release, shape, signal)));
      latest = { shape, answers };
      showAnswers(answers);
      complain(null);
    } catch (error) {
      if (error.name === "AbortError") return;
      latest = null;
      byId("answer").replaceChildren(element("span", { className: "quiet", textContent: "no answer" }));
      complain(error);
    }
    if (turn === turns) byId("answer").setAttribute("aria-busy", "false"); // else the shape has moved on
  }, DEBOUNCE);
  let turns = 0;
  function askAgain() {
    turns += 1;
    byId("answer").setAttribute("aria-busy", "true");
    answer();
  }

  // --- shapes --------------------------------------------------------------------------------------------------------
  const saveAddress = debounced(writeAddress, 150);
  const shared = {
    get: () => state.shape,
    drawing: () => state.drawing,
    set(shape, isDone) {
      state.shape = shape;
      editors.forEach((editor) => editor.draw());
      askAgain();
      if (isDone) { fillForm(); saveAddress(); }
    },
    stop: () => draw(null),
    look,
  };
  const editors = maps.map((map) => new Shapes.Editor(map, shared));
  const HINTS = {
    box: "Drag across the map. Escape gives up.",
    polygon: "Click corners; click the first one again, or press Enter, to close it. Escape gives up.",
  };
  function draw(kind) {
    state.drawing = kind;
    for (const name of ["box", "polygon"]) byId(`draw-${name}`).setAttribute("aria-pressed", String(kind === name));
    byId("hint").textContent = kind ? HINTS[kind] : state.shape ? "Drag it or its corners, or move them with the arrow keys." : "Point at the map, or draw.";
    byId("hint").classList.toggle("resting", !kind);
    editors.forEach((editor) => { editor.cancel(); editor.draw(); });
    leave();
  }
  for (const kind of ["box", "polygon"]) {
    byId(`draw-${kind}`).addEventListener("click", (event) => {
      if (event.detail === 0) { draw(null); editors[0].place(kind); draw(null); return; } // by a key
      draw(state.drawing === kind ? null : kind);
      if (state.drawing && window.matchMedia("(max-width: 760px)").matches) fold(true);
    });
  }
  byId("clear").addEventListener("click", () => { state.shape = null; draw(null); shared.set(null, true); });
  document.addEventListener("keydown", (event) => {
    if (!state.drawing) return;
    if (event.key === "Escape") draw(null);
    if (event.key === "Enter" && state.drawing === "polygon") editors.forEach((editor) => editor.points.length && editor.finish());
  });

  const form = byId("typed");
  function fillForm() {
    const bounds = state.shape ? Shapes.boundsOf(state.shape) : ["", "", "", ""];
    ["west", "south", "east", "north"].forEach((name, i) => { form.elements[name].value = bounds[i] === "" ? "" : rounded(bounds[i]); });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = ["west", "south", "east", "north"].map((name) => parseFloat(form.elements[name].value.replace(",", ".")));
    const [west, south, east, north] = values;
    if (!values.every(Number.isFinite) || west >= east || south >= north) {
      complain("A box is four numbers in degrees, west less than east and south less than north.");
      return;
    }
    draw(null);
    shared.set(Shapes.box(...values), true);
    const bounds = maps[0].getBounds();
    if (!bounds.contains([west, south]) || !bounds.contains([east, north])) maps[0].fitBounds([[west, south], [east, north]], { padding: 80, maxZoom: 16, animate: false });
  });

  // --- the side: releases, ranges, words -------------------------------------------------------------------------------
  function fillChoices() {
    const option = ({ id, name, epsilon, private: isPrivate }) =>
      element("option", { value: id, textContent: `${name} (ε = ${epsilon}${isPrivate ? "" : ", NOT PRIVATE"})` });
    byId("first").replaceChildren(...state.releases.map(option));
    byId("second").replaceChildren(element("option", { value: "", textContent: "nothing" }),
      ...state.releases.filter(({ id }) => id !== state.first).map(option));
    byId("first").value = state.first;
    byId("second").value = state.second || "";
    byId("second").closest("label").hidden = state.releases.length < 2;
    byId("modes").hidden = !state.second;
    for (const button of byId("modes").children) button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode));
  }

  const plain = (value) => String(+value.toFixed(6));
  function rangeOf(axis, releases) {
    const step = (axis.high - axis.low) / axis.cells;
    const [low, high] = state.where[axis.name] || [axis.low, axis.high];
    const slider = (name, value) => element("input", { type: "range", min: 0, max: axis.cells, step: 1,
      value: Math.round((value - axis.low) / step), "aria-label": `${axis.name}, ${name} end`, "data-end": name });
    const inputs = [slider("low", low), slider("high", high)];
    const words = element("output", {});
    const only = releases.length < chosen().length ? ` (only of ${releases[0].name})` : "";
    const say = () => {
      const range = state.where[axis.name];
      words.textContent = (range ? `${plain(range[0])} to ${plain(range[1])}` : "all") + only;
      const ends = inputs.map((input) => (100 * input.value) / axis.cells);
      made.style.setProperty("--from", `${ends[0]}%`);
      made.style.setProperty("--to", `${ends[1]}%`);
      inputs.forEach((input) => input.setAttribute("aria-valuetext", plain(axis.low + input.value * step)));
    };
    const made = element("fieldset", { className: "range" }, element("legend", {}, `${axis.name}: `, words),
      element("div", { className: "range-track" }, ...inputs));
    inputs.forEach((input, number) => input.addEventListener("input", () => {
      let [from, to] = inputs.map((one) => +one.value);
      if (from >= to) { if (number === 0) from = to - 1; else to = from + 1; }
      if (from < 0) [from, to] = [0, 1];
      if (to > axis.cells) [from, to] = [axis.cells - 1, axis.cells];
      inputs[0].value = from;
      inputs[1].value = to;
      const at = (cell) => (cell === axis.cells ? axis.high : rounded(axis.low + cell * step));
      if (from === 0 && to === axis.cells) delete state.where[axis.name];
      else state.where[axis.name] = [at(from), at(to)];
      say();
      askAgain();
      changeMap();
    }));
    say();
    return made;
  }
  function fillRanges() {
    const axes = new Map();
    for (const release of chosen()) {
      for (const axis of release.axes.slice(2)) axes.set(axis.name, { axis, releases: [...(axes.get(axis.name)?.releases || []), release] });
    }
    for (const name of Object.keys(state.where)) if (!axes.has(name)) delete state.where[name];
    byId("ranges").replaceChildren(...[...axes.values()].map(({ axis, releases }) => rangeOf(axis, releases)));
  }

  async function fillWords() {
    const release = releaseOf(state.first);
    byId("claim-line").textContent = release.private ? `Differentially private: ε = ${release.epsilon} for each ${release.unit}. What this means`
      : "NOT PRIVATE – seeded or scripted noise. What this means";
    byId("claim").classList.toggle("not-private", !release.private);
    byId("save-release").href = `${pathOf(release.id)}/download`;
    const told = await ask(pathOf(release.id));
    if (state.first !== release.id) return;
    byId("statement").textContent = told.statement;
    const facts = { mechanism: told.mechanism, boxes: Htf.countText(told.leaves), measurements: Htf.countText(told.measurements), noise: told.noise,
      "reference system": release.crs || "none", axes: release.axes.map(({ name, low, high, cells }) => `${name} ${plain(low)} to ${plain(high)} (${cells} cells)`).join("; ") };
    byId("facts").replaceChildren(element("dl", {}, ...Object.entries(facts).flatMap(([name, value]) =>
      [element("dt", { textContent: name }), element("dd", { textContent: String(value) })])));
    const lines = told.ledger || [];
    const names = lines.length ? Object.keys(lines[0]) : [];
    const cells = (kind, values) => element("tr", {}, ...values.map((value) => element(kind, { textContent: typeof value === "object" ? JSON.stringify(value) : String(value) })));
    byId("ledger").tHead.replaceChildren(cells("th", names.map((name) => name.replaceAll("_", " "))));
    byId("ledger").tBodies[0].replaceChildren(...lines.map((line) => cells("td", names.map((name) => line[name]))));
  }

  function arrange() {
    byId("badge").hidden = chosen().every((release) => release.private);
    const shown = chosen(), isSide = shown.length > 1 && state.mode === "side";
    containers[1].hidden = !isSide;
    containers.forEach((container, number) => {
      const heading = container.querySelector("h2");
      heading.hidden = shown.length < 2;
      heading.textContent = isSide ? (shown[number] || {}).name || "" : shown.map(({ name }) => name).join(" less ");
    });
    layers[0].diverging = isDifference();
    if (!isSide) tiles[1].clear();
    if (isDifference()) tiles[0].clear(); else differences = null;
    const nowhere = shown.filter((release) => !isPlace(release));
    byId("nowhere").hidden = !nowhere.length;
    byId("nowhere").textContent = nowhere.length ? `${nowhere.map(({ name }) => name).join(" and ")} has no reference system that says where on earth it lies: there is no map of it. The answer is of the whole of it.` : "";
    overlays.forEach((overlay, number) => {
      const framed = isDifference() ? shown : [shown[number] || shown[0]];
      overlay.frames = framed.filter(isPlace).map(({ bounds84: [west, south, east, north] }) =>
        [[west, south], [east, south], [east, north], [west, north]].map(([x, y]) => [Htf.squareX(x), Htf.squareY(y)]));
    });
    maps.forEach((map) => map.resize());
    maps[1].jumpTo({ center: maps[0].getCenter(), zoom: maps[0].getZoom() });
    overlays.forEach((overlay) => overlay.draw());
    editors.forEach((editor) => editor.draw());
  }

  const loadSoon = debounced(() => { loadMap(); showOutlines(); saveAddress(); }, 80);
  function changeMap() {
    document.documentElement.dataset.ready = "no";
    loadSoon();
  }
  function refresh() {
    fillChoices();
    fillRanges();
    arrange();
    byId("outlines").checked = state.outlines;
    fillForm();
    draw(null);
    askAgain();
    changeMap();
    fillWords().catch(complain);
  }
  byId("first").addEventListener("change", (event) => {
    const before = releaseOf(state.first);
    state.first = event.target.value;
    if (state.second === state.first) state.second = null;
    const now = releaseOf(state.first);
    if (isPlace(now) && String(before.bounds84) !== String(now.bounds84)) maps[0].fitBounds(boundsOfChosen(), { padding: 24, animate: false });
    refresh();
  });
  byId("second").addEventListener("change", (event) => { state.second = event.target.value || null; refresh(); });
  byId("modes").addEventListener("click", ({ target }) => { if (target.dataset.mode) { state.mode = target.dataset.mode; refresh(); } });
  byId("outlines").addEventListener("change", (event) => { state.outlines = event.target.checked; showOutlines(); saveAddress(); });
  maps[0].on("moveend", changeMap);
  window.addEventListener("hashchange", () => { const moved = readAddress(); if (moved) maps[0].jumpTo(moved); refresh(); });

  // --- saving, sharing, looks ---------------------------------------------------------------------------------------------
  function say(text) { byId("done").textContent = text; }
  function save(blob, name) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  byId("share").addEventListener("click", async () => {
    writeAddress();
    try { await navigator.clipboard.writeText(location.href); say("Copied. The address has the view, the shape and the ranges."); }
    catch { say(`Copy it from the address bar: ${location.href}`); }
  });
  byId("save-answer").addEventListener("click", () => {
    if (!latest) { say("There is no answer to save."); return; }
    const shown = chosen();
    const ring = latest.shape ? latest.shape.ring : Shapes.box(...(shown[0].bounds84 || shown[0].bounds)).ring;
    const features = latest.answers.map((found, number) => ({ type: "Feature", geometry: polygonOf(ring), properties: {
      ...found, release: shown[number].name, epsilon: shown[number].epsilon, unit: shown[number].unit, private: shown[number].private, where: whereOf(shown[number]) } }));
    const text = JSON.stringify({ type: "FeatureCollection", features, statement: byId("statement").textContent }, null, 1);
    save(new Blob([text], { type: "application/geo+json" }), "answer.geojson");
    say("Saved answer.geojson.");
  });
  byId("save-release").addEventListener("click", async (event) => {
    if (!keptToken()) return; // a link is enough
    event.preventDefault();
    try { save(await (await request(event.target.href)).blob(), `${releaseOf(state.first).name}.parquet`); } catch (error) { complain(error); }
  });
  function fold(isFolded) {
    byId("side").classList.toggle("folded", isFolded);
    byId("fold").setAttribute("aria-expanded", String(!isFolded));
    byId("fold").textContent = isFolded ? "More" : "Less";
  }
  byId("fold").addEventListener("click", () => fold(!byId("side").classList.contains("folded")));
  const themed = () => { byId("theme").textContent = theme.name() === "dark" ? "Light" : "Dark"; showLegend(); };
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(themed);
  themed();
  if (window.matchMedia("(max-width: 760px)").matches) fold(true);
  arrange();
  if (!view) maps[0].fitBounds(boundsOfChosen(), { padding: 24, animate: false });
  window.htf = { maps, state }; // for tests, and for the curious
  refresh();
})();
