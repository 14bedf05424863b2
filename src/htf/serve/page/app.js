"use strict";
/* The page of `htf serve`. All that it shows comes from the API; its state is in the address. */
(async () => {
  const { element, theme } = Htf;
  const byId = (id) => document.getElementById(id);
  const state = { releases: [], first: null, second: null, mode: "side", where: {}, shape: null, outlines: false, drawing: null };
  const HOVER_DELAY = 120, RETRY_DELAY = 3000; // milliseconds
  const unit = "points per km²";
  const isNarrow = () => window.matchMedia("(max-width: 760px)").matches;

  // --- the API -----------------------------------------------------------------------------------------
  const keptToken = () => { try { return sessionStorage.getItem("htf-token"); } catch { return null; } };

  function askForToken(wasRefused) {
    const dialog = byId("key");
    byId("key-problem").hidden = !wasRefused;
    byId("token").value = "";
    if (!dialog.open) dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
      try { sessionStorage.setItem("htf-token", byId("token").value); } catch { /* then it is asked for again */ }
      resolve();
    }, { once: true }));
  }
  let asking = null; // one dialog, however many requests wait for it
  class Away extends Error { // worth asking again
    constructor(message, wait = RETRY_DELAY) { super(message); this.wait = wait; }
  }
  const isAway = ({ status, headers }) => status === 502 || status === 504 || headers.has("Retry-After"); // of a proxy that cannot reach it, or busy

  async function request(path, { body, signal } = {}) {
    const token = keptToken();
    const headers = { ...(token && { Authorization: `Bearer ${token}` }), ...(body && { "Content-Type": "application/json" }) };
    const reply = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal }).catch((error) => {
      throw error.name === "AbortError" ? error : new Away("The server does not answer. This page asks again every few seconds.");
    });
    if (reply.status === 401) {
      asking = asking || askForToken(token !== null).finally(() => { asking = null; });
      await asking;
      return request(path, { body, signal });
    }
    if (!reply.ok) {
      let detail = `the server says ${reply.status}`;
      try { detail = (await reply.json()).detail || detail; } catch { /* no JSON: the number has to do */ }
      if (isAway(reply)) throw new Away(`${detail}. This page asks again in a few seconds.`, Math.max(RETRY_DELAY, 1000 * reply.headers.get("Retry-After")));
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
    if (shape && (shape.kind === "polygon" || !(Layers.degrees84(release) || !isPlace(release)))) {
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
  const edgesOf = (release) => release.bounds84 || release.bounds;
  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  /* Two maps are looked at together where both are: elsewhere there would be nothing to see of the other. */
  function isComparable(first, second) {
    return first.id !== second.id && isPlace(first) === isPlace(second) && Boolean(edgesOf(first) && edgesOf(second)) && overlap(edgesOf(first), edgesOf(second));
  }
  /* What no longer fits the release that is shown: one to compare with, and a shape on another map. */
  function dropStrays() {
    const first = releaseOf(state.first), second = releaseOf(state.second);
    if (second && !isComparable(first, second)) state.second = null;
    if (state.shape && !(edgesOf(first) && overlap(Shapes.boundsOf(state.shape), edgesOf(first)))) state.shape = null;
  }

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
      if (box.length === 4 && box.every(Number.isFinite) && box[0] < box[2] && box[1] < box[3]) state.shape = Shapes.box(...box);
    } else if (asked.has("p")) {
      const ring = asked.get("p").split(";").map(numbers);
      if (ring.length > 2 && ring.every((place) => place.length === 2 && place.every(Number.isFinite))) state.shape = { kind: "polygon", ring };
    }
    const view = asked.has("v") ? numbers(asked.get("v")) : [];
    if (state.shape && isPlace(releaseOf(state.first)) && !state.shape.ring.every(isOnEarth)) state.shape = null;
    return view.length === 3 && view.every(Number.isFinite) && isOnEarth([view[1], view[0]]) ? { center: [view[1], view[0]], zoom: view[2] } : null;
  }

  const isOnEarth = ([longitude, latitude]) => Math.abs(longitude) <= 360 && Math.abs(latitude) <= 90;
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
    place.textContent = error ? sentence(`${error.message || error}`) : "";
    if (error instanceof Away) waitForServer(error.wait);
  }
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const pause = (wait) => new Promise((resolve) => { setTimeout(resolve, wait); });
  let waiting = false;
  /* Until it answers again; then with the releases that it has by then. */
  async function waitForServer(wait) {
    if (waiting || !state.releases.length) return;
    waiting = true;
    for (let found = null; !found;) {
      await pause(wait);
      found = await allReleases().catch(() => null);
      if (found && JSON.stringify(found) !== JSON.stringify(state.releases)) location.reload(); // the address has the view
    }
    waiting = false;
    refresh();
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
  for (;;) {
    try { state.releases = await allReleases(); complain(null); break; } catch (error) {
      complain(error);
      if (!(error instanceof Away)) return;
      await pause(RETRY_DELAY);
    }
  }
  if (!state.releases.length) { complain("The server has no releases."); return; }
  const view = readAddress();
  dropStrays();

  function boundsOfChosen() {
    const found = chosen().filter(isPlace).map((release) => release.bounds84);
    if (!found.length) return [[-1, -1], [1, 1]];
    const [west, south, east, north] = [0, 1, 2, 3].map((i) => Math[i < 2 ? "min" : "max"](...found.map((bounds) => bounds[i])));
    return [[west, south], [east, north]];
  }

  // --- the maps ----------------------------------------------------------------------------------------------
  const containers = [...document.querySelectorAll(".panel")];
  const maps = containers.map((container, number) => Htf.makeMap(container.querySelector(".map"), {
    bounds: boundsOfChosen(), label: `${number ? "Second map" : "Map"}. Arrow keys move it, plus and minus zoom; the count in the middle is read out.`,
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
  let isWhole = view === null; // until someone moves it, the whole is shown, whatever the size
  const showWhole = () => { isWhole = true; maps[0].fitBounds(boundsOfChosen(), { padding: 24, animate: false }); };
  maps.forEach((map) => map.on("movestart", ({ originalEvent }) => { if (originalEvent && originalEvent.type !== "resize") isWhole = false; }));
  maps[0].on("resize", () => { if (isWhole && !state.shape) showWhole(); });

  let limits = null, limitsKey = "", differences = null, differenceRequest = null;

  function showLegend() {
    const legend = byId("legend");
    legend.hidden = !canDraw();
    if (!limits) return;
    const sides = isDifference() ? chosen().map(({ name }) => name) : null;
    Htf.legend(legend, { limits, unit: sides ? `difference in ${unit}` : unit, sides });
  }

  async function loadDifference() {
    const [first, second] = chosen();
    const boxes = Layers.squares(maps[0], first, second);
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
        ? "Strong colours: more than noise. By chance alone about one square in twenty would stand out." : "";
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
  function describe(answer, density, isClear) {
    const lines = [[Htf.countText(answer.count), "big"]];
    lines.push(answer.low === undefined ? ["…", "quiet"] : `95 %: ${Htf.intervalText(answer)}`);
    if (answer.low !== undefined && Htf.isOutsideInterval(answer)) lines.push([Htf.OUTSIDE_IN_SHORT, "quiet"]);
    lines.push(isClear ? `${Htf.shortNumber(density)} ${unit}` : ["no more than noise", "quiet"]);
    return lines;
  }
  function describeDifference(found) {
    const [first, second] = chosen();
    return [[Htf.signedText(found.count), "big"], `95 %: ${Htf.signedText(found.low)} to ${Htf.signedText(found.high)}`,
      `${first.name}: ${Htf.countText(found.first.count)}`, `${second.name}: ${Htf.countText(found.second.count)}`,
      found.isBeyond ? ["more than noise", "beyond"] : ["no more than noise", "quiet"]];
  }
  const askForInterval = maps.map(() => {
    let running = null;
    return debounced(async (release, properties, show) => {
      if (running) running.abort();
      const { signal } = running = new AbortController();
      try {
        const text = [`box=${properties.box.join()}`, whereText(release)].filter(Boolean).join("&");
        Object.assign(properties, await ask(`${pathOf(release.id)}/count?${text}`, { signal }));
        show();
      } catch { /* the next move asks again */ }
    }, HOVER_DELAY);
  });

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
      if (properties.low === undefined) askForInterval[number](release, properties, show);
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
  const note = (textContent) => element("div", { className: "quiet small", textContent });
  function rowOf(name, count, interval, ...notes) {
    return element("div", { className: "row" }, element("div", { className: "row-name", textContent: name }),
      element("div", { className: "row-line" }, "about ", element("span", { className: "row-count", textContent: count }), " points"),
      element("div", { className: "row-interval" }, element("span", { textContent: `between ${interval}` }), " ", element("span", { textContent: "in 95 of 100 cases" })), ...notes);
  }
  const shareText = (share) => (share < 0.005 ? "Less than 1 %" : `${Math.round(100 * share)} %`);
  function answerRow(release, shape, answer) {
    const notes = [];
    if (Htf.isOutsideInterval(answer)) notes.push(note(Htf.WHY_OUTSIDE));
    if (answer.partial > 0.005) notes.push(note(`${Math.round(100 * answer.partial)} % of it is shared out by area, at the edge.`));
    if (Math.round(answer.count) < 0) notes.push(note("Below zero by noise: there are few, or none."));
    const name = `${release.name}, ${shape ? `your ${shape.kind}` : "the whole map"}`;
    if (answer.inside === 0) return element("div", { className: "row" }, element("div", { className: "row-name", textContent: name }), answer.warning || "Nothing of it lies on the map, and nothing is known of what lies outside.");
    if (answer.inside < 0.995) notes.push(note(`${shareText(answer.inside)} of it lies on the map; the rest is not counted.`));
    return rowOf(name, Htf.countText(answer.count), Htf.intervalText(answer, " and "), ...notes);
  }
  function showAnswers({ shape, shown, answers }) {
    const rows = answers.map((answer, number) => answerRow(shown[number], shape, answer));
    if (answers.length > 1 && answers.every(({ inside }) => inside > 0)) {
      const { count, low, high, isBeyond } = Htf.difference(...answers);
      rows.push(rowOf("Difference", Htf.signedText(count), `${Htf.signedText(low)} and ${Htf.signedText(high)}`,
        element("div", { className: isBeyond ? "beyond" : "quiet", textContent: isBeyond ? "more than noise" : "no more than noise" })));
    }
    byId("answer").replaceChildren(...rows);
  }

  let isAsking = false, turns = 0;
  /* One question at a time, and the newest next: the count follows a shape that is dragged, and lags by one answer. */
  async function askAgain() {
    turns += 1;
    byId("answer").setAttribute("aria-busy", "true");
    if (isAsking) return;
    isAsking = true;
    for (let turn = -1; turn !== turns;) {
      turn = turns;
      await askOnce();
    }
    isAsking = false;
    byId("answer").setAttribute("aria-busy", "false");
  }
  async function askOnce() {
    const { shape } = state, shown = chosen(), { signal } = answerRequest = new AbortController();
    try {
      const answers = await Promise.all(shown.map((release) => countShape(release, shape, signal)));
      latest = { shape, shown, answers };
      showAnswers(latest);
      complain(null);
    } catch (error) {
      if (error.name === "AbortError") return;
      latest = null;
      byId("answer").replaceChildren();
      complain(error);
    }
  }

  // --- shapes --------------------------------------------------------------------------------------------------------
  const saveAddress = debounced(writeAddress, 150);
  const shared = {
    get: () => (canDraw() ? state.shape : null),
    drawing: () => state.drawing,
    set(shape, isDone) {
      state.shape = shape;
      editors.forEach((editor) => editor.draw());
      if (isDone) rest();
      askAgain();
      if (isDone) { fillForm(); saveAddress(); }
    },
    stop: () => draw(null),
    look,
  };
  const editors = maps.map((map, number) => new Shapes.Editor(map, shared, number === 0));
  const canDraw = () => isPlace(releaseOf(state.first));
  const HINTS = {
    box: "Drag across the map, or tap a place. Escape gives up.",
    polygon: "Tap corner after corner; tap the first one again, or press Enter, to close it. Escape gives up.",
  };
  function draw(kind) {
    state.drawing = kind;
    for (const name of ["box", "polygon"]) byId(`draw-${name}`).setAttribute("aria-pressed", String(kind === name));
    if (kind) byId("hint").textContent = HINTS[kind]; else rest();
    byId("hint").classList.toggle("resting", !kind);
    editors.forEach((editor) => { editor.cancel(); editor.draw(); });
    leave();
  }
  function rest() {
    if (state.drawing) return;
    byId("hint").textContent = state.shape && canDraw() ? "Drag it or its corners, or move them with the arrow keys." : canDraw() ? "Point at the map, or draw on it." : "";
  }
  for (const kind of ["box", "polygon"]) {
    byId(`draw-${kind}`).addEventListener("click", (event) => {
      if (event.detail === 0) { draw(null); editors[0].place(kind); draw(null); return; } // by a key
      draw(state.drawing === kind ? null : kind);
      if (state.drawing && isNarrow()) fold(true);
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
  const readNumber = (text) => (text.trim() ? Number(text.trim().replace(",", ".").replace("−", "-")) : NaN);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = ["west", "south", "east", "north"].map((name) => readNumber(form.elements[name].value));
    const [west, south, east, north] = values;
    if (!values.every(Number.isFinite) || west >= east || south >= north) {
      complain("A box is four numbers, west less than east and south less than north.");
      return;
    }
    if (canDraw() && ![[west, south], [east, north]].every(isOnEarth)) {
      complain("These are degrees: longitudes go from −180 to 180, latitudes from −90 to 90.");
      return;
    }
    shared.set(Shapes.box(...values), true);
    draw(null);
    if (!canDraw()) return;
    const bounds = maps[0].getBounds();
    if (!bounds.contains([west, south]) || !bounds.contains([east, north])) maps[0].fitBounds([[west, south], [east, north]], { padding: 80, maxZoom: 16, animate: false });
  });

  // --- the side: releases, ranges, words -------------------------------------------------------------------------------
  function fillChoices() {
    const option = ({ id, name, epsilon, private: isPrivate }) =>
      element("option", { value: id, textContent: `${isPrivate ? "" : "NOT PRIVATE: "}${name} (ε = ${epsilon})` });
    const others = state.releases.filter((release) => isComparable(releaseOf(state.first), release));
    byId("first").replaceChildren(...state.releases.map(option));
    byId("second").replaceChildren(element("option", { value: "", textContent: "nothing" }),
      ...others.map(option));
    byId("first").value = state.first;
    byId("second").value = state.second || "";
    byId("second").closest("label").hidden = !others.length;
    byId("modes").hidden = !state.second;
    for (const button of byId("modes").children) button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode));
  }

  const plain = (value) => String(+value.toFixed(6));
  function rangeOf(axis, releases) {
    const step = (axis.high - axis.low) / axis.cells;
    const text = (value) => String(+value.toFixed(Math.max(0, 1 + Math.ceil(-Math.log10(step)))));
    const [low, high] = state.where[axis.name] || [axis.low, axis.high];
    const slider = (name, value) => element("input", { type: "range", min: 0, max: axis.cells, step: 1,
      value: Math.round((value - axis.low) / step), "aria-label": `${axis.name}, ${name} end`, "data-end": name });
    const inputs = [slider("low", low), slider("high", high)];
    const words = element("output", {});
    const only = releases.length < chosen().length ? ` (only of ${releases[0].name})` : "";
    const say = () => {
      const range = state.where[axis.name];
      words.textContent = (range ? `${text(range[0])} to ${text(range[1])}` : "all") + only;
      const ends = inputs.map((input) => (100 * input.value) / axis.cells);
      made.style.setProperty("--from", `${ends[0]}%`);
      made.style.setProperty("--to", `${ends[1]}%`);
      inputs.forEach((input) => input.setAttribute("aria-valuetext", text(axis.low + input.value * step)));
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

  /* A bound that is rounded is rounded up. */
  function timesText(epsilon) {
    const times = Math.exp(+epsilon), unit = 10 ** (Math.floor(Math.log10(times)) - 1);
    return Htf.shortNumber(Math.ceil(times / unit - 1e-9) * unit);
  }
  function plainWords({ private: isPrivate, epsilon, unit: one }) {
    return isPrivate ? `In plain words: every count carries random noise, which was drawn once. With any one ${one} taken out of the data, whatever this map shows would have been at most ${timesText(epsilon)} times more or less likely.`
      : "In plain words: whoever knows how the noise was made can take it off again. Such a file is for tests only.";
  }
  const shortEpsilon = (text) => String(+(+text).toPrecision(3));
  function ledgerOf({ ledger, record_epsilon: recordEpsilon, epsilon }) {
    const names = ["question", "answers", "ε each", "ε so far"];
    const cell = (kind, text, at) => element(kind, { textContent: text, ...(at && { className: "number" }), ...(kind === "th" && { scope: "col" }) });
    const rows = ledger.map((line) => {
      const ends = [...new Set([line.smallest_epsilon, line.largest_epsilon].map(shortEpsilon))];
      const question = line.kind === "count" && line.sensitivity === 1 ? line.label : `${line.label} (${line.kind}, sensitivity ${line.sensitivity})`;
      return [question, Htf.countText(line.answers), ends.join(" to "), shortEpsilon(line.spent_after)];
    });
    const caption = `What was asked of the data, and its cost${recordEpsilon === epsilon ? "" : " for each record"}`;
    return element("div", { className: "scroll", tabindex: "0", role: "region", "aria-label": "Ledger" }, element("table", {}, element("caption", { textContent: caption }),
      element("thead", {}, element("tr", {}, ...names.map((name, at) => cell("th", name, at)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, at) => cell("td", text, at)))))));
  }
  function factsOf(told) {
    const { protection } = told, axes = told.axes.map(({ name, low, high, cells }) => `${name} from ${plain(low)} to ${plain(high)} (${Htf.countText(cells)} cells)`);
    const facts = { ε: told.epsilon, protects: protection.max_records > 1 ? `one ${told.unit}, with at most ${Htf.countText(protection.max_records)} records` : `one ${told.unit}`,
      mechanism: told.mechanism, boxes: Htf.countText(told.leaves), measurements: Htf.countText(told.measurements), noise: told.noise,
      "reference system": told.crs || "none", axes: axes.join("; ") };
    return element("dl", {}, ...Object.entries(facts).flatMap(([name, value]) => [element("dt", { textContent: name }), element("dd", { textContent: String(value) })]));
  }
  async function fillWords() {
    const shown = chosen();
    const claim = ({ private: isPrivate, epsilon, unit: one }) => (isPrivate ? `ε = ${epsilon} for each ${one}` : "NOT PRIVATE");
    const lines = [...new Set(shown.map(claim))];
    byId("claim-line").textContent = shown.every((release) => release.private) ? `Differentially private: ${lines.join(", and ")}. What this means` : `${lines.join(", and ")}. What this means`;
    byId("claim").classList.toggle("not-private", !shown.every((release) => release.private));
    byId("save-release").href = `${pathOf(state.first)}/download`;
    const told = await Promise.all(shown.map(({ id }) => ask(pathOf(id))));
    if (String(shown.map(({ id }) => id)) !== String(chosen().map(({ id }) => id))) return;
    const each = (make) => told.flatMap((one) => [...(told.length > 1 ? [element("h3", { textContent: one.name })] : []), ...make(one)]);
    byId("statement").replaceChildren(...each((one) => [element("p", { textContent: plainWords(one) }), element("p", { className: "statement", textContent: one.statement })]));
    byId("facts").replaceChildren(...each((one) => [factsOf(one), ledgerOf(one)]));
    statements = Object.fromEntries(told.map((one) => [one.id, one.statement]));
  }
  let statements = {};

  function arrange() {
    const open = chosen().filter((release) => !release.private);
    byId("badge").hidden = !open.length;
    document.title = `${chosen().map(({ name }) => name).join(" and ")} – private counts`;
    byId("badge").textContent = `NOT PRIVATE: ${open.map(({ name }) => name).join(" and ")}. Its noise is known, and can be taken off again. For tests only.`;
    const shown = chosen(), isSide = shown.length > 1 && state.mode === "side";
    containers[1].hidden = !isSide;
    containers.forEach((container, number) => {
      const heading = container.querySelector("h2");
      heading.hidden = shown.length < 2;
      heading.textContent = isSide ? (shown[number] || {}).name || "" : shown.map(({ name }) => name).join(" minus ");
      container.setAttribute("aria-label", heading.textContent || "Map");
    });
    layers[0].diverging = isDifference();
    if (!isSide) tiles[1].clear();
    if (isDifference()) tiles[0].clear(); else differences = null;
    const nowhere = shown.filter((release) => !isPlace(release));
    byId("nowhere").hidden = !nowhere.length;
    byId("maps").classList.toggle("unmapped", nowhere.length > 0);
    byId("nowhere").textContent = nowhere.length ? `There is no map of ${nowhere.map(({ name }) => name).join(" and ")}: the file does not say where on earth it lies (it has no reference system). ${edgesOf(shown[0]) ? "Type a box in its own coordinates to count it." : ""}` : "";
    for (const name of ["draw-box", "draw-polygon"]) byId(name).disabled = !canDraw();
    byId("outlines").disabled = !canDraw();
    const [west, south, east, north] = (edgesOf(shown[0]) || []).map(plain), typing = form.closest("details");
    typing.hidden = west === undefined; // a line, which has no boxes
    if (!canDraw()) typing.open = true;
    byId("typed-note").textContent = `${canDraw() ? "In degrees" : "In the coordinates of the map"}: ${west} to ${east} across, ${south} to ${north} upwards.`;
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
    dropStrays();
    fillChoices();
    fillRanges();
    arrange();
    byId("outlines").checked = state.outlines;
    fillForm();
    draw(null);
    if (answerRequest) answerRequest.abort(); // of what was chosen before
    askAgain();
    changeMap();
    fillWords().catch(complain);
  }
  byId("first").addEventListener("change", (event) => {
    const before = releaseOf(state.first);
    state.first = event.target.value;
    dropStrays();
    const now = releaseOf(state.first);
    if (isPlace(now) && String(before.bounds84) !== String(now.bounds84)) showWhole();
    refresh();
  });
  byId("second").addEventListener("change", (event) => { state.second = event.target.value || null; refresh(); });
  byId("modes").addEventListener("click", ({ target }) => { if (target.dataset.mode) { state.mode = target.dataset.mode; refresh(); } });
  byId("outlines").addEventListener("change", (event) => { state.outlines = event.target.checked; showOutlines(); saveAddress(); });
  maps[0].on("moveend", changeMap);
  window.addEventListener("hashchange", () => { const moved = readAddress(); if (moved) { isWhole = false; maps[0].jumpTo(moved); } refresh(); });

  // --- saving, sharing, looks ---------------------------------------------------------------------------------------------
  function say(text) { byId("done").textContent = text; }
  function save(blob, name) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  byId("share").addEventListener("click", async () => {
    writeAddress();
    try { await navigator.clipboard.writeText(location.href); say("Copied. The link has the view, the shape and the ranges."); }
    catch { say(`Copy it from the address bar: ${location.href}`); }
  });
  byId("save-answer").addEventListener("click", () => {
    if (!latest) { say("There is no answer to save."); return; }
    const { shown } = latest;
    const placeOf = (release) => (isPlace(release) ? polygonOf(latest.shape ? latest.shape.ring : Shapes.box(...release.bounds84).ring) : null);
    const features = latest.answers.map((found, number) => ({ type: "Feature", geometry: placeOf(shown[number]), properties: {
      ...found, release: shown[number].name, epsilon: shown[number].epsilon, unit: shown[number].unit, private: shown[number].private, where: whereOf(shown[number]), statement: statements[shown[number].id] } }));
    const text = JSON.stringify({ type: "FeatureCollection", features }, null, 1);
    save(new Blob([text], { type: "application/geo+json" }), "answer.geojson");
    say("Saved answer.geojson.");
  });
  byId("save-release").addEventListener("click", async (event) => {
    if (!keptToken()) return; // a link is enough
    event.preventDefault();
    const release = releaseOf(state.first);
    try { save(await (await request(event.target.href)).blob(), `${release.private ? "" : "NOT-PRIVATE-"}${release.name}.parquet`); } catch (error) { say(sentence(error.message)); }
  });
  function fold(isFolded) {
    byId("side").classList.toggle("folded", isFolded);
    byId("fold").setAttribute("aria-expanded", String(!isFolded));
    byId("fold").textContent = isFolded ? "More" : "Less";
  }
  byId("fold").addEventListener("click", () => fold(!byId("side").classList.contains("folded")));
  const themed = () => { byId("theme").textContent = theme.name() === "dark" ? "Light mode" : "Dark mode"; showLegend(); };
  byId("theme").addEventListener("click", theme.toggle);
  theme.onChange(themed);
  themed();
  if (isNarrow()) fold(true);
  arrange();
  if (!view) showWhole();
  window.htf = { maps, state }; // for tests, and for the curious
  refresh();
})();
