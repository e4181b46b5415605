// Loads mesh files; files and loaders are fetched when they are needed.
import { LoadingManager, Mesh, type BufferGeometry, type Color, type Material, type Object3D } from "three";
import type { ShapeInfo } from "../messages";
import { fetchWithAccess } from "../connection/access";
import { withFileColours } from "./vertex_colors";
import { stripAttributes, flipTriangles, withIndex } from "./shapes";

/**
 * A part of a mesh file, in the frame of the file. colour: sRGB; null if the file has no colour. If the colour varies,
 * the geometry has vertex colours.
 */
export interface Piece {
  geometry: BufferGeometry;
  colour: Color | null;
  opacity: number;
}

/** URL paths of the files that a mesh refers to, by their names in the mesh file. */
type Dependencies = Record<string, string>;

const MAX_CACHED_MESHES = 256; // a full cache is cleared
// replaces missing textures: one white pixel
const WHITE_PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsRYLRQAAAABJRU5ErkJggg==";
const cache = new Map<string, Promise<Piece[]>>();

/** The scaled parts of a mesh shape; the caller may change them. */
export async function fetchShape(shape: ShapeInfo): Promise<Piece[]> {
  if (shape.mesh === null) throw new Error("the file was not found");
  const pieces = await fetchMesh(shape.mesh, shape.extension, shape.dependencies);
  const [x = 1, y = x, z = x] = shape.sizes;
  return pieces.map((piece) => {
    const geometry = piece.geometry.clone().scale(x, y, z);
    return { ...piece, geometry: x * y * z < 0 ? flipTriangles(geometry) : geometry };
  });
}

/** The parts of the mesh at an address. They are cached and must not be changed. */
function fetchMesh(address: string, extension: string, dependencies: Dependencies): Promise<Piece[]> {
  const key = [address, ...Object.values(dependencies)].join(" "); // the same mesh with other textures is another entry
  let pieces = cache.get(key);
  if (pieces === undefined) {
    pieces = load(address, extension.toLowerCase().replace(/^\./, ""), dependencies);
    if (cache.size >= MAX_CACHED_MESHES) cache.clear();
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
      await files.waitUntilLoaded();
      return meshPieces(scene);
    }
    case "dae": {
      const { ColladaLoader } = await import("three/addons/loaders/ColladaLoader.js");
      const text = (await response.text())
        // the loader would rotate z-up files to y-up, but robot meshes use unchanged coordinates
        .replace(/<up_axis>[^<]*<\/up_axis>/, "<up_axis>Y_UP</up_axis>")
        // the server sends no TGA textures, and the TGA loader could not read the white pixel that replaces them
        .replace(/\.tga\s*<\/init_from>/gi, "</init_from>");
      const scene = new ColladaLoader(files.manager).parse(text, "")?.scene;
      if (!scene) throw new Error("the file contains no geometry");
      await files.waitUntilLoaded();
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
  if (!response.ok) throw new Error(`the server has not sent the file (HTTP status ${response.status})`);
  return response;
}

/** Restricts loaders to the dependencies of the mesh: other addresses in a mesh file are never fetched. */
class DependencyFiles {
  readonly manager = new LoadingManager();
  private isBusy = false;
  private resolveLoaded: (() => void) | null = null;

  constructor(private readonly dependencies: Dependencies) {
    this.manager.setURLModifier((name) => (/^(data|blob):/.test(name) ? name : (this.find(name) ?? WHITE_PIXEL)));
    this.manager.onStart = () => (this.isBusy = true);
    this.manager.onLoad = () => {
      this.isBusy = false;
      this.resolveLoaded?.();
    };
  }

  /** Resolves when all textures are loaded or have failed. */
  waitUntilLoaded(): Promise<void> {
    return this.isBusy ? new Promise((resolveLoaded) => (this.resolveLoaded = resolveLoaded)) : Promise.resolve();
  }

  /** Throws if a buffer of a .gltf file is missing. */
  checkBuffers(text: string): void {
    const { buffers = [] } = JSON.parse(text) as { buffers?: { uri?: string }[] };
    for (const { uri = "" } of buffers) {
      if (!uri.startsWith("data:") && this.find(uri) === undefined)
        throw new Error(`it refers to the file '${uri.slice(0, 80)}', which is missing; add that file to the zip file`);
    }
  }

  private find(name: string): string | undefined {
    if (Object.hasOwn(this.dependencies, name)) return this.dependencies[name];
    const baseName = fileName(name);
    return Object.entries(this.dependencies).find(([reference]) => fileName(reference) === baseName)?.[1];
  }
}

function fileName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
}

/** The meshes of a loaded file. isLinear: whether colours are linear, not sRGB. */
function meshPieces(root: Object3D, isLinear = false): Piece[] {
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
      if (isLinear) colour?.convertLinearToSRGB();
      const colouredGeometry = withFileColours(
        group ? extractGroup(source, group.start, group.count) : source.clone(),
        material,
        colour,
        isLinear,
      );
      const geometry = stripAttributes(colouredGeometry);
      geometry.applyMatrix4(object.matrixWorld);
      if (object.matrixWorld.determinant() < 0) flipTriangles(geometry);
      // a white material without a name is the default of the loader
      const isDefaultMaterial =
        colour?.getHex() === 0xffffff && material?.name === "" && !geometry.hasAttribute("color");
      pieces.push(
        { geometry, colour: isDefaultMaterial ? null : colour, opacity: material?.transparent ? material.opacity : 1 },
      );
    }
  });
  if (pieces.length === 0) throw new Error("the file contains no geometry");
  return pieces;
}

/** The triangles of a group. */
function extractGroup(whole: BufferGeometry, start: number, count: number): BufferGeometry {
  const part = withIndex(whole.clone());
  part.setIndex([...part.index!.array.slice(start, start + count)]);
  part.clearGroups();
  return part;
}
