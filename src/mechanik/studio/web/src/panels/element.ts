// Helpers to create elements of the page.
import { icon, type IconName } from "./icons";

export type Child = Node | string | null | false | undefined;

export interface ElementOptions {
  class?: string;
  title?: string;
  /** Label for screen readers; also the title, if there is none. */
  label?: string;
  /** Name for tests. */
  test?: string;
  role?: string;
  attributes?: Record<string, string>;
  click?: (event: MouseEvent) => void;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  traits: ElementOptions = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (traits.class) element.className = traits.class;
  const title = traits.title ?? traits.label;
  if (title) element.title = title;
  if (traits.label) element.setAttribute("aria-label", traits.label);
  if (traits.test) element.dataset["test"] = traits.test;
  if (traits.role) element.setAttribute("role", traits.role);
  for (const [name, value] of Object.entries(traits.attributes ?? {})) element.setAttribute(name, value);
  if (traits.click) element.addEventListener("click", traits.click as EventListener);
  element.append(...presentChildren(children));
  return element;
}

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...presentChildren(children));
}

/** Sets a text if it differs: an unchanged text costs no layout. */
export function write(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function button(text: string, traits: ElementOptions = {}, picture?: IconName): HTMLButtonElement {
  const element = el("button", { ...traits, class: `button ${traits.class ?? ""}`.trim() });
  element.type = "button";
  if (picture) element.append(icon(picture));
  if (text) element.append(el("span", {}, text));
  return element;
}

/** A button with an icon and no text; `label` is its title. */
export function iconButton(picture: IconName, label: string, traits: ElementOptions = {}): HTMLButtonElement {
  return button("", { ...traits, label, class: `icon-button ${traits.class ?? ""}`.trim() }, picture);
}

/** Sets the state of a toggle button. */
export function press(button: HTMLElement, isPressed: boolean): void {
  const now = String(isPressed);
  if (button.getAttribute("aria-pressed") !== now) button.setAttribute("aria-pressed", now);
}

/** A select element; entries are pairs of value and title. */
export function choice(
  entries: readonly (readonly [value: string, title: string])[],
  value: string,
  traits: ElementOptions,
  changed: (value: string) => void,
): HTMLSelectElement {
  const select = el("select", traits);
  for (const [key, title] of entries) {
    const option = el("option", {}, title);
    option.value = key;
    select.append(option);
  }
  select.value = value;
  select.addEventListener("change", () => changed(select.value));
  return select;
}

/** A switch with its label. */
export function toggle(
  text: string,
  on: boolean,
  traits: ElementOptions,
  changed: (on: boolean) => void,
): { root: HTMLLabelElement; box: HTMLInputElement } {
  const box = el("input", traits.test ? { test: traits.test } : {});
  box.type = "checkbox";
  box.checked = on;
  box.addEventListener("change", () => changed(box.checked));
  const shape: ElementOptions = { class: `switch ${traits.class ?? ""}`.trim() };
  if (traits.title) shape.title = traits.title;
  return { root: el("label", shape, box, el("span", { class: "switch-track" }), el("span", {}, text)), box };
}

/** A section of a panel with its heading. */
export function section(headline: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "section" }, headline ? el("h3", {}, headline) : null, ...children);
}

/** A line with a name on the left and a field on the right. */
export function line(name: string, title: string, ...children: Child[]): HTMLElement {
  return el(
    "div",
    { class: "line", title },
    el("span", { class: "line-name" }, name),
    el("span", { class: "line-value" }, ...children),
  );
}

function presentChildren(children: Child[]): (Node | string)[] {
  return children.filter(
    (child): child is Node | string => child !== null && child !== false && child !== undefined && child !== "",
  );
}
