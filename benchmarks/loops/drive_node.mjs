// The original in Node: one case, rounds on request. Started by loop_race.py with one JSON object as its
// argument; lines in: `round`, `save FILE`; a line of JSON out after each, and one before all when it is ready.
//
// A closure is a Goal that is attached to link a and closed onto link b, as in the package's hexapod demo; a point
// closure has only the dofs X Y Z. It closes onto a link's own frame, so a frame elsewhere on a link without
// children moves that link. A joint's target raises an error inside chains, so a joint is driven by a Goal for the
// orientation of its link ("own"), or by rotating its frame by hand, which leaves one dof less to solve for ("best").

import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const options = JSON.parse(process.argv[2]);
const require = createRequire(join(options.packages, 'package.json'));
const core = join(require.resolve('closed-chain-ik/package.json'), '..', 'src', 'core', 'index.js');
const { Solver, Link, Joint, Goal, DOF, SOLVE_STATUS } = await import(pathToFileURL(core).href);

const OWN = { // of the package's hexapod demo
  maxIterations: 10, divergeThreshold: 0.05, stallThreshold: 1e-5, translationErrorClamp: 0.01,
  rotationErrorClamp: 0.01, translationConvergeThreshold: 1e-5, rotationConvergeThreshold: 1e-5,
};
// of its benchmark, which misses every tick; with a damping of 5, clamps of 1 and 0.5 and 3,000 iterations it reached
// 10 of 12, at 0.5 s each
const OWN_ARM = { maxIterations: 10, restPoseFactor: 0.001, dampingFactor: 0.01 };
// no rest pose, so that its null space is not computed, which is what helps; dampings from 1e-2 to 1e-4 and clamps from
// 0.1 to 1 differ by less than the noise, and the SVD is slower
const BEST = { ...OWN, restPoseFactor: 0, translationErrorClamp: 0.1, rotationErrorClamp: 0.1, dampingFactor: 1e-3 };
const SETTLE = 10; // solves a tick at most, as in the demo

const test = JSON.parse(readFileSync(options.case, 'utf-8'));
const best = options.variant === 'best';
const isItsArm = test.name === 'arm_100';

function setPose(frame, X) {
  const position = [X[0][3], X[1][3], X[2][3]];
  const [x, y, z, w] = quaternion(X);
  frame.setPosition(...position);
  frame.setQuaternion(x, y, z, w);
}

function quaternion(X) { // xyzw, by the largest of the four
  const [[a, b, c], [d, e, f], [g, h, i]] = X;
  const four = [a - e - i, e - a - i, i - a - e, a + e + i];
  const k = four.indexOf(Math.max(...four));
  const s = Math.sqrt(four[k] + 1) / 2;
  const t = 0.25 / s;
  return [
    [s, (b + d) * t, (c + g) * t, (h - f) * t],
    [(b + d) * t, s, (f + h) * t, (c - g) * t],
    [(c + g) * t, (f + h) * t, s, (d - b) * t],
    [(h - f) * t, (c - g) * t, (d - b) * t, s],
  ][k];
}

const isIdentity = X => X.every((row, i) => row.every((v, j) => v === (i === j ? 1 : 0)));

// ---- the model ----

const links = new Map([[test.root, new Link()]]);
const joints = new Map();
const byHand = best && test.goal.kind === 'joint' ? test.goal.name : null;
for (const spec of test.joints) {
  const joint = new Joint();
  setPose(joint, spec.pose);
  if (spec.name !== byHand) {
    joint.setDoF(...spec.dof.map(name => DOF[name]));
    joint.setDoFValues(...spec.start);
    if (spec.lower.some(v => v !== null)) joint.setMinLimits(...spec.lower.map(v => v ?? -Infinity));
    if (spec.upper.some(v => v !== null)) joint.setMaxLimits(...spec.upper.map(v => v ?? Infinity));
  }
  links.get(spec.parent).addChild(joint);
  const link = new Link();
  joint.addChild(link);
  links.set(spec.link, link);
  joints.set(spec.name, joint);
}

