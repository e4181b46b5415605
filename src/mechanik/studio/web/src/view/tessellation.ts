// Number of segments of round shapes: as many as the view can resolve.
const MODEL_RADIUS_PIXELS = 300; // radius of a model in a typical window
const BODY_ERROR_PIXELS = 0.4; // allowed distance of an edge from the circle
const MANY_OBJECTS = 60; // links or dofs; with more, each object is small in the view and is drawn coarsely, to be fast
const COARSE_FACTOR = 6; // the allowed error is larger by this factor with many objects
const MAX_SEGMENTS = 40; // more are not visible
const ICOSAHEDRON_EDGES = 5.7; // edges of an icosahedron around a great circle

/** Whether this number of objects is drawn coarsely. */
export function isMany(count: number): boolean {
  return count > MANY_OBJECTS;
}

/** Segments of a circle on a body. radiusRatio: radius of the circle divided by the radius of the model. */
export function circleSegments(radiusRatio: number, isCoarse: boolean): number {
  const minSegments = isCoarse ? 6 : 10;
  const errorPixels = isCoarse ? COARSE_FACTOR * BODY_ERROR_PIXELS : BODY_ERROR_PIXELS;
  return Math.min(MAX_SEGMENTS, Math.max(minSegments, segmentsForError(radiusRatio, errorPixels)));
}

/** Subdivisions of an icosahedron for a sphere that is as round as a circle with `count` segments. */
export function icosahedronSubdivisions(count: number): number {
  return Math.ceil(count / ICOSAHEDRON_EDGES) - 1;
}

/** Segments of an arc of this angle (rad): one of a few numbers, so that geometries can be shared. */
export function arcSegments(radiusRatio: number, angle: number, isCoarse: boolean): number {
  const errorPixels = isCoarse ? COARSE_FACTOR * LINE_ERROR_PIXELS : LINE_ERROR_PIXELS;
  const requiredSegments = (segmentsForError(radiusRatio, errorPixels) * angle) / (2 * Math.PI);
  return ARC_SEGMENTS.find((count) => count >= requiredSegments) ?? ARC_SEGMENTS.at(-1)!;
}

const LINE_ERROR_PIXELS = 0.25; // allowed distance of an edge from an arc
const ARC_SEGMENTS = [6, 12, 18, 28] as const;

/** Segments of a circle whose edges are at most `errorPixels` from the circle. */
function segmentsForError(radiusRatio: number, errorPixels: number): number {
  return Math.ceil(Math.PI * Math.sqrt((MODEL_RADIUS_PIXELS * radiusRatio) / (2 * errorPixels)));
}
