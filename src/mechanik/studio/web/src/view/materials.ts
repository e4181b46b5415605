// The few materials that all bodies share, in the colours of the theme. Light is worked out at the corners of the
// triangles and not at each pixel: bodies are fine enough for it, and a machine without a graphics card keeps up.
import {
  AddEquation,
  BackSide,
  Color,
  CustomBlending,
  DoubleSide,
  FrontSide,
  LineBasicMaterial,
  Matrix4,
  MeshBasicMaterial,
  MinEquation,
  NormalBlending,
  OneFactor,
  ShaderMaterial,
  Vector3,
} from "three";
import { ITEM } from "./items";
import type { Theme } from "./theme";

// before `main`, and in it; a flock's bodies stand in the world where its items say
const OWN = `
  #ifdef IN_FLOCK
    ${ITEM}
  #endif`;
const PLACE = `
  #ifdef IN_FLOCK
    mat4 toWorld = itemPose();
  #elif defined(USE_INSTANCING)
    mat4 toWorld = modelMatrix * instanceMatrix;
  #else
    mat4 toWorld = modelMatrix;
  #endif
  vec4 place = toWorld * vec4(position, 1.0);`;

const LIT = `
  ${OWN}
  uniform vec3 sky, earth, sun, fill, toSun, toFill, glow, ink;
  uniform float glowing, opacity, wash;
  attribute vec4 color;
  varying vec4 shade;
  void main() {
    ${PLACE}
    vec3 n = normalize(mat3(toWorld) * normal);
    vec3 eye = normalize(cameraPosition - place.xyz);
    if (FACES_BOTH == 1 && dot(n, eye) < 0.0) n = -n;
    float up = 0.5 + 0.5 * n.z;
    float facing = max(dot(n, toSun), 0.0);
    vec3 light = mix(earth, sky, up) + sun * facing + fill * max(dot(n, toFill), 0.0);
    float rim = pow(1.0 - abs(dot(n, eye)), 3.0);
    vec3 paint = pow(mix(color.rgb, ink, wash), vec3(2.2)); // light adds up before it is written as a screen wants it
    vec3 lit = pow(paint * light + 0.05 * sky * rim + 0.04 * sun * facing * facing, vec3(1.0 / 2.2));
    shade = vec4(mix(lit, glow, glowing * (0.6 + 0.4 * rim)), color.a * opacity);
    #ifdef IN_FLOCK
      place.xyz *= itemTint().x; // nowhere, if it is drawn by itself
    #endif
    gl_Position = projectionMatrix * viewMatrix * place;
  }`;

const PLAIN = `
  varying vec4 shade;
  void main() {
    gl_FragColor = shade;
  }`;

interface Lights {
  sky: Color;
  earth: Color;
  sun: Color;
  fill: Color;
  toSun: Vector3;
  toFill: Vector3;
}

