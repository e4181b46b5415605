// A picture at rest is drawn once more, finely and with smooth edges, on machines where every picture so would be too slow.
import {
  Mesh,
  OrthographicCamera,
  PlaneGeometry,
  Scene,
  ShaderMaterial,
  UnsignedByteType,
  WebGLRenderTarget,
  type WebGLRenderer,
} from "three";
import type { Quality } from "./quality";

const REST = 220; // ms without a change

/** Whether pictures are drawn by the processor: the name of the renderer says so. */
export function isSoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (gl === null) return false;
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

export class Still {
  private target: WebGLRenderTarget | null = null;
  private timer = 0;
  private readonly camera = new OrthographicCamera(-1, 1, 1, -1, 0, 1);
  private readonly material = new ShaderMaterial({
    depthTest: false,
    depthWrite: false,
    uniforms: { picture: { value: null } },
    vertexShader: "varying vec2 at; void main() { at = uv; gl_Position = vec4(position.xy, 0.0, 1.0); }",
    fragmentShader:
      "uniform sampler2D picture; varying vec2 at; void main() { gl_FragColor = texture2D(picture, at); }",
  });
  private readonly quad = new Scene().add(new Mesh(new PlaneGeometry(2, 2), this.material));

  /** isNeeded: false where edges are smooth anyway. */
  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly quality: Quality,
    private readonly isNeeded: boolean,
  ) {}

  /** Something was drawn; `again` draws the same, once nothing has come after it for a while. */
  after(again: () => void): void {
    if (!this.isNeeded) return;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.draw(again), REST);
  }

  /** Now; `again` draws what was drawn last. */
  draw(again: () => void): void {
    window.clearTimeout(this.timer);
    this.quality.drawAt(this.quality.finest);
    const { width, height } = this.renderer.domElement;
    if (this.target?.width !== width || this.target.height !== height) {
      this.target?.dispose();
      this.target = new WebGLRenderTarget(width, height, { samples: 4, type: UnsignedByteType });
    }
    this.renderer.setRenderTarget(this.target);
    again();
    this.renderer.setRenderTarget(null);
    this.material.uniforms.picture!.value = this.target.texture;
    this.renderer.render(this.quad, this.camera);
  }
}
