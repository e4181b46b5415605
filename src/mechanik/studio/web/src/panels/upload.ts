// Upload of a file to the session, by a button or by a drop anywhere on the page.
import { button, el } from "./element";
import { bytes } from "./format";
import type { Store } from "../store";
import { restoreAccess } from "../connection/access";

const EXTENSIONS = ".urdf,.xml,.mjcf,.sdf,.world,.json,.zip";

export class Upload {
  /** Covers the page while a file is dragged over it. */
  readonly dropOverlay = el("div", { class: "drop-overlay", test: "drop-overlay" }, el("p", {}, "Drop to open"));
  readonly progress = el("div", { class: "upload-progress", role: "status", test: "upload-progress" });
  private readonly fileInput = el("input", {
    test: "file",
    attributes: { "aria-label": "Choose a file", tabindex: "-1" },
  });
  private readonly listeners: (() => void)[] = [];
  private dragDepth = 0; // number of nested elements that the dragged file has entered

  constructor(private readonly store: Store) {
    this.dropOverlay.hidden = true;
    this.progress.hidden = true;
    this.fileInput.type = "file";
    this.fileInput.accept = EXTENSIONS;
    this.fileInput.className = "visually-hidden";
    this.fileInput.addEventListener("change", () => {
      this.send([...(this.fileInput.files ?? [])]);
      this.fileInput.value = "";
    });
    document.body.append(this.fileInput);
    this.listenForDrops();
  }

  choose(): void {
    this.fileInput.click();
  }

  /** A button that opens the file dialog. */
  button(text = "Choose a file"): HTMLButtonElement {
    return button(text, { test: "choose-file", click: () => this.choose() }, "file");
  }

  /** Adds a listener that is called when a file was opened. */
  onDone(listener: () => void): void {
    this.listeners.push(listener);
  }

  send(files: File[]): void {
    const [file] = files;
    const welcome = this.store.welcome;
    if (!file) return;
    if (!welcome) return this.fail("The studio is not connected. Open the file again when it is connected.");
    if (files.length > 1)
      return this.fail(
        `${files.length} files were dropped. Pack the model and its meshes into one zip file and drop the zip file.`,
      );
    if (file.size > welcome.largest_upload) {
      const [size, limit] = [bytes(file.size), bytes(welcome.largest_upload)];
      return this.fail(`${file.name} has ${size}; the limit is ${limit}. Remove files and meshes that are not needed.`);
    }
    this.post(
      file,
      new URL(`upload/${encodeURIComponent(welcome.session)}?name=${encodeURIComponent(file.name)}`, location.href),
    );
  }

  private post(file: File, address: URL, isRetry = false): void {
    const request = new XMLHttpRequest(); // `fetch` does not report upload progress
    const bar = el("progress", { attributes: { max: "1", value: "0" } });
    const label = el("span", {}, `Sending ${file.name}`);
    this.progress.replaceChildren(label, bar);
    this.progress.hidden = false;
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.total > 0 ? event.loaded / event.total : 0;
      if (event.loaded >= event.total) label.textContent = `Reading ${file.name}`;
    });
    request.addEventListener("loadend", () => {
      this.progress.hidden = true;
      const reason =
        request.status === 0
          ? `${file.name} was not sent: the connection was lost. Open the file again when the studio is connected.`
          : errorMessage(request, file.name);
      if (request.status >= 200 && request.status < 300) for (const listener of this.listeners) listener();
      else if (request.status === 403 && !isRetry)
        void restoreAccess().then((isRestored) => (isRestored ? this.post(file, address, true) : this.fail(reason)));
      else this.fail(reason);
    });
    request.open("POST", address);
    request.send(file);
  }

  private fail(text: string): void {
    this.store.emit("message", { kind: "error", text });
  }

  private listenForDrops(): void {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const countDrag =
      (change: number) =>
      (event: DragEvent): void => {
        if (!hasFiles(event)) return;
        this.dragDepth = Math.max(0, this.dragDepth + change);
        this.dropOverlay.hidden = this.dragDepth === 0;
      };
    window.addEventListener("dragenter", countDrag(1));
    window.addEventListener("dragleave", countDrag(-1));
    window.addEventListener("dragover", (event) => {
      if (hasFiles(event)) event.preventDefault();
    });
    window.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.dragDepth = 0;
      this.dropOverlay.hidden = true;
      this.send([...(event.dataTransfer?.files ?? [])]);
    });
  }
}

/** The error message of the server, from plain text or JSON; a general message if the server has sent none. */
function errorMessage(request: XMLHttpRequest, name: string): string {
  const text = request.responseText.trim();
  try {
    const body = JSON.parse(text) as unknown;
    if (typeof body === "object" && body !== null) {
      for (const key of ["message", "error", "detail"]) {
        const message = (body as Record<string, unknown>)[key];
        if (typeof message === "string") return message;
      }
    }
  } catch {
    // plain text
  }
  return text || `The server rejected ${name} (HTTP status ${request.status}).`;
}
