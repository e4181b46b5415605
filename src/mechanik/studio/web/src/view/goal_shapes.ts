// Shapes of goal markers by symbol, in the frame of the goal: z is the direction of the line, axis, normal or cone.
import {
  BoxGeometry,
  BufferGeometry,
  CircleGeometry,
  ConeGeometry,
  CylinderGeometry,
  EdgesGeometry,
  PlaneGeometry,
  SphereGeometry,
  TorusGeometry,
  Vector3,
} from "three";
import type { GoalInfo, GoalKindInfo } from "../messages";
import { stripAttributes, mergeAll } from "./shapes";

/** solid: opaque; sheet: translucent; edges: lines; hasAxes: whether arrows along x, y, z are added. */
export interface GoalShape {
  solid: BufferGeometry;
  sheet: BufferGeometry | null;
  edges: BufferGeometry | null;
  hasAxes: boolean;
  /** Points where a pointer can grab the marker, in the frame of the goal. */
  grips: Vector3[];
}

const RIGHT_ANGLE = Math.PI / 2; // cylinders of three.js are along y, markers along z

/** Shape of the marker of a goal. symbol: symbol of its kind; size: size of goal markers in this model, m. */
export function goalShape(goal: GoalInfo, symbol: GoalKindInfo["symbol"], size: number): GoalShape {
  const [sizeA, sizeB, sizeC] = goal.sizes; // meaning by kind, see `ChangeGoal.sizes`
  const shape = (solid: BufferGeometry[], options: Partial<GoalShape> = {}): GoalShape => ({
    solid: mergeAll(solid),
    sheet: null,
    edges: null,
    hasAxes: false,
    ...options,
    grips: [new Vector3(), ...(options.grips ?? [])],
  });
  const dot = () => smallSphere(0.2 * size);
  const z = (distance: number) => new Vector3(0, 0, distance);
  if (goal.is_link_drag) return shape([smallSphere(0.24 * size)]);
  switch (symbol) {
    case "cross":
      return shape([smallSphere(0.24 * size), ...cross(0.62 * size, 0.035 * size)]);
    case "axes":
      return shape([smallSphere(0.2 * size)], {
        hasAxes: true,
        grips: [new Vector3(size, 0, 0), new Vector3(0, size, 0), z(size)],
      });
    case "rings":
      return shape(
        [
          smallSphere(0.14 * size),
          ring(0.8 * size, 0.035 * size),
          ring(0.8 * size, 0.035 * size).rotateX(RIGHT_ANGLE),
          ring(0.8 * size, 0.035 * size).rotateY(RIGHT_ANGLE),
        ],
        {
          grips: [new Vector3(0.8 * size, 0, 0), new Vector3(0, 0.8 * size, 0), z(0.8 * size)],
        },
      );
    case "arrow":
      return shape([dot(), ...arrow(1.5 * size, 0.05 * size)], { grips: [z(1.4 * size), z(0.7 * size)] });
    case "hinge":
      return shape([rod(-1.5 * size, 1.5 * size, 0.045 * size), ring(0.5 * size, 0.05 * size)], {
        grips: [z(1.4 * size), z(-1.4 * size)],
      });
    case "disc":
      return shape([dot(), ...arrow(0.8 * size, 0.04 * size), ring(size, 0.025 * size)], {
        sheet: disc(size),
        grips: [z(0.7 * size)],
      });
    case "line":
      return shape([dot(), rod(-30 * size, 30 * size, 0.03 * size)], { grips: [z(size), z(-size)] });
    case "plane":
      return shape([dot(), ...arrow(0.6 * size, 0.035 * size)], { ...square(3 * size, 0), grips: [z(0.5 * size)] });
    case "eye":
      return shape([...eye(size)]);
    case "sphere":
      return shape([dot()], {
        sheet: stripAttributes(new SphereGeometry(Math.max(sizeA, 1e-6), 32, 20)),
        edges: circles(Math.max(sizeA, 1e-6)),
      });
    case "box": {
      const box = new BoxGeometry(2 * sizeA, 2 * sizeB, 2 * sizeC);
      return shape([dot()], { sheet: stripAttributes(box.clone()), edges: new EdgesGeometry(box) });
    }
    case "cone": {
      const length = 2.2 * size;
      const halfAngle = Math.min(Math.max(sizeA, 0.01), 1.5); // rad
      const cone = () =>
        new ConeGeometry(length * Math.tan(halfAngle), length, 32, 1, true)
          .rotateX(-RIGHT_ANGLE)
          .translate(0, 0, length / 2);
      return shape(
        [dot(), rod(0, length, 0.03 * size), ring(length * Math.tan(halfAngle), 0.03 * size).translate(0, 0, length)],
        { sheet: stripAttributes(cone()), grips: [z(length)] },
      );
    }
    case "band": {
      const [low, high] = [square(2.4 * size, sizeA), square(2.4 * size, sizeB)];
      return shape([smallSphere(0.16 * size), rod(sizeA, sizeB, 0.04 * size)], {
        sheet: mergeAll([low.sheet, high.sheet]),
        edges: mergeLines([low.edges, high.edges]),
        grips: [z(sizeA), z(sizeB)],
      });
    }
    case "mass":
      return shape([...sphereOctants(0.3 * size), ring(0.42 * size, 0.03 * size)]);
    case "foot":
      return shape([dot(), ring(0.4 * size, 0.04 * size)]);
  }
}

