// Number of segments of round shapes: as many as are visible.
const MODEL_RADIUS_PIXELS = 300; // of a model in a typical window
const BODY_ERROR_PIXELS = 0.4; // distance of an edge from the circle
const MANY_OBJECTS = 60; // links or dofs; each is small in the view then, and drawing all must be fast
const COARSE_FACTOR = 6; // by which the error may be larger with many objects
const MAX_SEGMENTS = 40; // more are not visible
const ICOSAHEDRON_EDGES = 5.7; // around a circle

/** Whether so many objects are drawn coarsely. */
export function isMany(count: number): boolean {
  return count > MANY_OBJECTS;
}

/** Segments of a circle on a body. share: its radius in radii of the model. */
export function circleSegments(share: number, isCoarse: boolean): number {
  const least = isCoarse ? 6 : 10;
  return Math.min(
    MAX_SEGMENTS,
    Math.max(least, segmentsForError(share, isCoarse ? COARSE_FACTOR * BODY_ERROR_PIXELS : BODY_ERROR_PIXELS)),
  );
}

/** Subdivisions of an icosahedron for a sphere that is as round as a circle with `count` segments. */
export function icosahedronSubdivisions(count: number): number {
  return Math.ceil(count / ICOSAHEDRON_EDGES) - 1;
}

/** Segments of an arc of this angle, rad; one of few numbers, so that geometries can be shared. */
export function arcSegments(share: number, angle: number, isCoarse: boolean): number {
  const needed =
    (segmentsForError(share, isCoarse ? COARSE_FACTOR * LINE_ERROR_PIXELS : LINE_ERROR_PIXELS) * angle) / (2 * Math.PI);
  return ARC_SEGMENTS.find((count) => count >= needed) ?? ARC_SEGMENTS.at(-1)!;
}

const LINE_ERROR_PIXELS = 0.25; // smaller than for bodies
const ARC_SEGMENTS = [6, 12, 18, 28] as const;

/** Segments of a circle for a distance of its edges from the circle, px. */
function segmentsForError(share: number, inside: number): number {
  return Math.ceil(Math.PI * Math.sqrt((MODEL_RADIUS_PIXELS * share) / (2 * inside)));
}
