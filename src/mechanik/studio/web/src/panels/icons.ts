// Icons of buttons: SVG paths in a square of 24 x 24 units, in the colour of the text.

const PATHS = {
  home: "M4 11 12 4l8 7M6 10v9h12v-9M10 19v-5h4v5",
  undo: "M9 6 4 11l5 5M4 11h10a6 6 0 0 1 0 12h-3",
  redo: "M15 6l5 5-5 5M20 11H10a6 6 0 0 0 0 12h3",
  move: "M12 3v18M3 12h18M9 6l3-3 3 3M9 18l3 3 3-3M6 9l-3 3 3 3M18 9l3 3-3 3",
  rotate: "M20 12a8 8 0 1 1-3-6.2M20 3v5h-5",
  both: "M12 8v8M8 12h8M20.5 14A9 9 0 0 1 4 16M3.5 10A9 9 0 0 1 20 8M20 4v4h-4M4 20v-4h4",
  world: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3.5 6 3.5 9s-.5 6-3.5 9c-3-3-3.5-6-3.5-9S9 6 12 3z",
  local: "M6 18V5M6 18h13M6 18l6-6M3.5 7.5 6 5l2.5 2.5M16.5 15.5 19 18l-2.5 2.5",
  snap: "M6 4v8a6 6 0 0 0 12 0V4h-4v8a2 2 0 0 1-4 0V4zM6 8h4M14 8h4",
  frame: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5M9 12h6M12 9v6",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  eye:
    "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z" +
    "M12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  hidden:
    "M4 4l16 16M9.5 6a9 9 0 0 1 2.5-.5c6 0 9.5 6.5 9.5 6.5a16 16 0 0 1-3 3.700" +
    "M6 8a15 15 0 0 0-3.5 4S6 18.5 12 18.5a9 9 0 0 0 3.5-.7",
  help: "M9 9a3 3 0 1 1 4.5 2.600c-1 .6-1.5 1.200-1.5 2.400M12 17.5v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  scene: "M4 7h16v12H4zM4 7l3-4h4L8 7M12 7l3-4h4l-3 4M10 11l5 2.5-5 2.5z",
  solve: "M4 4v16h16M7 9c3 0 3 7 6 7s3-3 7-3",
  joints: "M6 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM8 7l6 4M16 10a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM15 15l-4 5",
  goals: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 1v4M12 19v4M1 12h4M19 12h4",
  model: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  compare: "M4 20V10h4v10zM10 20V4h4v16zM16 20v-7h4v7z",
  record: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  play: "M7 4l13 8-13 8z",
  pause: "M7 4h3v16H7zM14 4h3v16h-3z",
  step: "M5 4l10 8-10 8zM18 4v16",
  stop: "M6 6h12v12H6z",
  loop: "M4 12V9a3 3 0 0 1 3-3h11M15 3l3 3-3 3M20 12v3a3 3 0 0 1-3 3H6M9 21l-3-3 3-3",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  unlock: "M6 11h12v9H6zM8.5 11V7.5a3.5 3.5 0 0 1 6.800-1.200",
  pin: "M12 14v7M8 3h8l-1 5 3 5H6l3-5z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  more: "M6 9l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  file: "M6 3h8l4 4v14H6zM14 3v4h4M12 18v-7M9 14l3-3 3 3",
  save: "M12 4v11M8 11l4 4 4-4M5 20h14",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21",
  reload: "M20 12a8 8 0 1 1-2.5-5.800M20 3v5h-5",
} as const;

export type IconName = keyof typeof PATHS;

const SVG = "http://www.w3.org/2000/svg";

export function icon(name: IconName): SVGSVGElement {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  picture.append(path);
  return picture;
}

/** Replaces the icon of a button. */
export function setIcon(button: Element, name: IconName): void {
  const path = button.querySelector("path");
  if (path && path.getAttribute("d") !== PATHS[name]) path.setAttribute("d", PATHS[name]);
}
