// Table of DH rows; a typed number changes the text and the mechanism.
import { button, el, fill, iconButton } from "./element";
import { readDh, writeDh, type DhTable } from "./dh_text";

const INVALID_TEXT = "The text below is not a valid DH table: it needs rows of four numbers.";

export class DhTableView {
  readonly root = el("div", { class: "dh", test: "dh-table" });
  private layout = ""; // columns, number of rows and unit of the present table element
  private table: DhTable | null = null;

  constructor(private readonly onChange: (text: string) => void) {}

  show(text: string): void {
    this.table = readDh(text);
    if (!this.table) return fill(this.root, el("p", { class: "quiet" }, INVALID_TEXT));
    const { columns, rows, isInDegrees } = this.table;
    const layout = `${columns.join()} ${rows.length} ${isInDegrees}`;
    if (layout !== this.layout || !this.root.querySelector("table")) this.build(this.table);
    this.layout = layout;
    this.root.querySelectorAll("input").forEach((input) => {
      const value = rows[Number(input.dataset["row"])]?.[Number(input.dataset["column"])];
      if (document.activeElement !== input) input.value = String(value ?? "");
    });
  }

  private build({ columns, rows, isInDegrees }: DhTable): void {
    const unit = (name: string): string => (name === "d" || name === "a" ? "m" : isInDegrees ? "°" : "rad");
    const head = el(
      "tr",
      {},
      el("th", {}),
      ...columns.map((name) => el("th", {}, columnSymbol(name), el("small", {}, ` ${unit(name)}`))),
      el("th", {}),
    );
    const body = rows.map((_row, rowIndex) =>
      el(
        "tr",
        {},
        el("th", {}, String(rowIndex + 1)),
        ...columns.map((name, columnIndex) => el("td", {}, this.cell(rowIndex, columnIndex, name, unit(name)))),
        el(
          "td",
          {},
          iconButton("close", `Remove row ${rowIndex + 1}`, {
            click: () => this.changeRows((newRows) => newRows.splice(rowIndex, 1)),
          }),
        ),
      ),
    );
    fill(
      this.root,
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)),
      button(
        "Add a row",
        {
          test: "dh-add",
          class: "is-small",
          click: () => this.changeRows((newRows) => newRows.push([...(newRows.at(-1) ?? [0, 0, 0, 0])])),
        },
        "plus",
      ),
    );
  }

  private cell(row: number, column: number, name: string, unit: string): HTMLInputElement {
    const input = el("input", {
      class: "number",
      label: `${name} of row ${row + 1}, ${unit}`,
      test: `dh-${row + 1}-${name}`,
      attributes: { "data-row": String(row), "data-column": String(column) },
    });
    input.type = "text";
    input.inputMode = "decimal";
    input.addEventListener("input", () => {
      const text = input.value.trim().replace(",", ".");
      const number = Number(text);
      const isWrong = text === "" || !Number.isFinite(number);
      input.classList.toggle("wrong", isWrong);
      if (!isWrong) this.changeRows((rows) => (rows[row]![column] = number));
    });
    return input;
  }

  private changeRows(change: (rows: number[][]) => void): void {
    if (!this.table) return;
    const copies = this.table.rows.map((row) => [...row]);
    const rows = [...copies];
    change(rows);
    if (rows.length === 0) return;
    const text = writeDh(
      this.table,
      rows,
      rows.map((row) => copies.indexOf(row)),
    );
    this.show(text);
    this.onChange(text);
  }
}

function columnSymbol(name: string): string {
  return { alpha: "α", theta: "θ" }[name] ?? name;
}
