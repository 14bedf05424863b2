/* What is guaranteed, in plain words and in full; the facts of a release and its ledger. */

import { byId, element } from "../shared/elements.js";
import { countText, shortNumber, toSixDigits } from "../shared/numbers.js";
import { words } from "../words.js";
import { describeRelease } from "./api.js";
import { chosen } from "./state.js";

let statements = {}; // by the id of the release

export const statementOf = (id) => statements[id];

export async function fillPrivacy() {
  const shown = chosen();
  const arePrivate = shown.every((release) => release.private);
  const claims = [...new Set(shown.map(words.claim))];
  byId("claim-line").textContent = words.claims(claims, arePrivate);
  byId("claim").classList.toggle("not-private", !arePrivate);
  const found = await Promise.all(shown.map(({ id }) => describeRelease(id)));
  if (String(idsOf(shown)) !== String(idsOf(chosen()))) return; // others were chosen meanwhile
  byId("statement").replaceChildren(...underNames(found, statementParts));
  byId("facts").replaceChildren(...underNames(found, (one) => [factsOf(one), ledgerOf(one)]));
  statements = Object.fromEntries(found.map(({ id, statement }) => [id, statement]));
}

const idsOf = (releases) => releases.map(({ id }) => id);

/* Two releases have headings. */
function underNames(releases, partsOf) {
  return releases.flatMap((release) => {
    const heading = element("h3", { textContent: release.name });
    return [...(releases.length > 1 ? [heading] : []), ...partsOf(release)];
  });
}

function statementParts({ private: isPrivate, epsilon, protects, statement, meaning }) {
  const plain = isPrivate
    ? words.inPlainWords(protects, timesText(epsilon))
    : words.notPrivateInPlainWords;
  return [
    element("p", { textContent: plain }),
    ...meaningParts(meaning),
    element("p", { className: "statement", textContent: statement }),
  ];
}

/* What ε means in odds and beside other values. A release that is not private has none. */
function meaningParts(meaning) {
  if (!meaning) return [];
  const parts = [element("p", { textContent: meaning.sentences.join(" ") })];
  if (meaning.warning) parts.push(element("p", { textContent: words.warning(meaning.warning) }));
  return parts;
}

/* e to the ε with two digits, rounded up because it is a bound. */
function timesText(epsilon) {
  const times = Math.exp(+epsilon);
  const digit = 10 ** (Math.floor(Math.log10(times)) - 1);
  return shortNumber(Math.ceil(times / digit - 1e-9) * digit);
}

function factsOf(told) {
  const most = told.protection.max_records;
  const axes = told.axes.map(({ name, low, high, cells, names }) =>
    names
      ? words.namedAxis(name, names.levels.map((one) => [one.name, countText(one.labels.length)]))
      : words.axis(name, toSixDigits(low), toSixDigits(high), countText(cells))
  );
  const facts = {
    epsilon: told.epsilon,
    protects: words.protects(told.protects, most > 1 ? countText(most) : null),
    counted: told.counted,
    mechanism: told.mechanism,
    leaves: countText(told.leaves),
    measurements: countText(told.measurements),
    noise: told.noise,
    crs: told.crs || words.noReferenceSystem,
    axes: axes.join("; "),
  };
  return element(
    "dl",
    {},
    ...Object.entries(facts).flatMap(([name, value]) => [
      element("dt", { textContent: words.facts[name] }),
      element("dd", { textContent: value }),
    ]),
  );
}

function ledgerOf({ ledger, record_epsilon: partEpsilon, epsilon, protection }) {
  const caption = words.ledgerCaption(partEpsilon !== epsilon, protection.shares > 1);
  const head = words.ledgerColumns.map((name, at) => cellOf("th", name, at, { scope: "col" }));
  const rows = ledger.map((line) => {
    const cells = ledgerTexts(line).map((text, at) => cellOf("td", text, at));
    return element("tr", {}, ...cells);
  });
  const table = element(
    "table",
    {},
    element("caption", { textContent: caption }),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows),
  );
  const properties = { className: "scroll", tabindex: 0, role: "region" };
  return element("div", { ...properties, "aria-label": words.ledger }, table);
}

function ledgerTexts(line) {
  const { label, kind, sensitivity } = line;
  const isPlain = kind === "count" && sensitivity === 1;
  const epsilons = [line.smallest_epsilon, line.largest_epsilon].map(shortEpsilon);
  return [
    isPlain ? label : words.ledgerKind(label, kind, sensitivity),
    countText(line.answers),
    epsilons[0] === epsilons[1] ? epsilons[0] : words.range(...epsilons),
    shortEpsilon(line.spent_after),
  ];
}

const shortEpsilon = (text) => String(+(+text).toPrecision(3));

/* All columns but the first are numbers. */
function cellOf(kind, textContent, at, more = {}) {
  return element(kind, { textContent, ...(at > 0 && { className: "number" }), ...more });
}
