/* Every label and sentence of the page and of the offline map. Change them here. */

/* Labels that stay as they are. HTML names them with data-text or data-label. */
export const labels = {
  // The side of the page
  heading: "Private counts",
  side: "Questions and answers",
  releases: "Releases",
  release: "Release",
  compareWith: "Compare with",
  howToCompare: "How to compare",
  sideBySide: "Side by side",
  difference: "Difference",
  outlineLeaves: "Outline the leaves",
  level: "Zones by",
  trips: "Trips",
  tripsFrom: "Trips from",
  tripsTo: "Trips to",
  zoneTable: "Table of zones",
  countPlace: "Count a place",
  draw: "Draw",
  box: "Box",
  polygon: "Polygon",
  wholeMap: "Whole map",
  drawing: "Drawing",
  finish: "Finish",
  undoCorner: "Undo corner",
  cancel: "Cancel",
  districts: "Count districts from a file",
  districtsHelp:
    "Drop a file on the page, or open one: GeoJSON, or CSV with columns west, south, " +
    "east, north or with a column of WKT, in longitude and latitude. " +
    "The page sends only the outlines to the server.",
  openFile: "Open a file",
  removeFile: "Remove",
  districtNames: "Names from",
  colourDistricts: "Colour the districts",
  districtTable: "Table of districts",
  saveCsv: "Save as CSV",
  saveGeoJson: "Save as GeoJSON",
  dropHere: "Drop the file to count its districts",
  several: "Count in several releases",
  severalHelp: "Tick releases to count your shape, or the whole map, in each of them. " +
    "Click a name in the table to compare it on the map.",
  tickAll: "All",
  tickNone: "None",
  severalTable: "Table of releases",
  typeBox: "Type a box",
  west: "West",
  south: "South",
  east: "East",
  north: "North",
  count: "Count",
  shareAndSave: "Share and save",
  copyLink: "Copy link",
  saveAnswer: "Save answer",
  saveRelease: "Save release",
  guarantee: "What is guaranteed",
  factsAndLedger: "Facts and ledger",
  drawnWith: "Drawn with MapLibre",
  licence: "licence",
  forPrograms: "For programs:",

  // The map
  map: "Map",
  secondMap: "Second map",
  colours: "Colours",
  noBaseMap: "The base map could not be loaded, so the map is drawn without it.",

  // Periods of a series
  time: "Time",
  period: "Period",
  allPeriods: "All periods",
  allSteps: "All at once",
  smallMaps: "Small maps of all periods. Choose one to see it.",
  changeSince: "Change since the period before",

  // The token
  tokenTitle: "This server needs a token",
  tokenHelp: "Ask whoever runs the server. The token is kept until you close this tab.",
  token: "Token",
  tokenRefused: "The server refused this token. It is mistyped or no longer valid.",
  continue: "Continue",
};

const NOT_PRIVATE = "NOT PRIVATE";
const both = (names) => names.join(" and ");

