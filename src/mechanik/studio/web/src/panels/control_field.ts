// One control of a scene: a slider, switch, choice, button, text or number.
import { button, choice, el, line, toggle } from "./element";
import { decimals, spoken } from "./format";
import { paced } from "./pace";
import { Slider } from "./slider";
import type { ControlInfo, SetControl } from "../messages";

type Value = SetControl["value"];
/** Sets a control; while a slider is held, all that it sets is one step of undo. */
type SetValue = (value: Value, isHeld?: boolean) => void;

export interface ControlField {
  root: HTMLElement;
  show(value: Value): void;
}

export function controlField(control: ControlInfo, set: SetValue): ControlField {
  const traits = { test: `control-${control.name}`, label: control.title, title: control.about || control.title };
  switch (control.kind) {
    case "slider":
      return sliderField(control, traits, set);
    case "switch": {
      const { root, box } = toggle(control.title, control.value === true, traits, (value) => set(value));
      return { root, show: (value) => (box.checked = value === true) };
    }
    case "choice": {
      const select = choice(
        control.choices.map((one) => [one, spoken(one)]),
        String(control.value),
        traits,
        (value) => set(value),
      );
      return { root: line(control.title, control.about, select), show: (value) => (select.value = String(value)) };
    }
    case "button":
      return {
        root: button(control.title, { ...traits, class: "is-wide", click: () => set(true) }),
        show: () => undefined,
      };
    case "number":
    case "text": {
      const input = el("input", { ...traits, class: control.kind === "number" ? "number" : "" });
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
  traits: { test: string; label: string; title: string },
  set: SetValue,
): ControlField {
  const places = control.step >= 1 ? 0 : Math.min(4, Math.max(2, Math.ceil(-Math.log10(control.step || 0.01))));
  const number = el("output", { class: "slider-number" });
  let wanted = Number(control.value);
  let isSent = true;
  const tell = (): void => {
    isSent = true;
    set(wanted, slider.isHeld);
  };
  const send = paced(() => {
    if (!isSent) tell();
  }, 33);
  const slider = new Slider(traits, {
    hold: (value) => {
      wanted = value;
      isSent = false;
      number.textContent = decimals(value, places);
      send();
    },
    letGo: tell, // once more, now that it is not held; at once, so that a key that is pressed next comes after it
  });
  slider.range(control.low, control.high, control.step);
  const show = (value: Value): void => {
    if (slider.isHeld || !isSent) return; // an answer to an older place must not pull the thumb back
    slider.show(Number(value));
    number.textContent = decimals(Number(value), places);
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