/** Arrows along x, y and z, separate since they have different colours. */
export function axes(size: number): [BufferGeometry, BufferGeometry, BufferGeometry] {
  const arrowAlongZ = () => mergeAll(arrow(size, 0.045 * size));
  return [arrowAlongZ().rotateY(RIGHT_ANGLE), arrowAlongZ().rotateX(-RIGHT_ANGLE), arrowAlongZ()];
}

/** The pin of a pinned goal. */
export function pin(size: number): BufferGeometry {
  const needle = new ConeGeometry(0.07 * size, 0.55 * size, 10).rotateX(-RIGHT_ANGLE).translate(0, 0, 0.28 * size);
  const cylinder = (top: number, bottom: number, height: number, z: number) =>
    new CylinderGeometry(top * size, bottom * size, height * size, 14).rotateX(RIGHT_ANGLE).translate(0, 0, z * size);
  const [head, cap] = [cylinder(0.2, 0.12, 0.26, 0.64), cylinder(0.26, 0.26, 0.07, 0.8)];
  return mergeAll([needle, head, cap]);
}

function smallSphere(radius: number): BufferGeometry {
  return stripAttributes(new SphereGeometry(radius, 16, 10));
}

/** A cylinder along z between two heights, m. */
function rod(lowZ: number, highZ: number, radius: number): BufferGeometry {
  const length = Math.abs(highZ - lowZ);
  return stripAttributes(
    new CylinderGeometry(radius, radius, length, 8).rotateX(RIGHT_ANGLE).translate(0, 0, (lowZ + highZ) / 2),
  );
}

function ring(radius: number, tubeRadius: number): BufferGeometry {
  return stripAttributes(new TorusGeometry(radius, tubeRadius, 6, 40));
}

function arrow(length: number, radius: number): BufferGeometry[] {
  const head = Math.min(0.32 * length, 7 * radius);
  return [
    rod(0, length - head, radius),
    stripAttributes(new ConeGeometry(2.4 * radius, head, 12).rotateX(RIGHT_ANGLE).translate(0, 0, length - head / 2)),
  ];
}

function cross(halfLength: number, radius: number): BufferGeometry[] {
  return [
    rod(-halfLength, halfLength, radius),
    rod(-halfLength, halfLength, radius).rotateX(RIGHT_ANGLE),
    rod(-halfLength, halfLength, radius).rotateY(RIGHT_ANGLE),
  ];
}

function disc(radius: number): BufferGeometry {
  return stripAttributes(new CircleGeometry(radius, 40));
}

/** A square perpendicular to z; height: z of the square, m. */
function square(edge: number, height: number): { sheet: BufferGeometry; edges: BufferGeometry } {
  const plane = new PlaneGeometry(edge, edge).translate(0, 0, height);
  return { edges: new EdgesGeometry(plane), sheet: stripAttributes(plane) };
}

/** Three circles about x, y and z, as line segments. */
function circles(radius: number): BufferGeometry {
  const points: Vector3[] = [];
  for (const pointOnCircle of [
    (c: number, s: number) => new Vector3(c, s, 0),
    (c: number, s: number) => new Vector3(c, 0, s),
    (c: number, s: number) => new Vector3(0, c, s),
  ]) {
    for (let k = 0; k < 64; k++)
      for (const angle of [(k * Math.PI) / 32, ((k + 1) * Math.PI) / 32])
        points.push(pointOnCircle(radius * Math.cos(angle), radius * Math.sin(angle)));
  }
  return new BufferGeometry().setFromPoints(points);
}

function mergeLines(lines: BufferGeometry[]): BufferGeometry {
  const coordinates = lines.flatMap((line) => [...line.getAttribute("position").array]);
  const points: Vector3[] = [];
  for (let k = 0; k < coordinates.length; k += 3) points.push(new Vector3().fromArray(coordinates, k));
  return new BufferGeometry().setFromPoints(points);
}

function eye(size: number): BufferGeometry[] {
  const lid = (angle: number) =>
    stripAttributes(
      new TorusGeometry(0.75 * size, 0.045 * size, 6, 20, 1.7)
        .rotateZ(Math.PI / 2 - 0.85)
        .translate(0, -0.5 * size, 0)
        .rotateZ(angle)
        .rotateX(RIGHT_ANGLE),
    );
  return [smallSphere(0.2 * size), lid(0), lid(Math.PI)];
}

/** Four alternating octants of a sphere: the symbol of a centre of mass. */
function sphereOctants(radius: number): BufferGeometry[] {
  const quarter = RIGHT_ANGLE;
  return [0, 1].flatMap((k) =>
    [0, 1].map((half) =>
      stripAttributes(
        new SphereGeometry(radius, 6, 8, (2 * k + half) * quarter, quarter, half * quarter, quarter).rotateX(quarter),
      ),
    ),
  );
}
