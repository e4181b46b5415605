// Elements of the page, made by hand: one function, and the few kinds of button that all panels share.
import { icon, type IconName } from "./icons";

export type Child = Node | string | null | false | undefined;

export interface Traits {
  class?: string;
  title?: string;
  /** What a screen reader says; also the title, if there is no other. */
  label?: string;
  /** The name under which tests find it. */
  test?: string;
  role?: string;
  attributes?: Record<string, string>;
  click?: (event: MouseEvent) => void;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  traits: Traits = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (traits.class) made.className = traits.class;
  const title = traits.title ?? traits.label;
  if (title) made.title = title;
  if (traits.label) made.setAttribute("aria-label", traits.label);
  if (traits.test) made.dataset["test"] = traits.test;
  if (traits.role) made.setAttribute("role", traits.role);
  for (const [name, value] of Object.entries(traits.attributes ?? {})) made.setAttribute(name, value);
  if (traits.click) made.addEventListener("click", traits.click as EventListener);
  made.append(...kept(children));
  return made;
}

/** Puts these children in place of those that are there. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...kept(children));
}

/** Writes a text only if it is another: an unchanged text costs no layout. */
export function write(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function button(text: string, traits: Traits = {}, picture?: IconName): HTMLButtonElement {
  const made = el("button", { ...traits, class: `button ${traits.class ?? ""}`.trim() });
  made.type = "button";
  if (picture) made.append(icon(picture));
  if (text) made.append(el("span", {}, text));
  return made;
}

/** A button that shows a picture alone; `label` is what it is called. */
export function iconButton(picture: IconName, label: string, traits: Traits = {}): HTMLButtonElement {
  return button("", { ...traits, label, class: `icon-button ${traits.class ?? ""}`.trim() }, picture);
}

/** Shows whether a button that stays down is down. */
export function press(one: HTMLElement, isPressed: boolean): void {
  const now = String(isPressed);
  if (one.getAttribute("aria-pressed") !== now) one.setAttribute("aria-pressed", now);
}

/** A choice out of a list; value and title of each. */
export function choice(
  entries: readonly (readonly [value: string, title: string])[],
  value: string,
  traits: Traits,
  changed: (value: string) => void,
): HTMLSelectElement {
  const made = el("select", traits);
  for (const [key, title] of entries) {
    const option = el("option", {}, title);
    option.value = key;
    made.append(option);
  }
  made.value = value;
  made.addEventListener("change", () => changed(made.value));
  return made;
}

/** A switch with its words beside it. */
export function toggle(
  text: string,
  on: boolean,
  traits: Traits,
  changed: (on: boolean) => void,
): { root: HTMLLabelElement; box: HTMLInputElement } {
  const box = el("input", traits.test ? { test: traits.test } : {});
  box.type = "checkbox";
  box.checked = on;
  box.addEventListener("change", () => changed(box.checked));
  const shape: Traits = { class: `switch ${traits.class ?? ""}`.trim() };
  if (traits.title) shape.title = traits.title;
  return { root: el("label", shape, box, el("span", { class: "switch-track" }), el("span", {}, text)), box };
}

/** A part of a panel with its headline. */
export function section(headline: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "section" }, headline ? el("h3", {}, headline) : null, ...children);
}

/** A line with a name on the left and what is set on the right. */
export function line(name: string, title: string, ...children: Child[]): HTMLElement {
  return el(
    "div",
    { class: "line", title },
    el("span", { class: "line-name" }, name),
    el("span", { class: "line-value" }, ...children),
  );
}

function kept(children: Child[]): (Node | string)[] {
  return children.filter(
    (child): child is Node | string => child !== null && child !== false && child !== undefined && child !== "",
  );
}
