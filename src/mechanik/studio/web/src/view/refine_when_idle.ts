// Draws a frame again with smooth edges when nothing changes, on machines where this is too slow for every frame.
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
import type { RenderQuality } from "./quality";

const IDLE_MS = 220; // time without a change before a frame is refined

/** Whether the name of the renderer is that of a software renderer. */
export function isSoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (gl === null) return false;
  const rendererInfo = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(rendererInfo ? rendererInfo.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

export class IdleRefiner {
  private buffer: WebGLRenderTarget | null = null;
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

  /** isNeeded: whether frames are drawn without smooth edges. */
  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly quality: RenderQuality,
    private readonly isNeeded: boolean,
  ) {}

  /** Schedules the refinement of a drawn frame; `redraw` draws the same frame. */
  schedule(redraw: () => void): void {
    if (!this.isNeeded) return;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.draw(redraw), IDLE_MS);
  }

  /** Refines the last frame; `redraw` draws the same frame. */
  draw(redraw: () => void): void {
    window.clearTimeout(this.timer);
    this.quality.drawAt(this.quality.finestRatio);
    const { width, height } = this.renderer.domElement;
    if (this.buffer?.width !== width || this.buffer.height !== height) {
      this.buffer?.dispose();
      this.buffer = new WebGLRenderTarget(width, height, { samples: 4, type: UnsignedByteType });
    }
    this.renderer.setRenderTarget(this.buffer);
    redraw();
    this.renderer.setRenderTarget(null);
    this.material.uniforms.picture!.value = this.buffer.texture;
    this.renderer.render(this.quad, this.camera);
  }
}
