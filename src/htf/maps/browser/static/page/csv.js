/* Text files of columns, as spreadsheets write them. */

const SEPARATORS = [",", ";", "\t", "|"];

/* { header, rows, separator }. The separator is the one that finds the most of the names in
   `wanted` in the first line, as in query/box_files.py. */
export function readTable(text, wanted) {
  const line = text.slice(0, text.search(/\n|$/));
  const namesBy = (separator) => split(line, separator)[0] || [];
  const hits = (separator) => namesBy(separator).filter((name) => wanted(tidy(name))).length;
  const separator = SEPARATORS.reduce((best, one) => (hits(one) > hits(best) ? one : best));
  const [header = [], ...rows] = split(text, separator);
  const names = header.map((name, at) => tidy(name) || `column ${at + 1}`);
  return { header: names, rows: rows.filter((row) => row.some((cell) => cell.trim())), separator };
}

const tidy = (name) => name.trim();

/* Rows of cells. Cells in quotes may hold separators and new lines, and quotes written twice. */
function split(text, separator) {
  const rows = [];
  let row = [];
  let cell = "";
  let isQuoted = false;
  const end = () => {
    row.push(cell);
    cell = "";
  };
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (isQuoted && sign === '"' && text[i + 1] === '"') cell += text[++i];
    else if (isQuoted && sign === '"') isQuoted = false;
    else if (isQuoted) cell += sign;
    else if (sign === '"' && !cell.trim()) [isQuoted, cell] = [true, ""];
    else if (sign === separator) end();
    else if (sign === "\n") {
      end();
      rows.push(row);
      row = [];
    } else if (sign !== "\r") cell += sign;
  }
  if (cell || row.length) rows.push([...row, cell]);
  return rows;
}

/* Rows of values as text. */
export function tableText(rows) {
  const cellOf = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cellOf).join()}\r\n`).join("");
}
