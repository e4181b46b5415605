// How many corners a round thing needs to look round: as many as the eye sees, since each costs as much as another.
const WHOLE = 300; // px: a model's radius in a picture of usual size
const BODY = 0.4; // px that an edge may run inside of the circle
const MANY = 60; // links or freedoms; each is small in the picture then, and all of them are to be drawn in time
const PLAINLY = 6; // so much farther inside an edge may run where there are many
const MOST = 40; // corners: more are not seen from any near
const ICOSAHEDRON = 5.7; // its edges around a circle

/** Whether so many things of a kind are drawn plainly, with few corners. */
export function isMany(count: number): boolean {
  return count > MANY;
}

/** Corners of a circle on a body. share: its radius, of the model's. */
export function corners(share: number, isPlain: boolean): number {
  const least = isPlain ? 6 : 10;
  return Math.min(MOST, Math.max(least, around(share, isPlain ? PLAINLY * BODY : BODY)));
}

/** How often the edges of an icosahedron are cut for a ball that is as round as a circle with so many corners. */
export function cuts(count: number): number {
  return Math.ceil(count / ICOSAHEDRON) - 1;
}

/** Pieces of a line that runs along a circle by this angle, rad; one of few numbers, so that many share a shape. */
export function pieces(share: number, angle: number, isPlain: boolean): number {
  const needed = (around(share, isPlain ? PLAINLY * LINE : LINE) * angle) / (2 * Math.PI);
  return PIECES.find((count) => count >= needed) ?? PIECES.at(-1)!;
}

const LINE = 0.25; // px; lines are looked at more closely than bodies
const PIECES = [6, 12, 18, 28] as const;

/** Corners of a circle whose edges run at most this far inside of it, px. */
function around(share: number, inside: number): number {
  return Math.ceil(Math.PI * Math.sqrt((WHOLE * share) / (2 * inside)));
}
