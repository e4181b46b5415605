// Mesh files, fetched when they are needed; so are the readers of their formats.
import { BufferGeometry, Color, Mesh, type Material, type Object3D } from "three";
import { bare, flip } from "./shapes";

/** A piece of a mesh file, in the file's frame. colour: as the file says, as on a screen; null if it says nothing. */
export interface Piece {
  geometry: BufferGeometry;
  colour: Color | null;
  opacity: number;
}

const MOST_KEPT = 256;
const kept = new Map<string, Promise<Piece[]>>();

/** The pieces of the mesh at this address. They are shared: clone before changing. */
export function fetchMesh(address: string, ending: string): Promise<Piece[]> {
  let found = kept.get(address);
  if (found === undefined) {
    found = load(address, ending.toLowerCase().replace(/^\./, ""));
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(address, found);
    found.catch(() => kept.delete(address));
  }
  return found;
}

async function load(address: string, ending: string): Promise<Piece[]> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the server has no such file (${answer.status})`);
  switch (ending) {
    case "stl": {
      const { STLLoader } = await import("three/addons/loaders/STLLoader.js");
      return [{ geometry: bare(new STLLoader().parse(await answer.arrayBuffer())), colour: null, opacity: 1 }];
    }
    case "obj": {
      const { OBJLoader } = await import("three/addons/loaders/OBJLoader.js");
      return pieces(new OBJLoader().parse(await answer.text()));
    }
    case "dae": {
      const { ColladaLoader } = await import("three/addons/loaders/ColladaLoader.js");
      // the reader would turn z-up files to y-up; robots are z-up and mean the numbers as they are
      const text = (await answer.text()).replace(/<up_axis>[^<]*<\/up_axis>/, "<up_axis>Y_UP</up_axis>");
      const scene = new ColladaLoader().parse(text, "")?.scene;
      if (!scene) throw new Error("there is nothing in it to draw");
      return pieces(scene);
    }
    case "glb":
    case "gltf": {
      const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
      const found = pieces((await new GLTFLoader().parseAsync(await answer.arrayBuffer(), "")).scene);
      // this format alone writes light, not colours of a screen
      for (const { colour } of found) colour?.convertLinearToSRGB();
      return found;
    }
    default:
      throw new Error(`files that end with '${ending}' cannot be drawn; STL, DAE, OBJ, GLTF and GLB can`);
  }
}

function pieces(root: Object3D): Piece[] {
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
      const geometry = bare(group ? cut(whole, group.start, group.count) : whole.clone());
      geometry.deleteAttribute("color");
      geometry.applyMatrix4(object.matrixWorld);
      if (object.matrixWorld.determinant() < 0) flip(geometry);
      const material = materials[group?.materialIndex ?? 0];
      const named = material !== undefined && "color" in material ? (material.color as Color).clone() : null;
      const isUsual = named?.getHex() === 0xffffff && material?.name === ""; // the reader's own, not the file's
      const colour = isUsual ? null : named;
      found.push({ geometry, colour, opacity: material?.transparent ? material.opacity : 1 });
    }
  });
  if (found.length === 0) throw new Error("there is nothing in it to draw");
  return found;
}

/** The triangles of a group alone. */
function cut(whole: BufferGeometry, start: number, count: number): BufferGeometry {
  const part = bare(whole.clone());
  part.setIndex([...part.index!.array.slice(start, start + count)]);
  part.clearGroups();
  return part;
}
