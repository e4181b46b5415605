// Functions that create elements of the page.
import { icon, type IconName } from "./icons";

export type Child = Node | string | null | false | undefined;

export interface ElementOptions {
  class?: string;
  /** Tooltip. */
  title?: string;
  /** Label for screen readers; also the tooltip if there is no title. */
  label?: string;
  /** Name for tests. */
  test?: string;
  role?: string;
  attributes?: Record<string, string>;
  click?: (event: MouseEvent) => void;
}

/** Creates an element with its options and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  options: ElementOptions = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (options.class) element.className = options.class;
  const title = options.title ?? options.label;
  if (title) element.title = title;
  if (options.label) element.setAttribute("aria-label", options.label);
  if (options.test) element.dataset["test"] = options.test;
  if (options.role) element.setAttribute("role", options.role);
  for (const [name, value] of Object.entries(options.attributes ?? {})) element.setAttribute(name, value);
  if (options.click) element.addEventListener("click", options.click as EventListener);
  element.append(...presentChildren(children));
  return element;
}

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...presentChildren(children));
}

/** Sets a text if it differs, since each assignment causes a new layout. */
export function write(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function button(text: string, options: ElementOptions = {}, picture?: IconName): HTMLButtonElement {
  const element = el("button", { ...options, class: `button ${options.class ?? ""}`.trim() });
  element.type = "button";
  if (picture) element.append(icon(picture));
  if (text) element.append(el("span", {}, text));
  return element;
}

/** A button with an icon and no text; `label` is also its tooltip. */
export function iconButton(picture: IconName, label: string, options: ElementOptions = {}): HTMLButtonElement {
  return button("", { ...options, label, class: `icon-button ${options.class ?? ""}`.trim() }, picture);
}

/** Sets whether a toggle button is pressed. */
export function press(button: HTMLElement, isPressed: boolean): void {
  const text = String(isPressed);
  if (button.getAttribute("aria-pressed") !== text) button.setAttribute("aria-pressed", text);
}

/** A select element; entries are pairs of value and title. */
export function choice(
  entries: readonly (readonly [value: string, title: string])[],
  value: string,
  options: ElementOptions,
  onChange: (value: string) => void,
): HTMLSelectElement {
  const select = el("select", options);
  for (const [key, title] of entries) {
    const option = el("option", {}, title);
    option.value = key;
    select.append(option);
  }
  select.value = value;
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** A switch with its label. */
export function toggle(
  text: string,
  isOn: boolean,
  options: ElementOptions,
  onChange: (isOn: boolean) => void,
): { root: HTMLLabelElement; box: HTMLInputElement } {
  const box = el("input", options.test ? { test: options.test } : {});
  box.type = "checkbox";
  box.checked = isOn;
  box.addEventListener("change", () => onChange(box.checked));
  const labelOptions: ElementOptions = { class: `switch ${options.class ?? ""}`.trim() };
  if (options.title) labelOptions.title = options.title;
  return { root: el("label", labelOptions, box, el("span", { class: "switch-track" }), el("span", {}, text)), box };
}

/** A section of a panel with its heading. */
export function section(heading: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "section" }, heading ? el("h3", {}, heading) : null, ...children);
}

/** A line with a name on the left and a field on the right. title: tooltip. */
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