export class Materials {
  /** Shared by all: who changes it changes the light everywhere. */
  private readonly lights: Lights = {
    sky: new Color(),
    earth: new Color(),
    sun: new Color(),
    fill: new Color(),
    toSun: new Vector3(0, 0, 1),
    toFill: new Vector3(1, 0, 0),
  };
  readonly body = this.lit({});
  readonly hovered = this.lit({ glowing: 0.22 });
  readonly selected = this.lit({ glowing: 0.32 });
  /** Bodies that let light through; their own opacity is in the colours' alpha. */
  readonly glass = this.lit({ isGlass: true });
  /** What bumps into something, solid or not. */
  readonly clash = this.lit({ wash: 0.85 });
  readonly clashGlass = this.lit({ isGlass: true, wash: 0.85 });
  readonly obstacle = this.lit({ isGlass: true, opacity: 0.72 });
  readonly obstacleHovered = this.lit({ isGlass: true, opacity: 0.72, glowing: 0.22 });
  readonly obstacleSelected = this.lit({ isGlass: true, opacity: 0.72, glowing: 0.32 });
  readonly obstacleClash = this.lit({ isGlass: true, opacity: 0.72, wash: 0.8 });
  readonly ghost = this.lit({ isGlass: true, opacity: 0.26, wash: 0.75 });
  /** It fades into the background at its edges. */
  readonly ground = this.lit({ facesBoth: true, isGlass: true });
  readonly collider = new MeshBasicMaterial({
    transparent: true,
    opacity: 0.16,
    depthWrite: false,
    polygonOffset: true,
    polygonOffsetFactor: -1,
    polygonOffsetUnits: -4,
  });
  readonly colliderEdges = new LineBasicMaterial({ transparent: true, opacity: 0.8 });
  readonly colliderClash = this.collider.clone();
  readonly colliderClashEdges = this.colliderEdges.clone();
  /** A rim around the selected link: its back faces, pushed out by a share of the window. */
  readonly rim = new ShaderMaterial({
    side: BackSide,
    uniforms: { colour: { value: new Color() }, width: { value: 0.005 } },
    vertexShader: `
      uniform vec3 colour;
      uniform float width;
      varying vec4 shade;
      void main() {
        vec4 seen = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
        vec2 outward = (projectionMatrix * vec4(normalize(normalMatrix * normal), 0.0)).xy;
        float size = length(outward);
        if (size > 1e-5) seen.xy += outward / size * width * seen.w;
        shade = vec4(colour, 1.0);
        gl_Position = seen;
      }`,
    fragmentShader: PLAIN,
  });
  /** The shadow on a plane: bodies pressed flat along the sun's rays, fainter from higher up; the darkest wins. */
  readonly shadow = new ShaderMaterial({
    blending: CustomBlending,
    blendEquation: MinEquation,
    blendSrc: OneFactor,
    blendDst: OneFactor,
    blendEquationAlpha: AddEquation,
    transparent: false,
    depthWrite: false,
    depthTest: false,
    uniforms: {
      press: { value: new Matrix4() },
      dark: { value: new Color() },
      bright: { value: new Color() },
      normal3: { value: new Vector3(0, 0, 1) },
      level: { value: 0 },
      reach: { value: 1 },
    },
    vertexShader: `
      ${OWN}
      uniform mat4 press;
      uniform vec3 dark, bright, normal3;
      uniform float level, reach;
      varying vec4 shade;
      void main() {
        ${PLACE}
        float height = (dot(place.xyz, normal3) - level) / reach;
        shade = vec4(mix(dark, bright, height < -0.02 ? 1.0 : clamp(height, 0.0, 0.85)), 1.0);
        gl_Position = projectionMatrix * viewMatrix * press * place;
      }`,
    fragmentShader: PLAIN,
  });
  /** As `body` and `shadow`, for the bodies of many links in one draw. */
  readonly flock = this.lit({ inFlock: true });
  readonly flockShadow = inFlock(this.shadow.clone(), this.shadow.uniforms);

  constructor() {
    this.ground.depthWrite = true;
    // of ghosts only what is in front is seen, and the mechanism itself before all of them
    this.ghost.depthWrite = true;
    this.colliderClash.opacity = 0.4;
    for (const obstacle of [this.obstacle, this.obstacleHovered, this.obstacleSelected, this.obstacleClash])
      obstacle.depthWrite = true; // they hide one another
    this.ghost.polygonOffset = true;
    this.ghost.polygonOffsetFactor = this.ghost.polygonOffsetUnits = 4;
  }

