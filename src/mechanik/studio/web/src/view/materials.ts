// Materials of all bodies, in the colours of the theme. Light is computed at the vertices and not at the pixels, so
// that drawing is fast enough without a graphics card; bodies have enough vertices.
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
import { INSTANCE_GLSL } from "./instance_texture";
import type { Theme } from "./theme";

// GLSL before and in `main`; merged meshes have their poses in the instance texture
const INSTANCE_DECLARATIONS = `
  #ifdef IS_MERGED
    ${INSTANCE_GLSL}
  #endif`;
const WORLD_POSITION = `
  #ifdef IS_MERGED
    mat4 toWorld = itemPose();
  #elif defined(USE_INSTANCING)
    mat4 toWorld = modelMatrix * instanceMatrix;
  #else
    mat4 toWorld = modelMatrix;
  #endif
  vec4 worldPosition = toWorld * vec4(position, 1.0);`;

const LIT_VERTEX = `
  ${INSTANCE_DECLARATIONS}
  uniform vec3 sky, earth, sun, fill, toSun, toFill, glowColour, blendColour;
  uniform float glowStrength, opacity, blendShare;
  attribute vec4 color;
  varying vec4 shade;
  void main() {
    ${WORLD_POSITION}
    vec3 n = normalize(mat3(toWorld) * normal);
    vec3 eye = normalize(cameraPosition - worldPosition.xyz);
    if (FACES_BOTH == 1 && dot(n, eye) < 0.0) n = -n;
    float up = 0.5 + 0.5 * n.z;
    float facing = max(dot(n, toSun), 0.0);
    vec3 light = mix(earth, sky, up) + sun * facing + fill * max(dot(n, toFill), 0.0);
    float rim = pow(1.0 - abs(dot(n, eye)), 3.0);
    vec3 paint = pow(mix(color.rgb, blendColour, blendShare), vec3(2.2)); // light is added in linear colours
    vec3 lit = pow(paint * light + 0.05 * sky * rim + 0.04 * sun * facing * facing, vec3(1.0 / 2.2));
    shade = vec4(mix(lit, glowColour, glowStrength * (0.6 + 0.4 * rim)), color.a * opacity);
    #ifdef IS_MERGED
      worldPosition.xyz *= itemTint().x; // 0 for a link that is drawn separately
    #endif
    gl_Position = projectionMatrix * viewMatrix * worldPosition;
  }`;

