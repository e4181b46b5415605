// What lies over the picture at its right or below: a drawer, a sheet. What is looked at keeps to the rest.
const LEAST = 0.25; // share of a side that must be left free; of less nothing could be seen anyway

/** Shares of the picture that are free, from its upper left corner. */
export interface Free {
  width: number;
  height: number;
}

export const ALL: Free = { width: 1, height: 1 };

export class Cover {
  private readonly elements: HTMLElement[] = [];
  private readonly watcher: ResizeObserver;

  /** changed: called when something covers more or less than before. */
  constructor(
    private readonly host: HTMLElement,
    changed: () => void,
  ) {
    this.watcher = new ResizeObserver(changed);
  }

  /** This may lie over the picture, at times or always. */
  add(element: HTMLElement): void {
    this.elements.push(element);
    this.watcher.observe(element);
  }

  /** What is free now. */
  get free(): Free {
    const all = this.host.getBoundingClientRect();
    const free = { ...ALL };
    for (const element of this.elements) {
      const box = element.getBoundingClientRect();
      const left = Math.max(0, box.left - all.left) / all.width;
      const top = Math.max(0, box.top - all.top) / all.height;
      const isBeside = left >= 1 || top >= 1 || box.right <= all.left || box.bottom <= all.top;
      if (isBeside || box.width * box.height === 0) continue;
      // it comes from the side on which it leaves more
      if (left >= top) free.width = Math.min(free.width, Math.max(LEAST, left));
      else free.height = Math.min(free.height, Math.max(LEAST, top));
    }
    return free;
  }

  /** Width and height of it. */
  get freePixels(): [number, number] {
    const { width, height } = this.free;
    return [Math.floor(width * this.host.clientWidth), Math.floor(height * this.host.clientHeight)];
  }
}