  paint(theme: Theme): void {
    this.lights.sky.setHex(theme.sky).convertSRGBToLinear().multiplyScalar(theme.skyPower);
    this.lights.earth.setHex(theme.earth).convertSRGBToLinear().multiplyScalar(theme.skyPower);
    this.lights.sun.setHex(0xfff8ee).multiplyScalar(theme.sunPower);
    this.lights.fill.setHex(0xe8f0ff).multiplyScalar(0.3 * theme.sunPower);
    for (const [material, colour] of [
      [this.hovered, theme.hovered],
      [this.selected, theme.selected],
      [this.obstacleHovered, theme.hovered],
      [this.obstacleSelected, theme.selected],
    ] as const) {
      (material.uniforms.glow!.value as Color).setHex(colour);
    }
    (this.ghost.uniforms.ink!.value as Color).setHex(theme.ghost);
    for (const { uniforms } of [this.clash, this.clashGlass, this.obstacleClash])
      (uniforms.ink!.value as Color).setHex(theme.clash);
    (this.rim.uniforms.colour!.value as Color).setHex(theme.selected);
    const { dark, bright } = this.shadow.uniforms;
    (bright!.value as Color).setHex(theme.background);
    (dark!.value as Color).setHex(theme.background).multiplyScalar(1 - theme.shadow);
    this.collider.color.setHex(theme.collider);
    this.colliderEdges.color.setHex(theme.collider);
    this.colliderClash.color.setHex(theme.clash);
    this.colliderClashEdges.color.setHex(theme.clash);
  }

  /** Light from behind the shoulder of who looks from `from`, so that what is seen is not in the dark. */
  aim(from: Vector3): void {
    const side = new Vector3(from.x, from.y, 0);
    if (side.lengthSq() < 1e-6) side.set(0, -1, 0);
    side.normalize();
    const across = new Vector3(-side.y, side.x, 0);
    this.lights.toSun.set(0, 0, 1.6).addScaledVector(side, 0.75).addScaledVector(across, -0.7).normalize();
    this.lights.toFill.set(0, 0, 0.1).addScaledVector(across, 1).addScaledVector(side, 0.5).normalize();
  }

  /** Shadows fall on the plane square to `normal` through `foot`; they fade out at a height of `reach`.
   * steep: 0, as the sun stands, to 1, straight onto the plane. */
  shadeOnto(foot: Vector3, normal: Vector3, reach: number, steep: number): void {
    const { press, normal3, level, reach: far } = this.shadow.uniforms;
    const sun = this.lights.toSun.clone().lerp(normal, steep).normalize();
    const height = foot.dot(normal);
    const slope = sun.dot(normal);
    const s = sun.toArray().map((x) => x / slope) as [number, number, number];
    const n = normal;
    (press!.value as Matrix4).set(
      1 - s[0] * n.x,
      -s[0] * n.y,
      -s[0] * n.z,
      s[0] * height,
      -s[1] * n.x,
      1 - s[1] * n.y,
      -s[1] * n.z,
      s[1] * height,
      -s[2] * n.x,
      -s[2] * n.y,
      1 - s[2] * n.z,
      s[2] * height,
      0,
      0,
      0,
      1,
    );
    (normal3!.value as Vector3).copy(normal);
    level!.value = height;
    far!.value = reach;
  }

  private lit(how: {
    glowing?: number;
    opacity?: number;
    wash?: number;
    isGlass?: boolean;
    facesBoth?: boolean;
    inFlock?: boolean;
  }): ShaderMaterial {
    const uniforms: Record<string, { value: unknown }> = {
      glow: { value: new Color() },
      ink: { value: new Color() },
      glowing: { value: how.glowing ?? 0 },
      opacity: { value: how.opacity ?? 1 },
      wash: { value: how.wash ?? 0 },
    };
    for (const [name, value] of Object.entries(this.lights)) uniforms[name] = { value };
    const material = new ShaderMaterial({
      uniforms,
      vertexShader: LIT,
      fragmentShader: PLAIN,
      defines: { FACES_BOTH: how.facesBoth ? 1 : 0 },
      transparent: how.isGlass ?? false,
      depthWrite: !how.isGlass,
      blending: NormalBlending,
      side: how.facesBoth ? DoubleSide : FrontSide,
    });
    return how.inFlock ? inFlock(material, uniforms) : material;
  }
}

/** Poses come from a flock's items; `uniforms` stay those of whoever changes them. */
function inFlock(material: ShaderMaterial, uniforms: Record<string, { value: unknown }>): ShaderMaterial {
  material.defines = { ...material.defines, IN_FLOCK: 1 };
  material.uniforms = { ...uniforms, items: { value: null } };
  return material;
}
