"""A four-bar linkage in ten lines: build it, close it, count its freedoms, and see the loop open."""

import mechanik as mk

b = mk.Builder("four-bar")
b.revolute("crank", "ground", "crank", value=1.0)
b.revolute("knee", "crank", "coupler", at=(0.5, 0, 0), value=-0.4)
b.revolute("rocker", "ground", "rocker", at=(2, 0, 0), value=1.9)
b.close("pin", "coupler", "rocker", "pin", at=(1.8, 0, 0))
linkage = b.build()

count = mk.mobility(linkage)
print(f"the formula says {count.gruebler} freedoms; there are {count.dof}")

pin = linkage.closures["pin"]
print(f"shut: the gap is {pin.gap().distance:.1e} m")
linkage.joint("crank").set_values(1.2)
print(f"the crank turned alone: the gap is {pin.gap().distance:.3f} m")
