// Field for a control of a scene: slider, switch, choice, button, text or number.
import { button, choice, el, line, toggle } from "./element";
import { decimals, titleCase } from "./format";
import { throttled } from "./throttle";
import { Slider } from "./slider";
import type { ControlInfo, SetControl } from "../messages";

type Value = SetControl["value"];
/** Sets a control; all values of one slider drag are a single undo step. */
type SetValue = (value: Value, isDragging?: boolean) => void;

export interface ControlField {
  root: HTMLElement;
  /** Shows a value that the session has sent. */
  show(value: Value): void;
}

export function controlField(control: ControlInfo, set: SetValue): ControlField {
  const options = { test: `control-${control.name}`, label: control.title, title: control.about || control.title };
  switch (control.kind) {
    case "slider":
      return sliderField(control, options, set);
    case "switch": {
      const { root, box } = toggle(control.title, control.value === true, options, (value) => set(value));
      return { root, show: (value) => (box.checked = value === true) };
    }
    case "choice": {
      const select = choice(
        control.choices.map((value) => [value, titleCase(value)]),
        String(control.value),
        options,
        (value) => set(value),
      );
      return { root: line(control.title, control.about, select), show: (value) => (select.value = String(value)) };
    }
    case "button":
      return {
        root: button(control.title, { ...options, class: "is-wide", click: () => set(true) }),
        show: () => undefined,
      };
    case "number":
    case "text": {
      const input = el("input", { ...options, class: control.kind === "number" ? "number" : "" });
      input.type = "text";
      input.value = String(control.value);
      input.addEventListener("change", () => {
        const number = Number(input.value.replace(",", "."));
        const isWrong = control.kind === "number" && (input.value.trim() === "" || !Number.isFinite(number));
        input.classList.toggle("wrong", isWrong);
        if (!isWrong) set(control.kind === "number" ? number : input.value);
      });
      const show = (value: Value): void => {
        if (document.activeElement !== input) input.value = String(value);
      };
      return { root: line(control.title, control.about, input), show };
    }
  }
}

function sliderField(
  control: ControlInfo,
  options: { test: string; label: string; title: string },
  set: SetValue,
): ControlField {
  const decimalPlaces = control.step >= 1 ? 0 : Math.min(4, Math.max(2, Math.ceil(-Math.log10(control.step || 0.01))));
  const number = el("output", { class: "slider-number" });
  let latestValue = Number(control.value);
  let isSent = true;
  const sendNow = (): void => {
    isSent = true;
    set(latestValue, slider.isDragging);
  };
  const sendSoon = throttled(() => {
    if (!isSent) sendNow();
  }, 33);
  const slider = new Slider(options, {
    drag: (value) => {
      latestValue = value;
      isSent = false;
      number.textContent = decimals(value, decimalPlaces);
      sendSoon();
    },
    end: sendNow, // not throttled: each arrow key is a drag, whose end must be sent before the next key
  });
  slider.setRange(control.low, control.high, control.step);
  const show = (value: Value): void => {
    if (slider.isDragging || !isSent) return; // a reply to an older value must not move the thumb back
    slider.show(Number(value));
    number.textContent = decimals(Number(value), decimalPlaces);
  };
  show(control.value);
  const root = el(
    "div",
    { class: "slider-line", title: control.about },
    el("span", { class: "line-name" }, control.title),
    number,
    slider.root,
  );
  return { root, show };
}
