// The pixels themselves: written as a file, lost and found again.
import type { Store } from "../store";

export function toPng(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture could not be written"))), "image/png"),
  );
}

/** Say so when the graphics card drops what it was given, and call `again` when it takes it back. */
export function watchLoss(canvas: HTMLCanvasElement, store: Store, again: () => void): void {
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // or it would not come back
    const text =
      "The graphics card has dropped the picture; it comes back by itself, or when the page is loaded again.";
    store.emit("message", { kind: "warning", text });
  });
  canvas.addEventListener("webglcontextrestored", again);
}
