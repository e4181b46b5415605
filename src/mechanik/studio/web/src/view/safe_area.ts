// The part of the view that is not covered by a drawer or sheet on the right or at the bottom.
const MIN_SHARE = 0.25; // of a side that counts as free at least

/** Free share of the view, from its upper left corner. */
export interface FreeShare {
  width: number;
  height: number;
}

export const WHOLE_VIEW: FreeShare = { width: 1, height: 1 };

export class SafeArea {
  private readonly elements: HTMLElement[] = [];
  private readonly watcher: ResizeObserver;

  /** changed: called when the covered part changes. */
  constructor(
    private readonly host: HTMLElement,
    changed: () => void,
  ) {
    this.watcher = new ResizeObserver(changed);
  }

  /** Adds an element that may cover a part of the view. */
  add(element: HTMLElement): void {
    this.elements.push(element);
    this.watcher.observe(element);
  }

  /** The free share now. */
  get free(): FreeShare {
    const all = this.host.getBoundingClientRect();
    const free = { ...WHOLE_VIEW };
    for (const element of this.elements) {
      const box = element.getBoundingClientRect();
      const left = Math.max(0, box.left - all.left) / all.width;
      const top = Math.max(0, box.top - all.top) / all.height;
      const isOutside = left >= 1 || top >= 1 || box.right <= all.left || box.bottom <= all.top;
      if (isOutside || box.width * box.height === 0) continue;
      // it covers from the side on which more is free
      if (left >= top) free.width = Math.min(free.width, Math.max(MIN_SHARE, left));
      else free.height = Math.min(free.height, Math.max(MIN_SHARE, top));
    }
    return free;
  }

  /** Width and height of the free part, px. */
  get freePixels(): [number, number] {
    const { width, height } = this.free;
    return [Math.floor(width * this.host.clientWidth), Math.floor(height * this.host.clientHeight)];
  }
}
