// Mesh files, fetched when they are needed; so are the readers of their formats.
import { LoadingManager, Mesh, type BufferGeometry, type Color, type Material, type Object3D } from "three";
import type { ShapeInfo } from "../messages";
import { fetchWithAccess } from "../wire/access";
import { coloured } from "./paint";
import { bare, flip, indexed } from "./shapes";

/** A piece of a mesh file, in the file's frame. colour: as the file says, as on a screen; null if it says nothing. If
 * it differs from place to place, the geometry has colours of its own. */
export interface Piece {
  geometry: BufferGeometry;
  colour: Color | null;
  opacity: number;
}

/** Addresses of the files that a mesh names, by the names that it has for them. */
type Beside = Record<string, string>;

const MOST_KEPT = 256;
// stands for pictures that did not come along: one white pixel
const WHITE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsRYLRQAAAABJRU5ErkJggg==";
const kept = new Map<string, Promise<Piece[]>>();

/** The pieces of a shape that is a mesh, at its size; they are the caller's own. */
export async function fetchShape(shape: ShapeInfo): Promise<Piece[]> {
  if (shape.mesh === null) throw new Error("the file was not found beside the model");
  const found = await fetchMesh(shape.mesh, shape.extension, shape.dependencies);
  const [x = 1, y = x, z = x] = shape.sizes;
  return found.map((piece) => {
    const geometry = piece.geometry.clone().scale(x, y, z);
    return { ...piece, geometry: x * y * z < 0 ? flip(geometry) : geometry };
  });
}

/** The pieces of the mesh at this address. They are shared: clone before changing. */
function fetchMesh(address: string, ending: string, beside: Beside): Promise<Piece[]> {
  const key = [address, ...Object.values(beside)].join(" "); // with other pictures it is another mesh
  let found = kept.get(key);
  if (found === undefined) {
    found = load(address, ending.toLowerCase().replace(/^\./, ""), beside);
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, found);
    found.catch(() => kept.delete(key));
  }
  return found;
}

async function load(address: string, ending: string, beside: Beside): Promise<Piece[]> {
  const answer = await fetched(address);
  const around = new Surroundings(beside);
  switch (ending) {
    case "stl": {
      const { STLLoader } = await import("three/addons/loaders/STLLoader.js");
      return [{ geometry: bare(new STLLoader().parse(await answer.arrayBuffer())), colour: null, opacity: 1 }];
    }
    case "obj": {
      const { OBJLoader } = await import("three/addons/loaders/OBJLoader.js");
      const { MTLLoader } = await import("three/addons/loaders/MTLLoader.js");
      const libraries = Object.keys(beside).filter((name) => /\.mtl$/i.test(name));
      const texts = await Promise.all(libraries.map(async (name) => (await fetched(beside[name]!)).text()));
      const materials = new MTLLoader(around.manager).parse(texts.join("\n"), "");
      const scene = new OBJLoader().setMaterials(materials).parse(await answer.text());
      await around.settled();
      return pieces(scene);
    }
    case "dae": {
      const { ColladaLoader } = await import("three/addons/loaders/ColladaLoader.js");
      const text = (await answer.text())
        // the reader would turn z-up files to y-up; robots are z-up and mean the numbers as they are
        .replace(/<up_axis>[^<]*<\/up_axis>/, "<up_axis>Y_UP</up_axis>")
        .replace(/\.tga\s*<\/init_from>/gi, "</init_from>"); // it would be read by other means, as no other picture is
      const scene = new ColladaLoader(around.manager).parse(text, "")?.scene;
      if (!scene) throw new Error("there is nothing in it to draw");
      await around.settled();
      return pieces(scene);
    }
    case "glb":
    case "gltf": {
      const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
      const data = await answer.arrayBuffer();
      if (ending === "gltf") around.checkBuffers(new TextDecoder().decode(data));
      // this format alone writes light, not colours of a screen
      return pieces((await new GLTFLoader(around.manager).parseAsync(data, "")).scene, true);
    }
    default:
      throw new Error(`files that end with '${ending}' cannot be drawn; STL, DAE, OBJ, GLTF and GLB can`);
  }
}

async function fetched(address: string): Promise<Response> {
  const answer = await fetchWithAccess(address);
  if (!answer.ok) throw new Error(`the server has no such file (${answer.status})`);
  return answer;
}

/** Whatever a reader asks for is one of the files that came along, or nothing: no address in a mesh is ever asked. */
class Surroundings {
  readonly manager = new LoadingManager();
  private isBusy = false;
  private done: (() => void) | null = null;

  constructor(private readonly beside: Beside) {
    this.manager.setURLModifier((name) => (/^(data|blob):/.test(name) ? name : (this.find(name) ?? WHITE)));
    this.manager.onStart = () => (this.isBusy = true);
    this.manager.onLoad = () => {
      this.isBusy = false;
      this.done?.();
    };
  }

  /** Once the pictures have come, or have failed to. */
  settled(): Promise<void> {
    return this.isBusy ? new Promise((done) => (this.done = done)) : Promise.resolve();
  }

  /** Without its numbers a .gltf is nothing. */
  checkBuffers(text: string): void {
    const { buffers = [] } = JSON.parse(text) as { buffers?: { uri?: string }[] };
    for (const { uri = "" } of buffers) {
      if (!uri.startsWith("data:") && this.find(uri) === undefined)
        throw new Error(`it needs the file '${uri.slice(0, 80)}', which did not come along; pack it into the zip`);
    }
  }

  private find(name: string): string | undefined {
    if (Object.hasOwn(this.beside, name)) return this.beside[name];
    const last = lastPart(name);
    return Object.entries(this.beside).find(([said]) => lastPart(said) === last)?.[1];
  }
}

function lastPart(name: string): string {
  return name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
}

/** isLight: colours are amounts of light, not as on a screen. */
function pieces(root: Object3D, isLight = false): Piece[] {
  const found: Piece[] = [];
  root.updateMatrixWorld(true);
  root.traverse((object) => {
    if (!(object instanceof Mesh)) return;
    const whole = object.geometry as BufferGeometry;
    const materials: Material[] = Array.isArray(object.material)
      ? (object.material as Material[])
      : [object.material as Material];
    const groups = materials.length > 1 && whole.groups.length > 0 ? whole.groups : [null];
    for (const group of groups) {
      const material = materials[group?.materialIndex ?? 0];
      const named = material !== undefined && "color" in material ? (material.color as Color).clone() : null;
      if (isLight) named?.convertLinearToSRGB();
      const own = coloured(group ? cut(whole, group.start, group.count) : whole.clone(), material, named, isLight);
      const geometry = bare(own);
      geometry.applyMatrix4(object.matrixWorld);
      if (object.matrixWorld.determinant() < 0) flip(geometry);
      const isUsual =
        named?.getHex() === 0xffffff && material?.name === "" && !geometry.hasAttribute("color"); // the reader's own
      found.push({ geometry, colour: isUsual ? null : named, opacity: material?.transparent ? material.opacity : 1 });
    }
  });
  if (found.length === 0) throw new Error("there is nothing in it to draw");
  return found;
}

/** The triangles of a group alone. */
function cut(whole: BufferGeometry, start: number, count: number): BufferGeometry {
  const part = indexed(whole.clone());
  part.setIndex([...part.index!.array.slice(start, start + count)]);
  part.clearGroups();
  return part;
}
