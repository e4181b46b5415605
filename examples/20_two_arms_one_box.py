"""Two arms lift a box over a post that stands between them, and their loop stays closed. Needs mechanik[plan]."""

import numpy as np

import mechanik as mk

arms = mk.gallery.two_arms()
print(arms, "with", mk.mobility(arms).dof, "dofs")

# the box is held in front of a post, low enough to collide with it, and must get behind it
post = mk.Obstacle(mk.Cylinder(0.04, 0.5), (0.0, 0.0, 0.25), name="post")
collider = mk.Collider(arms, ["self", post])


def box_at(y):
    X_world_box = arms.pose("box").copy()
    X_world_box[:3, 3] = 0.0, y, 0.4
    return mk.PoseGoal("box", X_world_box)


front = mk.solve(arms, box_at(-0.25), avoid=collider, clearance=0.01).require()
behind = mk.solve(arms, box_at(0.25), front.q, avoid=collider, clearance=0.01).require()

# straight from one to the other the hands would let go of the box; with the loop closed the box collides with the post
drawn = mk.follow(arms, lambda s: box_at(-0.25 + 0.5 * s), s=60, q0=front.q)
print("along a line:", drawn.message)
print("  where", collider.nearest_pairs(drawn.require().at(0.5))[0])
stopped = mk.follow(arms, lambda s: box_at(-0.25 + 0.5 * s), s=60, q0=front.q, avoid=collider)
print("with avoidance:", stopped.message)

# around it
path = mk.plan(arms, front, behind, avoid=collider, clearance=0.005, max_seconds=120)
fine = path.densify(0.01)
top = arms.pose("box", fine.q)[:, 2, 3].max()
print(
    f"around the post: the box rises to {top:.2f} m, the smallest gap is {1e3 * collider.distance(fine.q).min():.1f} mm"
)
print(f"the closure error is at most {fine.closure_error():.0e} at {len(fine)} points")
assert fine.closure_error() < 1e-6
assert np.all(collider.is_free(fine.q, 0.005))

move = mk.retime(path, velocity=1.5, acceleration=5.0)
print(f"in {move.duration:.1f} s; the loop: {move.to_path().closure_error():.0e}")
assert move.to_path().closure_error() < 1e-6
