// Record: a motion is recorded, played, scrubbed and saved.
import { button, choice, el, iconButton, line, press, section, write } from "./element";
import { saveBlob } from "./downloads";
import { clock } from "./format";
import { redraw } from "./icons";
import { paced } from "./pace";
import type { Panel } from "./side";
import { Slider } from "./slider";
import type { Export } from "../messages";
import type { Store } from "../store";
import type { View } from "../view/view";

const KINDS: [kind: Export["kind"], title: string, about: string][] = [
  ["html", "Page that plays", "One file that plays in any browser, without a server"],
  ["glb", "glTF", "Bodies and motion, for Blender and viewers"],
  ["bvh", "BVH", "A skeleton with its motion, for animation"],
  ["json", "JSON", "Times and joint values"],
  ["csv", "CSV", "Times and joint values, for spreadsheets"],
  ["npz", "NPZ", "Times and joint values, for NumPy"],
];

export class RecordPanel implements Panel {
  readonly root = el("div", { test: "panel-record" });
  private readonly record = button(
    "Record",
    { test: "record", class: "is-wide is-record", click: () => this.turnRecord() },
    "record",
  );
  private readonly play = button("Play", { test: "play", class: "is-wide", click: () => this.turnPlay() }, "play");
  private readonly loop = iconButton("loop", "Again and again", { test: "loop", click: () => this.turnLoop() });
  private readonly words = el("p", { class: "record-words", test: "record-words" });
  private readonly scrub: Slider;
  private readonly files: HTMLButtonElement[];
  private speed = 1;
  private isLooped = true;

  constructor(
    private readonly store: Store,
    private readonly view: View,
  ) {
    let wanted = 0;
    const seek = paced(() => void store.ask({ do: "Seek", time: wanted }), 33);
    this.scrub = new Slider(
      { label: "Time", test: "scrub" },
      {
        hold: (time) => {
          wanted = time;
          seek();
        },
      },
    );
    this.files = KINDS.map(([kind, title, about]) =>
      button(
        title,
        { title: about, test: `save-${kind}`, click: () => void store.ask({ do: "Export", kind }) },
        "save",
      ),
    );
    const speed = choice(
      [
        ["0.1", "0.1 ×"],
        ["0.25", "0.25 ×"],
        ["0.5", "0.5 ×"],
        ["1", "1 ×"],
        ["2", "2 ×"],
        ["4", "4 ×"],
      ],
      "1",
      { label: "Speed", test: "speed" },
      (value) => {
        this.speed = Number(value);
        if (store.recording?.state === "playing") this.start();
      },
    );
    this.root.append(
      section("", el("div", { class: "buttons" }, this.record), this.words),
      section("Play", this.scrub.root, el("div", { class: "buttons" }, this.play, this.loop), line("Speed", "", speed)),
      section("Save the motion", el("div", { class: "buttons is-grid" }, ...this.files)),
      section(
        "Save a picture",
        el(
          "div",
          { class: "buttons" },
          button("PNG", { test: "save-png", title: "The view as it is now", click: () => void this.picture() }, "save"),
        ),
      ),
    );
    press(this.loop, this.isLooped);
    store.on("recording", () => this.paint());
    this.paint();
  }

  private paint(): void {
    const { state, frames, duration, time } = this.store.recording ?? {
      state: "empty",
      frames: 0,
      duration: 0,
      time: 0,
    };
    const isRecording = state === "recording";
    const isReady = state === "ready" || state === "playing";
    redraw(this.record, isRecording ? "stop" : "record");
    write(this.record.querySelector("span")!, isRecording ? "Stop recording" : "Record");
    this.record.classList.toggle("is-on", isRecording);
    redraw(this.play, state === "playing" ? "pause" : "play");
    write(this.play.querySelector("span")!, state === "playing" ? "Pause" : "Play");
    write(
      this.words,
      state === "empty"
        ? "Nothing is recorded yet. Record, then drag something."
        : isRecording
          ? `${clock(duration)}, ${frames} states so far`
          : `${clock(time)} of ${clock(duration)}, ${frames} states`,
    );
    for (const one of [this.play, this.scrub.root, ...this.files]) one.disabled = !isReady;
    this.scrub.range(0, Math.max(duration, 0.01));
    this.scrub.show(time);
  }

  private turnRecord(): void {
    void this.store.ask({ do: "RecordMotion", on: this.store.recording?.state !== "recording" });
  }

  private turnPlay(): void {
    if (this.store.recording?.state === "playing") void this.store.ask({ do: "Play", on: false });
    else this.start();
  }

  private start(): void {
    void this.store.ask({ do: "Play", on: true, speed: this.speed, looped: this.isLooped });
  }

  private turnLoop(): void {
    this.isLooped = !this.isLooped;
    press(this.loop, this.isLooped);
    if (this.store.recording?.state === "playing") this.start();
  }

  private async picture(): Promise<void> {
    try {
      saveBlob(await this.view.screenshot(), `${this.store.model?.name || "mechanism"}.png`);
    } catch (why) {
      this.store.emit("message", {
        kind: "error",
        text: `The picture could not be made: ${why instanceof Error ? why.message : String(why)}`,
      });
    }
  }
}