const SHADE_FRAGMENT = `
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
  /** Shared by all materials with light. */
  private readonly lights: Lights = {
    sky: new Color(),
    earth: new Color(),
    sun: new Color(),
    fill: new Color(),
    toSun: new Vector3(0, 0, 1),
    toFill: new Vector3(1, 0, 0),
  };
  readonly body = this.lit({});
  readonly hovered = this.lit({ glowStrength: 0.22 });
  readonly selected = this.lit({ glowStrength: 0.32 });
  /** Transparent bodies; their opacity is in the alpha of the vertex colours. */
  readonly transparentBody = this.lit({ isTransparent: true });
  /** Bodies in contact, opaque or transparent. */
  readonly contact = this.lit({ blendShare: 0.85 });
  readonly transparentContact = this.lit({ isTransparent: true, blendShare: 0.85 });
  readonly obstacle = this.lit({ isTransparent: true, opacity: 0.72 });
  readonly obstacleHovered = this.lit({ isTransparent: true, opacity: 0.72, glowStrength: 0.22 });
  readonly obstacleSelected = this.lit({ isTransparent: true, opacity: 0.72, glowStrength: 0.32 });
  readonly obstacleContact = this.lit({ isTransparent: true, opacity: 0.72, blendShare: 0.8 });
  readonly alternative = this.lit({ isTransparent: true, opacity: 0.26, blendShare: 0.75 });
  /** Terrain, which fades into the background at its edges. */
  readonly ground = this.lit({ isTwoSided: true, isTransparent: true });
  readonly collider = new MeshBasicMaterial({
    transparent: true,
    opacity: 0.16,
    depthWrite: false,
    polygonOffset: true,
    polygonOffsetFactor: -1,
    polygonOffsetUnits: -4,
  });
  readonly colliderEdges = new LineBasicMaterial({ transparent: true, opacity: 0.8 });
  readonly colliderContact = this.collider.clone();
  readonly colliderContactEdges = this.colliderEdges.clone();
  /** Rim around the selection: back faces, moved outward on the screen. */
  readonly rim = new ShaderMaterial({
    side: BackSide,
    uniforms: { colour: { value: new Color() }, width: { value: 0.005 } },
    vertexShader: `
      uniform vec3 colour;
      uniform float width;
      varying vec4 shade;
      void main() {
        vec4 clipPosition = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
        vec2 outward = (projectionMatrix * vec4(normalize(normalMatrix * normal), 0.0)).xy;
        float size = length(outward);
        if (size > 1e-5) clipPosition.xy += outward / size * width * clipPosition.w;
        shade = vec4(colour, 1.0);
        gl_Position = clipPosition;
      }`,
    fragmentShader: SHADE_FRAGMENT,
  });
  /** Shadows: bodies projected onto a plane along the light, fainter with the height; the darkest shadow is drawn. */
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
      planeProjection: { value: new Matrix4() },
      dark: { value: new Color() },
      bright: { value: new Color() },
      planeNormal: { value: new Vector3(0, 0, 1) },
      planeHeight: { value: 0 },
      reach: { value: 1 },
    },
    vertexShader: `
      ${INSTANCE_DECLARATIONS}
      uniform mat4 planeProjection;
      uniform vec3 dark, bright, planeNormal;
      uniform float planeHeight, reach;
      varying vec4 shade;
      void main() {
        ${WORLD_POSITION}
        float height = (dot(worldPosition.xyz, planeNormal) - planeHeight) / reach;
        shade = vec4(mix(dark, bright, height < -0.02 ? 1.0 : clamp(height, 0.0, 0.85)), 1.0);
        gl_Position = projectionMatrix * viewMatrix * planeProjection * worldPosition;
      }`,
    fragmentShader: SHADE_FRAGMENT,
  });
  /** `body` and `shadow` for merged meshes. */
  readonly merged = this.lit({ isMerged: true });
  readonly mergedShadow = asMerged(this.shadow.clone(), this.shadow.uniforms);

  constructor() {
    this.ground.depthWrite = true;
    // alternatives cover each other, and the mechanism is drawn in front of them
    this.alternative.depthWrite = true;
    this.colliderContact.opacity = 0.4;
    for (const obstacle of [this.obstacle, this.obstacleHovered, this.obstacleSelected, this.obstacleContact])
      obstacle.depthWrite = true; // obstacles cover each other
    this.alternative.polygonOffset = true;
    this.alternative.polygonOffsetFactor = this.alternative.polygonOffsetUnits = 4;
  }

  setTheme(theme: Theme): void {
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
      (material.uniforms.glowColour!.value as Color).setHex(colour);
    }
    (this.alternative.uniforms.blendColour!.value as Color).setHex(theme.alternative);
    for (const { uniforms } of [this.contact, this.transparentContact, this.obstacleContact])
      (uniforms.blendColour!.value as Color).setHex(theme.contact);
    (this.rim.uniforms.colour!.value as Color).setHex(theme.selected);
    const { dark, bright } = this.shadow.uniforms;
    (bright!.value as Color).setHex(theme.background);
    (dark!.value as Color).setHex(theme.background).multiplyScalar(1 - theme.shadow);
    this.collider.color.setHex(theme.collider);
    this.colliderEdges.color.setHex(theme.collider);
    this.colliderContact.color.setHex(theme.contact);
    this.colliderContactEdges.color.setHex(theme.contact);
  }

  /** Directs the light from above a viewer in the direction `toViewer`, so that the visible sides are bright. */
  aimLights(toViewer: Vector3): void {
    const horizontal = new Vector3(toViewer.x, toViewer.y, 0);
    if (horizontal.lengthSq() < 1e-6) horizontal.set(0, -1, 0);
    horizontal.normalize();
    const across = new Vector3(-horizontal.y, horizontal.x, 0);
    this.lights.toSun.set(0, 0, 1.6).addScaledVector(horizontal, 0.75).addScaledVector(across, -0.7).normalize();
    this.lights.toFill.set(0, 0, 0.1).addScaledVector(across, 1).addScaledVector(horizontal, 0.5).normalize();
  }

  /**
   * Casts shadows on the plane through `origin` perpendicular to `normal`. Shadows of bodies at a height of `reach` (m)
   * are nearly invisible. steepness: direction of the shadows; 0: along the light, 1: perpendicular to the plane.
   */
  castShadowsOnto(origin: Vector3, normal: Vector3, reach: number, steepness: number): void {
    const { planeProjection, planeNormal, planeHeight, reach: reachUniform } = this.shadow.uniforms;
    const sun = this.lights.toSun.clone().lerp(normal, steepness).normalize();
    const height = origin.dot(normal);
    const slope = sun.dot(normal);
    // the projection along the light: p - s (n·p - height)
    const s = sun.toArray().map((x) => x / slope) as [number, number, number];
    const n = normal;
    (planeProjection!.value as Matrix4).set(
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
    (planeNormal!.value as Vector3).copy(normal);
    planeHeight!.value = height;
    reachUniform!.value = reach;
  }

  /** A material with light. glowStrength: strength of `glowColour`; blendShare: share of `blendColour`. */
  private lit(options: {
    glowStrength?: number;
    opacity?: number;
    blendShare?: number;
    isTransparent?: boolean;
    isTwoSided?: boolean;
    isMerged?: boolean;
  }): ShaderMaterial {
    const uniforms: Record<string, { value: unknown }> = {
      glowColour: { value: new Color() },
      blendColour: { value: new Color() },
      glowStrength: { value: options.glowStrength ?? 0 },
      opacity: { value: options.opacity ?? 1 },
      blendShare: { value: options.blendShare ?? 0 },
    };
    for (const [name, value] of Object.entries(this.lights)) uniforms[name] = { value };
    const material = new ShaderMaterial({
      uniforms,
      vertexShader: LIT_VERTEX,
      fragmentShader: SHADE_FRAGMENT,
      defines: { FACES_BOTH: options.isTwoSided ? 1 : 0 },
      transparent: options.isTransparent ?? false,
      depthWrite: !options.isTransparent,
      blending: NormalBlending,
      side: options.isTwoSided ? DoubleSide : FrontSide,
    });
    return options.isMerged ? asMerged(material, uniforms) : material;
  }
}

/** Makes a material read poses from the instance texture and share `uniforms`. */
function asMerged(material: ShaderMaterial, uniforms: Record<string, { value: unknown }>): ShaderMaterial {
  material.defines = { ...material.defines, IS_MERGED: 1 };
  material.uniforms = { ...uniforms, items: { value: null } };
  return material;
}
