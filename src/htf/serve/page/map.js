"use strict";
/* The map file of `htf map`: all it shows is in the file. */
(async () => {
  const { theme } = Htf;
  const data = JSON.parse(document.getElementById("data").textContent);
  const isDifference = data.sides !== null;

  async function readSheet(packed) {
    const sheet = { ...(await Htf.readOutlines({ ...packed, frame: data.frame })), zoom: packed.zoom };
    for (const name of ["count", "low", "high", "area", "first", "second"]) {
      if (packed[name]) sheet[name] = await Htf.unpack(packed[name], Float32Array);
    }
    if (!packed.clear) return sheet;
    sheet.clear = await Htf.unpack(packed.clear, Uint8Array);
    const shade = isDifference ? Htf.divergingShade : Htf.shadeOf;
    sheet.shade = Float32Array.from(sheet.count, (count, i) => shade(count / sheet.area[i], sheet.clear[i], data.limits));
    return sheet;
  }

  function describe(sheet, i) {
    const answer = { count: sheet.count[i], low: sheet.low[i], high: sheet.high[i] };
    const perArea = Htf.shortNumber(Math.abs(answer.count) / sheet.area[i]);
    if (!isDifference) {
      return [[Htf.countText(answer.count), "big"], `95 %: ${Htf.intervalText(answer)}`,
        ...(Htf.isOutsideInterval(answer) ? [[Htf.OUTSIDE_IN_SHORT, "quiet"]] : []),
        sheet.clear[i] ? `${perArea} ${data.unit}` : ["no more than noise", "quiet"]];
    }
    return [[Htf.signedText(answer.count), "big"], `95 %: ${Htf.signedText(answer.low)} to ${Htf.signedText(answer.high)}`,
      `${data.sides[0]}: ${Htf.countText(sheet.first[i])}`, `${data.sides[1]}: ${Htf.countText(sheet.second[i])}`,
      sheet.clear[i] ? ["more than noise", "beyond"] : ["no more than noise", "quiet"]];
  }

  async function makePanel(packed) {
    const container = document.querySelector(`[data-panel="${packed.number}"] .map`);
    const label = `Map of ${packed.name}. Arrow keys move it, plus and minus zoom; the count in the middle is read out.`;
    const map = Htf.makeMap(container, { bounds: data.bounds, style: data.style, label });
    const overlay = new Htf.Overlay(map, { plane: data.plane, frames: packed.frames });
    const isStyled = await Htf.whenStyled(map);
    if (!isStyled) document.getElementById("without").hidden = false;
    const layer = new Htf.RectangleLayer("rectangles", { diverging: isDifference, hasBaseMap: data.style !== null && isStyled });
    const sheets = await Promise.all(packed.sheets.map(readSheet));
    layer.set({ sheets, outlines: packed.outlines ? [await readSheet(packed.outlines)] : [] });
    map.addLayer(layer);
    const tooltip = new Htf.Tooltip(map);
    const finders = new Map();
    function look({ lng, lat }) {
      const zoom = map.getZoom();
      const sheet = sheets.find(({ zoom: [least, most] = [0, 99] }) => zoom >= least && zoom < most);
      if (!finders.has(sheet)) finders.set(sheet, new Htf.Finder(sheet));
      const found = finders.get(sheet).at(Htf.squareX(lng), Htf.squareY(lat));
      overlay.highlight = found < 0 ? null : Htf.ringOf(sheet, found);
      overlay.draw();
      if (found < 0) { tooltip.hide(); return; }
      const { x, y } = map.project([lng, lat]);
      tooltip.show(x, y, describe(sheet, found));
    }
    function leave() {
      overlay.highlight = null;
      overlay.draw();
      tooltip.hide();
    }
    return { map, layer, look, leave };
  }

  const panels = await Promise.all(data.panels.map(makePanel));
  for (const { map } of panels) {
    Htf.onPlace(map, (_, lngLat) => panels.forEach((panel) => panel.look(lngLat)), () => panels.forEach((panel) => panel.leave()));
  }
  Htf.synchronise(panels.map(({ map }) => map));

  const boxes = document.getElementById("boxes");
  boxes.addEventListener("change", () => panels.forEach(({ layer }) => layer.set({ showsOutlines: boxes.checked })));
  boxes.checked = data.boxes;
  boxes.dispatchEvent(new Event("change"));
  const button = document.getElementById("theme");
  const drawLegend = () => {
    Htf.legend(document.getElementById("legend"), { limits: data.limits, unit: data.unit, sides: data.sides });
    button.textContent = theme.name() === "dark" ? "Light" : "Dark";
  };
  button.addEventListener("click", theme.toggle);
  theme.onChange(drawLegend);
  drawLegend();
  window.htf = { maps: panels.map(({ map }) => map) }; // for tests, and for the curious
  await Promise.all(panels.map(({ map }) => map.once("idle")));
  document.documentElement.dataset.ready = "yes";
})();
