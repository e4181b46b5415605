// Finds the part of the view that no panel on the right or at the bottom covers.
const MIN_SHARE = 0.25; // at least this share of a side is treated as free

/** Free share of width and height of the view, from its upper left corner. */
export interface FreeShare {
  width: number;
  height: number;
}

export const WHOLE_VIEW: FreeShare = { width: 1, height: 1 };

export class SafeArea {
  private readonly elements: HTMLElement[] = [];
  private readonly resizeObserver: ResizeObserver;

  /** host: element of the view; onChange: called when an added element changes its size. */
  constructor(
    private readonly host: HTMLElement,
    onChange: () => void,
  ) {
    this.resizeObserver = new ResizeObserver(onChange);
  }

  /** Adds an element that may cover a part of the view. */
  add(element: HTMLElement): void {
    this.elements.push(element);
    this.resizeObserver.observe(element);
  }

  /** The present free share. */
  get free(): FreeShare {
    const viewBounds = this.host.getBoundingClientRect();
    const free = { ...WHOLE_VIEW };
    for (const element of this.elements) {
      const bounds = element.getBoundingClientRect();
      const left = Math.max(0, bounds.left - viewBounds.left) / viewBounds.width;
      const top = Math.max(0, bounds.top - viewBounds.top) / viewBounds.height;
      const isOutside = left >= 1 || top >= 1 || bounds.right <= viewBounds.left || bounds.bottom <= viewBounds.top;
      if (isOutside || bounds.width * bounds.height === 0) continue;
      // the element is taken to cover the whole right or the whole bottom, whichever leaves the larger share free
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
