// Colours of the dark and the light theme, in sRGB, without conversion.
import { Color, ColorManagement } from "three";

ColorManagement.enabled = false; // software renderers would spend a third of the time on the conversion of pixels

export interface Theme {
  background: number;
  gridMinor: number;
  gridMajor: number;
  sky: number; // light from above
  earth: number; // light from below
  skyPower: number;
  sunPower: number;
  shadow: number; // opacity
  placeholder: number;
  line: number;
  rotation: number;
  translation: number;
  spherical: number;
  mimic: number;
  locked: number;
  atLimit: number;
  selected: number;
  hovered: number;
  reached: number;
  missed: number;
  disabled: number;
  pinned: number;
  violated: number;
  closed: number;
  collider: number;
  contact: number;
  obstacle: number;
  alternative: number;
  terrain: number;
  contour: number;
  path: number;
}

const SHARED = { atLimit: 0xe5484d, violated: 0xf0424a, contact: 0xf01428, selected: 0xff9f2e, pinned: 0x8e6cf0 };

export const THEMES: Record<"dark" | "light", Theme> = {
  dark: {
    ...SHARED,
    background: 0x1a1d23,
    gridMinor: 0x262a32,
    gridMajor: 0x383e4a,
    sky: 0xdfe8f5,
    earth: 0x3a3d45,
    skyPower: 0.46,
    sunPower: 0.58,
    shadow: 0.32,
    placeholder: 0xaab4c3,
    line: 0xb9c4d4,
    rotation: 0x4aa3ff,
    translation: 0x35c9b3,
    spherical: 0xb58cff,
    mimic: 0x6d7c92,
    locked: 0x6b7078,
    hovered: 0xffd08a,
    reached: 0x37d39b,
    missed: 0xffb13d,
    disabled: 0x757c88,
    closed: 0x8fa0b8,
    collider: 0xf0a04b,
    obstacle: 0x8d93a3,
    alternative: 0x86b6ff,
    terrain: 0x565c50,
    contour: 0x848b78,
    path: 0x5fc8ff,
  },
  light: {
    ...SHARED,
    background: 0xe9edf2,
    gridMinor: 0xdbe1e9,
    gridMajor: 0xc2cad5,
    sky: 0xffffff,
    earth: 0xa8acb6,
    skyPower: 0.5,
    sunPower: 0.5,
    shadow: 0.13,
    placeholder: 0x7d8899,
    line: 0x4c5768,
    rotation: 0x1473e6,
    translation: 0x0a9884,
    spherical: 0x7d4fe0,
    mimic: 0x9aa7ba,
    locked: 0x9a9fa8,
    hovered: 0xffb65c,
    reached: 0x12a06c,
    missed: 0xdc7c00,
    disabled: 0xa0a6b0,
    closed: 0x6f7f96,
    collider: 0xd97a12,
    obstacle: 0x9aa0b0,
    alternative: 0x4d86e0,
    terrain: 0xbcc1b0,
    contour: 0x8e947f,
    path: 0x0f84d8,
  },
};

// for bodies without a colour: muted, and different from each other and from the colours of goals
const BODY_COLOURS = [0xc9d2de, 0x8fa6c4, 0xb7c4b1, 0xd0bfa6, 0xa9a7c9, 0x9fc0c2, 0xc8a9a4, 0xbfc3c9];

export function paletteColour(k: number, result: Color): Color {
  return result.setHex(BODY_COLOURS[k % BODY_COLOURS.length]!);
}