/* What changes: texts to choose from, and sentences with a name or a number in them. */
export const words = {
  // The map and its colours
  credit: (link) => `drawn with ${link}`,
  mapHelp: (name) =>
    `${name}. Arrow keys move it, plus and minus zoom. The count in the middle is read aloud.`,
  mapOf: (name) => `Map of ${name}`,
  either: (quantities) => [...new Set(quantities)].join(" or "),
  density: (quantity, unit) => `${quantity} per ${unit}`,
  densityDifference: (quantity, unit) => `difference in ${quantity} per ${unit}`,
  onlyNoise: "no more than noise",
  tooFewToTell: "too few to tell",
  noneOrMany: "too few to tell: none, or a third of the density around it, or more",
  beyondNoise: "more than noise",
  maybeChance: "may be chance: many places are compared",
  maybeChanceAlone: "may be chance",
  faintIsNoise: "faint: no more than noise",
  beyondEnd: (number, largest) => `beyond the end: ${number}, up to ${largest}`,
  moreIn: (name) => `more in ${name}`,
  outlineBoxes: "Outline the boxes",
  strongColours: (shape, isPlayed) =>
    "Strong colours are more than noise. " +
    `The chance that any ${shape} is marked without reason is at most 5 %` +
    `${isPlayed ? ", for each period" : ""}.`,
  clickAZone: "Click a zone",
  drawABox: "Draw a box",
  yourBox: "your box",
  tripsNeedBox: "Draw a box: where trips to a polygon start cannot be counted on the page.",
  trips: (direction, label, how) => {
    const [here, there] = direction === "from" ? ["start", "end"] : ["end", "start"];
    if (label) return `Colours show where trips ${direction} ${label} ${there}.`;
    const more = how ? ` ${how} to see where its trips ${there}.` : "";
    return `Colours show where trips ${here}.${more}`;
  },
  noMap: (names, hasBoxes) =>
    `There is no map of ${both(names)}: without a reference system, nobody knows where on earth ` +
    `it lies. ${hasBoxes ? "Type a box in its own coordinates to count what is in it." : ""}`,

  // Periods of a series
  play: "Play",
  pause: "Pause",
  changeOf: (quantity, unit) => `change in ${quantity} per ${unit}`,
  since: (name, marked = true) => `change since ${name}${marked ? "" : ": none more than noise"}`,
  overTime: "Counts over time, with 95 % intervals. Click one to see its map.",
  chart: (shape, texts) =>
    `Counts over time in ${shape ? `your ${shape}` : "the whole map"}: ${texts.join("; ")}`,
  inPeriod: (period, count, low, high) => `${period}: ${count} (${low} to ${high})`,
  noneBefore: "the first one, with none before it",

  // Counts and intervals
  interval: (low, high) => `95 %: ${low} to ${high}`,
  about: "about",
  countOf: (count, quantity) =>
    quantity.startsWith("sum of ") ? `${count} (${quantity})` : `${count} ${quantity}`,
  between: (low, high) => `between ${low} and ${high}`,
  intervalName: "(95 % interval)",
  belowZero: (quantity) =>
    `The count is below zero because of noise: there are few ${quantity} here, or none.`,
  guessedFromNearby: "the best guess uses counts nearby too",
  atEnd: "The count is an end of its interval: the interval comes from the noisy counts of the " +
    "place, and the best guess from those around it too.",
  noted: (caption, hasEnds) => `${caption}${hasEnds ? `. ${words.someAtEnd}` : ""}`,
  someAtEnd: "Where a count is an end of its interval, the best guess uses counts around the " +
    "place too.",
  byArea: (percent, shape = "range") =>
    `${percent} comes from leaves that your ${shape} cuts, estimated by area.`,
  onTheMap: (percent, shape = "range") =>
    `${percent} of your ${shape} lies on the map. The rest is not counted.`,
  lessThanOne: "Less than 1 %",
  outsideTheMap: (shape = "range") =>
    `Your ${shape} lies outside the map, and the release says nothing about places there.`,
  countedIn: (release, shape) => `${release}, ${shape ? `your ${shape}` : "the whole map"}`,
  countedInZone: (release, zone, direction) => {
    const trips = direction ? `trips ${direction} ` : "";
    return `${release}, ${zone ? `${trips}${zone}` : "all zones"}`;
  },
  intervalColumn: "95 % interval",
  per: (unit) => `per ${unit}`,
  noise: "noise",
  noArea: "–",
  tableOf: (release, shown, all) =>
    `${release}: ${shown < all ? `the first ${shown} of ${all}` : all} zones`,
  difference: "Difference",
  countDifferently: (releases) =>
    "The maps do not count the same, so do not compare their numbers. " +
    `${releases.map(({ name, counted }) => `${name} counts ${counted}`).join("; ")}.`,
  noDifference: (releases) =>
    `${releases.map(({ name, quantity }) => `${name} counts ${quantity}`).join(", ")}: ` +
    "their difference means nothing.",

  // Districts from a file
  fileTooLarge: (file, most) =>
    `“${file}” has more than ${most} MB, too much for a browser. ` +
    "Ask `htf query --polygons` on the command line.",
  notUtf8: (file) => `“${file}” is not text in UTF-8. Save it as CSV in UTF-8, or as GeoJSON.`,
  notJson: (file, problem) => `“${file}” is not valid JSON: ${problem}.`,
  notGeoJson: (file, type) => {
    const kind = type === "Topology" ? "TopoJSON" : type || "JSON of another kind";
    return `“${file}” is not GeoJSON but ${kind}. Save it as GeoJSON.`;
  },
  otherSystem: (file, system) =>
    `“${file}” is in the reference system ${system}. ` +
    "Save it in longitude and latitude (EPSG:4326).",
  notDegreesIn: (file, place) =>
    `“${file}” has the coordinates ${place.join(", ")}, which are not degrees. ` +
    "Save it in longitude and latitude (EPSG:4326).",
  noPolygons: (file) => `“${file}” has no polygons. Points and lines cannot be counted.`,
  twoColumns: (file, column) => `“${file}” has two columns “${column}”. Rename one of them.`,
  noEdges: (file, missing) =>
    `“${file}” lacks the columns ${
      missing.join(", ")
    }. A file of boxes has west, south, east and ` +
    "north; a file of polygons has a column geometry or wkt.",
  notABoxIn: (file, row) =>
    `“${file}” has no box in row ${row}: a box needs four numbers, with west less than east and ` +
    "south less than north.",
  tooManyCorners: (file, label, corners, most) =>
    `${label} of “${file}” has ${corners} corners. ` +
    `The server takes ${most} at once: simplify it.`,
  rangesInMetres: (axes) =>
    `The file has ranges of ${both(axes)}. On a map that is not in degrees the page cannot use ` +
    "them: ask `htf query --boxes`.",
  namesBesideRanges: (axis) => `Choose all of ${axis}: the file has ranges of another axis.`,
  reading: (file) => `Reading ${file} …`,
  counting: (done, all) => `Counting: ${done} of ${all} …`,
  row: (number) => `row ${number}`,
  rowNumbers: "row numbers",
  leftOut: (number) =>
    `${number} ${number === 1 ? "row has" : "rows have"} no polygon and ` +
    `${number === 1 ? "is" : "are"} left out.`,
  district: "district",
  releaseColumn: "release",
  severalOf: (number, shape) =>
    `${shape ? `your ${shape}` : "the whole map"} in ${number} ${
      number === 1 ? "release" : "releases"
    }`,
  insideColumn: "on the map",
  districtsOf: (file, shown, all) =>
    `${file}: ${shown < all ? `the first ${shown} of ${all}` : all} districts`,

  // Drawing and typing
  hints: {
    box: "Drag across the map, or tap it. Press Escape to cancel.",
    polygon: "Tap each corner. To finish, tap the first corner again, or press Finish or Enter. " +
      "Backspace takes the last corner back, Escape cancels.",
    drawn: "Drag the shape, its corners, or the middle of an edge. Arrow keys move them too.",
    none: "Point at the map for a count, or draw on it.",
    zones: "Point at a zone for its count, or click it to choose it.",
  },
  yourShape: "Your shape on the map",
  shapeHelp: (shape) =>
    `Your ${shape}. Arrow keys move it, Shift makes larger steps, Delete removes it.`,
  boxCorners: ["south-west corner", "south-east corner", "north-east corner", "north-west corner"],
  polygonCorner: (number, total) => `corner ${number} of ${total}`,
  cornerHelp: (corner, canAdd, canRemove) =>
    `The ${corner}. Arrow keys move it.${canAdd ? " Insert or plus adds one after it." : ""}` +
    `${canRemove ? " Delete removes it." : ""}`,
  typedHelp: (isInDegrees, [west, south, east, north]) =>
    `${isInDegrees ? "In degrees" : "In the coordinates of the map"}, ${west} to ${east} from ` +
    `west to east and ${south} to ${north} from south to north.`,
  notABox: "A box needs four numbers, with west less than east and south less than north.",
  notDegrees: "Coordinates are in degrees: longitude from −180 to 180, latitude from −90 to 90.",

  // Releases and ranges
  releaseOption: ({ name, epsilon, private: isPrivate }) =>
    `${isPrivate ? "" : `${NOT_PRIVATE}: `}${name} (ε = ${epsilon})`,
  nothing: "nothing",
  title: (names) => `${both(names)} – private counts`,
  minus: (names) => names.join(" minus "),
  lowEnd: (axis) => `${axis}, low end`,
  highEnd: (axis) => `${axis}, high end`,
  range: (low, high) => `${low} to ${high}`,
  wholeRange: "all",
  onlyIn: (release) => ` (only in ${release})`,

  // Privacy
  notPrivate: (names) =>
    `${NOT_PRIVATE}: ${both(names)}. The noise is known and can be removed. For tests only.`,
  claim: ({ private: isPrivate, epsilon, protects }) =>
    isPrivate ? `ε = ${epsilon} for each ${protects.replace(/^one /, "")}` : NOT_PRIVATE,
  claims: (claims, arePrivate) =>
    `${arePrivate ? "Differentially private: " : ""}${claims.join(", and ")}. What this means`,
  inPlainWords: (protects, times) =>
    "In plain words: every count carries random noise, which was drawn once. If any " +
    `${protects} were taken out of the data, everything that this map shows would be at most ` +
    `${times} times more or less likely.`,
  notPrivateInPlainWords: "In plain words: whoever knows how the noise was made can remove it. " +
    "Use such a file for tests only.",
  warning: (text) => `Warning: ${text}`,
  protects: (protects, records) =>
    `${protects}${records ? `, with at most ${records} records` : ""}`,
  axis: (name, low, high, cells) => `${name} from ${low} to ${high} (${cells} cells)`,
  namedAxis: (name, levels) =>
    `${name} by name: ${levels.map(([level, number]) => `${number} of ${level}`).join(", ")}`,
  facts: {
    epsilon: "ε",
    protects: "protects",
    counted: "counts",
    mechanism: "mechanism",
    leaves: "leaves",
    measurements: "measurements",
    noise: "noise",
    crs: "reference system",
    axes: "axes",
  },
  noReferenceSystem: "none",
  ledger: "Ledger",
  ledgerCaption: (isPerPart, areShares) =>
    "What was measured in the data, and its cost" +
    (isPerPart ? ` for each ${areShares ? "share of a person" : "record"}` : ""),
  ledgerColumns: ["measured", "answers", "ε each", "ε so far"],
  ledgerKind: (label, kind, sensitivity) => `${label} (${kind}, sensitivity ${sensitivity})`,

  // Sharing and saving
  copied: "Link copied. It opens this view, with your shape and ranges.",
  copyFromBar: (address) => `Copy the link from the address bar: ${address}`,
  nothingToSave: "There is no answer to save.",
  saved: (file) => `Saved ${file}.`,

  // Looks
  darkMode: "Dark mode",
  lightMode: "Light mode",
  more: "More",
  less: "Less",

  // The server
  noAnswer: "The server does not answer. This page tries again every few seconds.",
  tryingAgain: (detail) => `${detail}. This page tries again in a few seconds.`,
  status: (status) => `the server replied with status ${status}`,
  noReleases: "The server has no releases.",
  noMapLibre: "The server lacks the package maplibre, which draws the map. Install it with " +
    'pip install "htf-dp[map]". The API works without it.',
};
