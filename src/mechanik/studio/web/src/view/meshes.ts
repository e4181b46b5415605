// Mesh files; files and loaders are fetched when they are needed.
import { LoadingManager, Mesh, type BufferGeometry, type Color, type Material, type Object3D } from "three";
import type { ShapeInfo } from "../messages";
import { fetchWithAccess } from "../connection/access";
import { withFileColours } from "./vertex_colors";
import { stripAttributes, flipTriangles, withIndex } from "./shapes";

/**
 * A part of a mesh file, in the frame of the file. colour: sRGB; null if the file has none. If it varies, the geometry
 * has vertex colours.
 */
export interface Piece {
  geometry: BufferGeometry;
  colour: Color | null;
  opacity: number;
}

/** Addresses of the files that a mesh refers to, by the names used in the mesh. */
type Dependencies = Record<string, string>;

const MAX_CACHED = 256;
// replaces missing textures: one white pixel
const WHITE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsRYLRQAAAABJRU5ErkJggg==";
const cache = new Map<string, Promise<Piece[]>>();

/** The parts of a mesh shape, scaled; they belong to the caller. */
export async function fetchShape(shape: ShapeInfo): Promise<Piece[]> {
  if (shape.mesh === null) throw new Error("the file was not found");
  const pieces = await fetchMesh(shape.mesh, shape.extension, shape.dependencies);
  const [x = 1, y = x, z = x] = shape.sizes;
  return pieces.map((piece) => {
    const geometry = piece.geometry.clone().scale(x, y, z);
    return { ...piece, geometry: x * y * z < 0 ? flipTriangles(geometry) : geometry };
  });
}

/** The parts of the mesh at an address. They are shared: clone before a change. */
function fetchMesh(address: string, extension: string, dependencies: Dependencies): Promise<Piece[]> {
  const key = [address, ...Object.values(dependencies)].join(" "); // other textures make another mesh
  let pieces = cache.get(key);
  if (pieces === undefined) {
    pieces = load(address, extension.toLowerCase().replace(/^\./, ""), dependencies);
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, pieces);
    pieces.catch(() => cache.delete(key));
  }
  return pieces;
}

async function load(address: string, extension: string, dependencies: Dependencies): Promise<Piece[]> {
  const response = await fetchFile(address);
  const files = new DependencyFiles(dependencies);
  switch (extension) {
    case "stl": {
      const { STLLoader } = await import("three/addons/loaders/STLLoader.js");
      const geometry = stripAttributes(new STLLoader().parse(await response.arrayBuffer()));
      return [{ geometry, colour: null, opacity: 1 }];
    }
    case "obj": {
      const { OBJLoader } = await import("three/addons/loaders/OBJLoader.js");
      const { MTLLoader } = await import("three/addons/loaders/MTLLoader.js");
      const libraries = Object.keys(dependencies).filter((name) => /\.mtl$/i.test(name));
      const texts = await Promise.all(libraries.map(async (name) => (await fetchFile(dependencies[name]!)).text()));
      const materials = new MTLLoader(files.manager).parse(texts.join("\n"), "");
      const scene = new OBJLoader().setMaterials(materials).parse(await response.text());
      await files.loaded();
      return meshPieces(scene);
    }
    case "dae": {
      const { ColladaLoader } = await import("three/addons/loaders/ColladaLoader.js");
      const text = (await response.text())
        // the loader would rotate z-up files to y-up, but robot meshes use the coordinates as they are
        .replace(/<up_axis>[^<]*<\/up_axis>/, "<up_axis>Y_UP</up_axis>")
        // TGA files have a loader of their own, which would not find the address
        .replace(/\.tga\s*<\/init_from>/gi, "</init_from>");
      const scene = new ColladaLoader(files.manager).parse(text, "")?.scene;
      if (!scene) throw new Error("it contains no geometry");
      await files.loaded();
      return meshPieces(scene);
    }
    case "glb":
    case "gltf": {
      const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
      const data = await response.arrayBuffer();
      if (extension === "gltf") files.checkBuffers(new TextDecoder().decode(data));
      // only this format has linear colours
      return meshPieces((await new GLTFLoader(files.manager).parseAsync(data, "")).scene, true);
    }
    default:
      throw new Error(`the format '${extension}' is not supported; use STL, DAE, OBJ, GLTF or GLB`);
  }
}

