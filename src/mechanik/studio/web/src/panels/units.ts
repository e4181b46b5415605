// In which units joints and places are shown. What is sent is always m and rad.

export type Quantity = "length" | "angle" | "plain";

export interface Unit {
  name: string;
  /** Of this unit in one m or rad. */
  factor: number;
  decimals: number;
  /** What an arrow key adds, in this unit. */
  step: number;
}

const ALL = {
  m: { name: "m", factor: 1, decimals: 4, step: 0.01 },
  mm: { name: "mm", factor: 1000, decimals: 1, step: 10 },
  deg: { name: "°", factor: 180 / Math.PI, decimals: 2, step: 1 },
  rad: { name: "rad", factor: 1, decimals: 4, step: 0.01 },
} satisfies Record<string, Unit>;
const PLAIN: Unit = { name: "", factor: 1, decimals: 3, step: 0.1 };
const KEPT = "mechanik.units";

/** The person's choice, kept in the browser. */
export class Units {
  angle: "deg" | "rad" = "deg";
  length: "m" | "mm" = "m";
  private readonly listeners: (() => void)[] = [];

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}") as { angle?: unknown; length?: unknown };
      if (kept.angle === "rad") this.angle = "rad";
      if (kept.length === "mm") this.length = "mm";
    } catch {
      // what was kept is no JSON: the usual units
    }
  }

  of(quantity: Quantity): Unit {
    return quantity === "plain" ? PLAIN : ALL[quantity === "angle" ? this.angle : this.length];
  }

  set(change: { angle?: "deg" | "rad"; length?: "m" | "mm" }): void {
    Object.assign(this, change);
    try {
      localStorage.setItem(KEPT, JSON.stringify({ angle: this.angle, length: this.length }));
    } catch {
      // a browser that keeps nothing still converts
    }
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}
