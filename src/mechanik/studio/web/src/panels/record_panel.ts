// Panel of the motion recorder: record, play, seek and save a motion, or save a picture of the view.
import { button, choice, el, iconButton, line, press, section, write } from "./element";
import { saveBlob } from "./downloads";
import { clock, countText } from "./format";
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
  ["json", "JSON", "Times (s) and joint values (m, rad)"],
  ["csv", "CSV", "Times (s) and joint values (m, rad), for spreadsheets"],
  ["npz", "NPZ", "Times (s) and joint values (m, rad), for NumPy"],
];

export class RecordPanel implements Panel {
  readonly root = el("div", { test: "panel-record" });
  private readonly recordButton = button(
    "Record",
    { test: "record", class: "is-wide is-record", click: () => this.toggleRecord() },
    "record",
  );
  private readonly playButton = button(
    "Play",
    { test: "play", class: "is-wide", click: () => this.togglePlay() },
    "play",
  );
  private readonly loopButton = iconButton("loop", "Repeat the motion", {
    test: "loop",
    click: () => this.toggleLoop(),
  });
  private readonly stateText = el("p", { class: "record-state", test: "record-state" });
  private readonly timeSlider: Slider;
  private readonly exportButtons: HTMLButtonElement[];
  private speed = 1;
  private isLooped = true;

  constructor(
    private readonly store: Store,
    private readonly view: View,
  ) {
    let seekTime = 0;
    const seek = throttled(() => void store.request({ do: "Seek", time: seekTime }), 33);
    this.timeSlider = new Slider(
      { label: "Time in s", test: "scrub" },
      {
        drag: (time) => {
          seekTime = time;
          seek();
        },
      },
    );
    this.exportButtons = EXPORTS.map(([kind, title, about]) =>
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
      { label: "Playback speed", test: "speed" },
      (value) => {
        this.speed = Number(value);
        if (store.recording?.state === "playing") this.startPlayback();
      },
    );
    this.root.append(
      section("", el("div", { class: "buttons" }, this.recordButton), this.stateText),
      section(
        "Play",
        this.timeSlider.root,
        el("div", { class: "buttons" }, this.playButton, this.loopButton),
        line("Speed", "Playback speed", speed),
      ),
      section("Save the motion", el("div", { class: "buttons is-grid" }, ...this.exportButtons)),
      section(
        "Save a picture",
        el(
          "div",
          { class: "buttons" },
          button(
            "PNG",
            { test: "save-png", title: "The present view, without labels", click: () => void this.savePicture() },
            "save",
          ),
        ),
      ),
    );
    press(this.loopButton, this.isLooped);
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
    setIcon(this.recordButton, isRecording ? "stop" : "record");
    write(this.recordButton.querySelector("span")!, isRecording ? "Stop recording" : "Record");
    this.recordButton.classList.toggle("is-on", isRecording);
    setIcon(this.playButton, state === "playing" ? "pause" : "play");
    write(this.playButton.querySelector("span")!, state === "playing" ? "Pause" : "Play");
    write(
      this.stateText,
      state === "empty"
        ? "No recording yet. Press Record, then drag a goal."
        : isRecording
          ? `${clock(duration)} min, ${countText(frames, "state")} so far`
          : `${clock(time)} of ${clock(duration)} min, ${countText(frames, "state")}`,
    );
    for (const control of [this.playButton, this.timeSlider.root, ...this.exportButtons]) control.disabled = !isReady;
    this.timeSlider.setRange(0, Math.max(duration, 0.01));
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
    press(this.loopButton, this.isLooped);
    if (this.store.recording?.state === "playing") this.startPlayback();
  }

  private async savePicture(): Promise<void> {
    try {
      saveBlob(await this.view.screenshot(), `${this.store.model?.name || "mechanism"}.png`);
    } catch (error) {
      this.store.emit("message", {
        kind: "error",
        text: `The picture cannot be saved: ${error instanceof Error ? error.message : String(error)}.`,
      });
    }
  }
}
