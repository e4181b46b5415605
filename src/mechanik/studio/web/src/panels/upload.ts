// A file of the person's, sent to the session: by a button, or dropped anywhere on the page.
import { button, el } from "./element";
import { bytes } from "./format";
import type { Store } from "../store";
import { restoreAccess } from "../wire/access";

const ENDINGS = ".urdf,.xml,.mjcf,.sdf,.world,.json,.zip";

export class Upload {
  /** Covers the page while a file hangs over it. */
  readonly curtain = el("div", { class: "curtain", test: "curtain" }, el("p", {}, "Let go to open it"));
  readonly progress = el("div", { class: "upload-progress", role: "status", test: "upload-progress" });
  private readonly chooser = el("input", {
    test: "file",
    attributes: { "aria-label": "Choose a file", tabindex: "-1" },
  });
  private readonly listeners: (() => void)[] = [];
  private hanging = 0;

  constructor(private readonly store: Store) {
    this.curtain.hidden = true;
    this.progress.hidden = true;
    this.chooser.type = "file";
    this.chooser.accept = ENDINGS;
    this.chooser.className = "visually-hidden";
    this.chooser.addEventListener("change", () => {
      this.send([...(this.chooser.files ?? [])]);
      this.chooser.value = "";
    });
    document.body.append(this.chooser);
    this.listenForDrops();
  }

  choose(): void {
    this.chooser.click();
  }

  /** A button that asks for a file. */
  button(text = "Choose a file"): HTMLButtonElement {
    return button(text, { test: "choose-file", click: () => this.choose() }, "file");
  }

  /** Called when a file was opened. */
  onDone(listener: () => void): void {
    this.listeners.push(listener);
  }

  send(files: File[]): void {
    const [file] = files;
    const welcome = this.store.welcome;
    if (!file) return;
    if (!welcome) return this.fail("The studio is not connected, so nothing can be opened.");
    if (files.length > 1)
      return this.fail(`${files.length} files were dropped. Put a model and its meshes into one zip and drop that.`);
    if (file.size > welcome.largest_upload) {
      const [size, most] = [bytes(file.size), bytes(welcome.largest_upload)];
      return this.fail(`${file.name} has ${size}; the studio takes at most ${most}. Leave out what is not needed.`);
    }
    this.post(
      file,
      new URL(`upload/${encodeURIComponent(welcome.session)}?name=${encodeURIComponent(file.name)}`, location.href),
    );
  }

  private post(file: File, address: URL, isAgain = false): void {
    const request = new XMLHttpRequest(); // `fetch` tells nothing of how far an upload has come
    const bar = el("progress", { attributes: { max: "1", value: "0" } });
    const words = el("span", {}, `Sending ${file.name}`);
    this.progress.replaceChildren(words, bar);
    this.progress.hidden = false;
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.total > 0 ? event.loaded / event.total : 0;
      if (event.loaded >= event.total) words.textContent = `Reading ${file.name}`;
    });
    request.addEventListener("loadend", () => {
      this.progress.hidden = true;
      const why =
        request.status === 0
          ? `${file.name} could not be sent: the connection was lost.`
          : spokenAnswer(request, file.name);
      if (request.status >= 200 && request.status < 300) for (const listener of this.listeners) listener();
      else if (request.status === 403 && !isAgain)
        void restoreAccess().then((isRestored) => (isRestored ? this.post(file, address, true) : this.fail(why)));
      else this.fail(why);
    });
    request.open("POST", address);
    request.send(file);
  }

  private fail(text: string): void {
    this.store.emit("message", { kind: "error", text });
  }

  private listenForDrops(): void {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    const hang =
      (by: number) =>
      (event: DragEvent): void => {
        if (!hasFiles(event)) return;
        this.hanging = Math.max(0, this.hanging + by);
        this.curtain.hidden = this.hanging === 0;
      };
    window.addEventListener("dragenter", hang(1));
    window.addEventListener("dragleave", hang(-1));
    window.addEventListener("dragover", (event) => {
      if (hasFiles(event)) event.preventDefault();
    });
    window.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.hanging = 0;
      this.curtain.hidden = true;
      this.send([...(event.dataTransfer?.files ?? [])]);
    });
  }
}

/** The server's sentence, be it plain or in JSON. */
function spokenAnswer(request: XMLHttpRequest, name: string): string {
  const text = request.responseText.trim();
  try {
    const answer = JSON.parse(text) as unknown;
    if (typeof answer === "object" && answer !== null) {
      for (const key of ["message", "error", "detail"]) {
        const said = (answer as Record<string, unknown>)[key];
        if (typeof said === "string") return said;
      }
    }
  } catch {
    // plain words
  }
  return text || `${name} was not taken (${request.status}).`;
}