function frameOn(name, X) { // the link whose own frame is at X of it
  const link = links.get(name);
  if (isIdentity(X)) return link;
  if (link.children.length) throw new Error(`${name} has children, so its frame cannot be moved`);
  setPose(link, X);
  return link;
}

for (const spec of test.closures) {
  const goal = new Goal();
  if (spec.kind === 'point') goal.setGoalDoF(DOF.X, DOF.Y, DOF.Z);
  setPose(goal, spec.pose_a);
  links.get(spec.a).addChild(goal);
  goal.makeClosure(frameOn(spec.b, spec.pose_b));
}

const goal = new Goal();
const roots = [links.get(test.root)];
if (test.goal.kind === 'point') {
  const [x, y, z] = test.goal.at;
  goal.setGoalDoF(DOF.X, DOF.Y, DOF.Z);
  goal.makeClosure(frameOn(test.goal.name, [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1]]));
  roots.push(goal);
} else if (test.goal.kind === 'pose') {
  goal.makeClosure(links.get(test.goal.name));
  roots.push(goal);
} else if (!byHand) {
  goal.setGoalDoF(DOF.EX, DOF.EY, DOF.EZ);
  goal.makeClosure(joints.get(test.goal.name).child);
  roots.push(goal);
}
const solver = new Solver(roots);
Object.assign(solver, isItsArm ? OWN_ARM : best ? BEST : OWN);

// ---- ticks ----

const driven = byHand && joints.get(byHand);
const targets = test.targets.map(target => {
  if (test.goal.kind === 'joint') return [0, 0, Math.sin(target / 2), Math.cos(target / 2)];
  if (test.goal.kind === 'point') return target;
  return [...[0, 1, 2].map(k => target[k][3]), ...quaternion(target)];
});
const tick = {
  joint: (driven || goal) && (t => (driven || goal).setQuaternion(t[0], t[1], t[2], t[3])),
  point: t => goal.setPosition(t[0], t[1], t[2]),
  pose: t => { goal.setPosition(t[0], t[1], t[2]); goal.setQuaternion(t[3], t[4], t[5], t[6]); },
}[test.goal.kind];

function begin() {
  for (const spec of test.joints) if (spec.name !== byHand) joints.get(spec.name).setDoFValues(...spec.start);
  for (const root of roots) root.updateMatrixWorld(true);
}

function values(k) {
  const q = [];
  for (const spec of test.joints) {
    if (spec.name === byHand) q.push(test.targets[k]);
    else for (const name of spec.dof) q.push(joints.get(spec.name).getDoFValue(DOF[name]));
  }
  return q;
}

// processor time, as in processor_clock.py: what a look at it takes is taken off
const LEAST = 1e-9;
const LOOKS = 2000;
const clock = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1e-6;
};
const first = clock();
for (let k = 0; k < LOOKS; k++) clock();
const costOfLook = (clock() - first) / (LOOKS + 1);
const kept = { q: [], times: [], cpu: [] };

function round(count, keep) {
  begin();
  const q = [], times = [], cpu = process.cpuUsage();
  for (let k = 0; k < count; k++) {
    const begun = clock();
    tick(targets[k]);
    let status;
    for (let settle = 0; settle < (isItsArm ? 1 : SETTLE); settle++) {
      status = solver.solve()[0];
      if (status !== SOLVE_STATUS.TIMEOUT) break;
    }
    times.push(Math.max(clock() - begun - costOfLook, LEAST));
    q.push(values(k));
  }
  if (keep) {
    const used = process.cpuUsage(cpu);
    kept.q = q; // all rounds are the same
    kept.times.push(times);
    kept.cpu.push(Math.max((used.user + used.system) * 1e-6, LEAST));
  }
}

const say = what => process.stdout.write(JSON.stringify(what) + '\n');
for (let i = 0; i < 3; i++) round(targets.length, false); // the compiler has its time before the clock runs
say({ count: targets.length });
for await (const line of createInterface({ input: process.stdin })) {
  const [what, path] = line.trim().split(' ');
  if (what === 'round') { round(targets.length, true); say({ done: kept.times.length }); }
  if (what === 'save') { writeFileSync(path, JSON.stringify(kept)); say({ saved: path }); }
}
