// Units in which number fields show lengths and angles; the values of the fields are in m and rad.

export type Quantity = "length" | "angle" | "plain";

export interface Unit {
  name: string;
  /** Number of units in 1 m or 1 rad. */
  factor: number;
  decimalPlaces: number;
  /** Step of the arrow keys, in this unit. */
  step: number;
}

const UNITS = {
  m: { name: "m", factor: 1, decimalPlaces: 4, step: 0.01 },
  mm: { name: "mm", factor: 1000, decimalPlaces: 1, step: 10 },
  deg: { name: "°", factor: 180 / Math.PI, decimalPlaces: 2, step: 1 },
  rad: { name: "rad", factor: 1, decimalPlaces: 4, step: 0.01 },
} satisfies Record<string, Unit>;
const PLAIN: Unit = { name: "", factor: 1, decimalPlaces: 3, step: 0.1 };
const STORAGE_KEY = "mechanik.units";

/** The units that the user has chosen, stored in the browser. */
export class Units {
  angle: "deg" | "rad" = "deg";
  length: "m" | "mm" = "m";
  private readonly listeners: (() => void)[] = [];

  constructor() {
    try {
      const text = localStorage.getItem(STORAGE_KEY) ?? "{}";
      const storedUnits = JSON.parse(text) as { angle?: unknown; length?: unknown };
      if (storedUnits.angle === "rad") this.angle = "rad";
      if (storedUnits.length === "mm") this.length = "mm";
    } catch {
      // without storage, or with invalid storage, the default units are used
    }
  }

  of(quantity: Quantity): Unit {
    return quantity === "plain" ? PLAIN : UNITS[quantity === "angle" ? this.angle : this.length];
  }

  set(change: { angle?: "deg" | "rad"; length?: "m" | "mm" }): void {
    Object.assign(this, change);
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify({ angle: this.angle, length: this.length }));
    } catch {
      // without storage the units are lost when the page is reloaded
    }
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}
