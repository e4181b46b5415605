// Throttled and debounced functions.

export const READABLE_MS = 1000 / 15; // updates per second that can be read: 15

/** A function that runs `work` soon, at most once per `interval` ms; calls in between are merged. */
export function throttled(work: () => void, interval = READABLE_MS): () => void {
  let timer = 0;
  let last = -Infinity;
  return () => {
    if (timer !== 0) return;
    const wait = Math.max(0, last + interval - performance.now());
    timer = window.setTimeout(() => {
      timer = 0;
      last = performance.now();
      work();
    }, wait);
  };
}

/** A function that runs `work` when it was not called for `delay` ms. */
export function debounced<A extends unknown[]>(work: (...args: A) => void, delay: number): (...what: A) => void {
  let timer = 0;
  return (...what) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => work(...what), delay);
  };
}
