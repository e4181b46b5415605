// Reads the DH table of a JSON text, and writes a changed table with one row per line.

export interface DhTable {
  columns: string[];
  rows: number[][];
  isInDegrees: boolean; // whether angles are in degrees, not in rad
  /** All data of the text. */
  data: Record<string, unknown>;
  /** The object in `data` that contains `rows`. */
  container: Record<string, unknown>;
}

const COLUMNS = ["d", "a", "alpha", "theta"];

/** The table in the text; null if the text is not a DH table. */
export function readDh(text: string): DhTable | null {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  const object = isRows(data) ? { rows: data } : data;
  if (!isRecord(object)) return null;
  const dhObject = object["dh"];
  const container = isRecord(dhObject) ? dhObject : object;
  const rows = container["rows"];
  if (!isRows(rows)) return null;
  const columnNames = container["columns"];
  const columns =
    typeof columnNames === "string"
      ? columnNames.split(/[\s,]+/)
      : Array.isArray(columnNames)
        ? columnNames.map(String)
        : COLUMNS;
  const isInDegrees = container["degrees"] === true;
  return { columns, rows: rows.map((row) => [...row]), isInDegrees, data: object, container };
}

/**
 * The text with new rows. Limits, values and kinds stay with their rows. If the number of rows has changed, lists of
 * names are removed. Changes `table.data`.
 *
 * oldIndices: for each new row, its index in `table.rows`; -1 for a row that was added.
 */
export function writeDh(table: DhTable, rows: number[][], oldIndices: number[]): string {
  const { container } = table;
  const [oldLength, newLength] = [table.rows.length, rows.length];
  for (const name of ["limits", "values", "joints", "kinds", "links"]) {
    const list = container[name];
    const isKindString = name === "kinds" && typeof list === "string" && list.length === oldLength;
    if (newLength === oldLength || !(Array.isArray(list) || isKindString)) continue;
    if (name === "joints" || name === "links")
      delete container[name]; // default names exist for any number of rows
    else if (isKindString) container[name] = oldIndices.map((k) => String(list)[k] ?? "R").join("");
    else if (Array.isArray(list))
      container[name] = oldIndices.map(
        (k) => (list as unknown[])[k] ?? (name === "limits" ? null : name === "kinds" ? "R" : 0),
      );
  }
  container["rows"] = rows;
  return formatJson(table.data);
}

/** JSON with each innermost list on one line. */
export function formatJson(data: unknown): string {
  return JSON.stringify(data, null, 2).replace(
    /\[\s+([^[\]{}]*?)\s+\]/g,
    (_match, inner: string) => `[${inner.replace(/\s*\n\s*/g, " ")}]`,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRows(value: unknown): value is number[][] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((row) => Array.isArray(row) && row.length === 4 && row.every((cell) => typeof cell === "number"))
  );
}
