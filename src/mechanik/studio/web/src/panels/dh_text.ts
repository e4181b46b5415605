// The DH table in a text: parsed, changed row by row, and written with one row per line.

export interface DhTable {
  columns: string[];
  rows: number[][];
  degrees: boolean;
  /** The whole text as data; contains `rows`. */
  whole: Record<string, unknown>;
  holder: Record<string, unknown>;
}

const COLUMNS = ["d", "a", "alpha", "theta"];

/** The table in the text; null if the text is not a DH table. */
export function readDh(text: string): DhTable | null {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return null;
  }
  const list = isRows(whole) ? { rows: whole } : whole;
  if (!isRecord(list)) return null;
  const inner = list["dh"];
  const holder = isRecord(inner) ? inner : list;
  const rows = holder["rows"];
  if (!isRows(rows)) return null;
  const named = holder["columns"];
  const columns =
    typeof named === "string" ? named.split(/[\s,]+/) : Array.isArray(named) ? named.map(String) : COLUMNS;
  return { columns, rows: rows.map((row) => [...row]), degrees: holder["degrees"] === true, whole: list, holder };
}

/** The text with new rows. Lists that belong to rows get the same length. */
export function writeDh(table: DhTable, rows: number[][]): string {
  const { holder } = table;
  const [before, now] = [table.rows.length, rows.length];
  for (const name of ["limits", "values", "joints", "kinds", "links"]) {
    const list = holder[name];
    const isKindString = name === "kinds" && typeof list === "string" && list.length === before;
    if (now === before || !(Array.isArray(list) || isKindString)) continue;
    if (name === "joints" || name === "links")
      delete holder[name]; // default names fit any number of rows
    else if (isKindString) holder[name] = String(list).padEnd(now, "R").slice(0, now);
    else if (Array.isArray(list))
      holder[name] = Array.from(
        { length: now },
        (_none, k) => (list as unknown[])[k] ?? (name === "limits" ? null : name === "kinds" ? "R" : 0),
      );
  }
  holder["rows"] = rows;
  return formatJson(table.whole);
}

/** JSON with lists of numbers on one line each. */
export function formatJson(data: unknown): string {
  return JSON.stringify(data, null, 2).replace(
    /\[\s+([^[\]{}]*?)\s+\]/g,
    (_all, inner: string) => `[${inner.replace(/\s*\n\s*/g, " ")}]`,
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
