// Panel of the motion recorder: record, play, seek and save a motion.
import { button, choice, el, iconButton, line, press, section, write } from "./element";
import { saveBlob } from "./downloads";
import { clock } from "./format";
import { setIcon } from "./icons";
import { throttled } from "./throttle";
import type { Panel } from "./sidebar";
import { Slider } from "./slider";
import type { Export } from "../messages";
import type { Store } from "../store";
import type { View } from "../view/view";

const EXPORTS: [kind: Export["kind"], title: string, about: string][] = [
  ["html", "HTML page", "One file that plays the motion in any browser, without a server"],
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
    { test: "record", class: "is-wide is-record", click: () => this.toggleRecord() },
    "record",
  );
  private readonly play = button("Play", { test: "play", class: "is-wide", click: () => this.togglePlay() }, "play");
  private readonly loop = iconButton("loop", "Loop", { test: "loop", click: () => this.toggleLoop() });
  private readonly stateText = el("p", { class: "record-state", test: "record-state" });
  private readonly timeSlider: Slider;
  private readonly files: HTMLButtonElement[];
  private speed = 1;
  private isLooped = true;

  constructor(
    private readonly store: Store,
    private readonly view: View,
  ) {
    let seekTime = 0;
    const seek = throttled(() => void store.request({ do: "Seek", time: seekTime }), 33);
    this.timeSlider = new Slider(
      { label: "Time", test: "scrub" },
      {
        drag: (time) => {
          seekTime = time;
          seek();
        },
      },
    );
    this.files = EXPORTS.map(([kind, title, about]) =>
      button(
        title,
        { title: about, test: `save-${kind}`, click: () => void store.request({ do: "Export", kind }) },
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
        if (store.recording?.state === "playing") this.startPlayback();
      },
    );
    this.root.append(
      section("", el("div", { class: "buttons" }, this.record), this.stateText),
      section(
        "Play",
        this.timeSlider.root,
        el("div", { class: "buttons" }, this.play, this.loop),
        line("Speed", "", speed),
      ),
      section("Save the motion", el("div", { class: "buttons is-grid" }, ...this.files)),
      section(
        "Save a picture",
        el(
          "div",
          { class: "buttons" },
          button(
            "PNG",
            { test: "save-png", title: "The view as it is now", click: () => void this.savePicture() },
            "save",
          ),
        ),
      ),
    );
    press(this.loop, this.isLooped);
    store.on("recording", () => this.refresh());
    this.refresh();
  }

  private refresh(): void {
    const { state, frames, duration, time } = this.store.recording ?? {
      state: "empty",
      frames: 0,
      duration: 0,
      time: 0,
    };
    const isRecording = state === "recording";
    const isReady = state === "ready" || state === "playing";
    setIcon(this.record, isRecording ? "stop" : "record");
    write(this.record.querySelector("span")!, isRecording ? "Stop recording" : "Record");
    this.record.classList.toggle("is-on", isRecording);
    setIcon(this.play, state === "playing" ? "pause" : "play");
    write(this.play.querySelector("span")!, state === "playing" ? "Pause" : "Play");
    write(
      this.stateText,
      state === "empty"
        ? "No recording yet. Press Record, then drag a goal."
        : isRecording
          ? `${clock(duration)}, ${frames} states so far`
          : `${clock(time)} of ${clock(duration)}, ${frames} states`,
    );
    for (const control of [this.play, this.timeSlider.root, ...this.files]) control.disabled = !isReady;
    this.timeSlider.range(0, Math.max(duration, 0.01));
    this.timeSlider.show(time);
  }

  private toggleRecord(): void {
    void this.store.request({ do: "RecordMotion", on: this.store.recording?.state !== "recording" });
  }

  private togglePlay(): void {
    if (this.store.recording?.state === "playing") void this.store.request({ do: "Play", on: false });
    else this.startPlayback();
  }

  private startPlayback(): void {
    void this.store.request({ do: "Play", on: true, speed: this.speed, looped: this.isLooped });
  }

  private toggleLoop(): void {
    this.isLooped = !this.isLooped;
    press(this.loop, this.isLooped);
    if (this.store.recording?.state === "playing") this.startPlayback();
  }

  private async savePicture(): Promise<void> {
    try {
      saveBlob(await this.view.screenshot(), `${this.store.model?.name || "mechanism"}.png`);
    } catch (error) {
      this.store.emit("message", {
        kind: "error",
        text: `The picture cannot be saved: ${error instanceof Error ? error.message : String(error)}`,
      });
    }
  }
}
