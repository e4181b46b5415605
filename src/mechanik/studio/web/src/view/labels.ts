// Text in the view, as HTML elements over the canvas: names of links, joints, dofs and obstacles, and titles of tiles.
import { Vector3, type Camera } from "three";

const STYLES = `
  .view-labels { position: absolute; inset: 0; overflow: hidden; pointer-events: none;
    font: 11px/1.3 system-ui, sans-serif; }
  .view-labels > * { position: absolute; left: 0; top: 0; white-space: nowrap; will-change: transform; }
  .view-label { color: #e9edf3; background: rgb(20 23 29 / 72%); border-radius: 4px; padding: 1px 5px; }
  .view-label-joint { color: #9ecbff; }
  .view-labels-light .view-label { color: #1d2530; background: rgb(255 255 255 / 82%); }
  .view-labels-light .view-label-joint { color: #0b5cc0; }
  .view-title { color: #e9edf3; background: rgb(20 23 29 / 78%); border-radius: 6px; padding: 4px 9px;
    font-size: 12px; max-width: 90%; }
  .view-title small { display: block; opacity: 0.75; white-space: normal; }
  .view-labels-light .view-title { color: #1d2530; background: rgb(255 255 255 / 86%); }
`;

interface Label {
  element: HTMLElement;
  text: string;
}

const LINE_HEIGHT = 17; // px, of a label
const MAX_LINES = 4; // a label is at most this many lines below its point, so that it is clear which object it names
const MIN_SPACING = 90; // px; labels on one line with a smaller distance would overlap
const projected = new Vector3();

export class LabelLayer {
  private readonly layer = document.createElement("div");
  private readonly labels = new Map<string, Label>();
  private shownKeys = new Set<string>();
  private readonly labelPositions: { x: number; y: number }[] = [];
  private titles: HTMLElement[] = [];

  constructor(host: HTMLElement) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    this.layer.className = "view-labels";
    this.layer.setAttribute("aria-hidden", "true"); // the panels list the same names
    host.append(this.layer);
  }

  setTheme(theme: "dark" | "light"): void {
    this.layer.classList.toggle("view-labels-light", theme === "light");
  }

  /** Starts an update: `end` hides all labels for which `show` was not called since `begin`. */
  begin(): void {
    this.shownKeys = new Set();
    this.labelPositions.length = 0;
  }

  /** Shows a label at a point of the world, if the point is in the image and a line is free. area: of the image, px. */
  show(key: string, kind: "link" | "joint", text: string, point: Vector3, camera: Camera, area: DOMRect): void {
    projected.copy(point).project(camera);
    if (projected.z < -1 || projected.z > 1 || Math.abs(projected.x) > 1.05 || Math.abs(projected.y) > 1.05) return;
    const x = area.x + ((projected.x + 1) / 2) * area.width + 8;
    const y = this.freeLine(x, area.y + ((1 - projected.y) / 2) * area.height - 8);
    if (y === null) return;
    let label = this.labels.get(key);
    if (label === undefined) {
      const element = document.createElement("span");
      element.className = kind === "joint" ? "view-label view-label-joint" : "view-label";
      this.layer.append(element);
      label = { element, text: "" };
      this.labels.set(key, label);
    }
    if (label.text !== text) label.element.textContent = label.text = text;
    label.element.hidden = false;
    this.labelPositions.push({ x, y });
    label.element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
    this.shownKeys.add(key);
  }

  /** The nearest free line at or below y, px; null if there is none. */
  private freeLine(x: number, y: number): number | null {
    for (let k = 0; k <= MAX_LINES; k++) {
      const line = y + k * LINE_HEIGHT;
      const overlaps = (label: { x: number; y: number }) =>
        Math.abs(label.y - line) < LINE_HEIGHT && Math.abs(label.x - x) < MIN_SPACING;
      if (!this.labelPositions.some(overlaps)) return line;
    }
    return null;
  }

  end(): void {
    for (const [key, label] of this.labels) if (!this.shownKeys.has(key)) label.element.hidden = true;
  }

  /** Removes all labels. */
  clear(): void {
    for (const { element } of this.labels.values()) element.remove();
    this.labels.clear();
  }

  setTitles(titles: { title: string; text: string; area: DOMRect }[]): void {
    for (const oldTitle of this.titles) oldTitle.remove();
    this.titles = titles.map(({ title, text, area }) => {
      const element = document.createElement("div");
      element.className = "view-title";
      element.textContent = title;
      const textElement = document.createElement("small");
      textElement.textContent = text;
      element.append(textElement);
      element.style.transform = `translate(${area.x + 10}px, ${area.y + 10}px)`;
      element.style.maxWidth = `${area.width - 40}px`;
      this.layer.append(element);
      return element;
    });
  }
}