async function fetchFile(address: string): Promise<Response> {
  const response = await fetchWithAccess(address);
  if (!response.ok) throw new Error(`the server does not have the file (${response.status})`);
  return response;
}

/** Restricts loaders to the dependencies of the mesh: no other address in a mesh is ever fetched. */
class DependencyFiles {
  readonly manager = new LoadingManager();
  private isBusy = false;
  private done: (() => void) | null = null;

  constructor(private readonly dependencies: Dependencies) {
    this.manager.setURLModifier((name) => (/^(data|blob):/.test(name) ? name : (this.find(name) ?? WHITE)));
    this.manager.onStart = () => (this.isBusy = true);
    this.manager.onLoad = () => {
      this.isBusy = false;
      this.done?.();
    };
  }

  /** Resolves when all textures are loaded or have failed. */
  loaded(): Promise<void> {
    return this.isBusy ? new Promise((done) => (this.done = done)) : Promise.resolve();
  }

  /** Throws if a buffer of a .gltf file is missing. */
  checkBuffers(text: string): void {
    const { buffers = [] } = JSON.parse(text) as { buffers?: { uri?: string }[] };
    for (const { uri = "" } of buffers) {
      if (!uri.startsWith("data:") && this.find(uri) === undefined)
        throw new Error(`the file '${uri.slice(0, 80)}', which it refers to, is missing; pack it into the zip file`);
    }
  }

  private find(name: string): string | undefined {
    if (Object.hasOwn(this.dependencies, name)) return this.dependencies[name];
    const last = lastPart(name);
    return Object.entries(this.dependencies).find(([reference]) => lastPart(reference) === last)?.[1];
  }
}

function lastPart(name: string): string {
  return name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
}

/** isLight: colours are linear, not sRGB. */
function meshPieces(root: Object3D, isLight = false): Piece[] {
  const pieces: Piece[] = [];
  root.updateMatrixWorld(true);
  root.traverse((object) => {
    if (!(object instanceof Mesh)) return;
    const source = object.geometry as BufferGeometry;
    const materials: Material[] = Array.isArray(object.material)
      ? (object.material as Material[])
      : [object.material as Material];
    const groups = materials.length > 1 && source.groups.length > 0 ? source.groups : [null];
    for (const group of groups) {
      const material = materials[group?.materialIndex ?? 0];
      const colour = material !== undefined && "color" in material ? (material.color as Color).clone() : null;
      if (isLight) colour?.convertLinearToSRGB();
      const own = withFileColours(
        group ? cut(source, group.start, group.count) : source.clone(),
        material,
        colour,
        isLight,
      );
      const geometry = stripAttributes(own);
      geometry.applyMatrix4(object.matrixWorld);
      if (object.matrixWorld.determinant() < 0) flipTriangles(geometry);
      const isDefaultMaterial =
        colour?.getHex() === 0xffffff && material?.name === "" && !geometry.hasAttribute("color"); // of the loader
      pieces.push(
        { geometry, colour: isDefaultMaterial ? null : colour, opacity: material?.transparent ? material.opacity : 1 },
      );
    }
  });
  if (pieces.length === 0) throw new Error("it contains no geometry");
  return pieces;
}

/** The triangles of a group. */
function cut(whole: BufferGeometry, start: number, count: number): BufferGeometry {
  const part = withIndex(whole.clone());
  part.setIndex([...part.index!.array.slice(start, start + count)]);
  part.clearGroups();
  return part;
}
