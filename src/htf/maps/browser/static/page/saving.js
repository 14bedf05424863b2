/* The link, the answer as GeoJSON, and the file of the release. */

import { byId, save } from "../shared/elements.js";
import { words } from "../words.js";
import { writeAddress } from "./address.js";
import { latestAnswer } from "./answer.js";
import { downloadPath, request } from "./api.js";
import { statementOf } from "./privacy.js";
import { sentence } from "./problem.js";
import { boxOf, polygonOf } from "./shapes.js";
import { countsEnds, isPlace, isZoned, releaseOf, state, whereOf, zoneWhere } from "./state.js";
import { keptToken } from "./token.js";
import { chosenOutline } from "./zone-map.js";

const ANSWER_FILE = "answer.geojson";

export function listenToSaving() {
  byId("share").addEventListener("click", copyLink);
  byId("save-answer").addEventListener("click", saveAnswer);
  byId("save-release").addEventListener("click", saveRelease);
}

export function fillSaving() {
  byId("save-release").href = downloadPath(state.first);
}

function say(text) {
  byId("done").textContent = text;
}

async function copyLink() {
  writeAddress();
  try {
    await navigator.clipboard.writeText(location.href);
    say(words.copied);
  } catch {
    say(words.copyFromBar(location.href));
  }
}

function saveAnswer() {
  const latest = latestAnswer();
  if (!latest) {
    say(words.nothingToSave);
    return;
  }
  const { shape, shown, answers } = latest;
  const features = answers.map((answer, number) => featureOf(shown[number], shape, answer));
  const text = JSON.stringify({ type: "FeatureCollection", features }, null, 1);
  say(words.saved(save(text, "application/geo+json", ANSWER_FILE)));
}

function featureOf(release, shape, answer) {
  const { id, name, epsilon, unit, protects, counted, private: isPrivate, bounds84 } = release;
  const outline = () => (
    isZoned(release) ? chosenOutline() : polygonOf((shape || boxOf(...bounds84)).ring)
  );
  const properties = {
    ...answer,
    counted,
    release: name,
    epsilon,
    unit,
    protects,
    private: isPrivate,
    ...(countsEnds() && { end: "destination" }),
    where: { ...whereOf(release), ...(isZoned(release) ? zoneWhere(release) : {}) },
    statement: statementOf(id),
  };
  return { type: "Feature", geometry: isPlace(release) ? outline() : null, properties };
}

/* A link is enough, unless the server needs a token. */
async function saveRelease(event) {
  if (!keptToken()) return;
  event.preventDefault();
  const release = releaseOf(state.first);
  const mark = release.private ? "" : "NOT-PRIVATE-";
  try {
    const reply = await request(downloadPath(release.id));
    const type = "application/vnd.apache.parquet";
    save(await reply.blob(), type, `${mark}${release.name}.parquet`);
  } catch (error) {
    say(sentence(error.message));
  }
}
