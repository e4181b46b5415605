"""A four-bar linkage in ten lines: build it, close it, count its dofs, and violate the loop."""

import mechanik as mk

b = mk.Builder("four-bar")
b.revolute("crank", "ground", "crank", value=1.0)
b.revolute("knee", "crank", "coupler", at=(0.5, 0, 0), value=-0.4)
b.revolute("rocker", "ground", "rocker", at=(2, 0, 0), value=1.9)
b.close("pin", "coupler", "rocker", "pin", at=(1.8, 0, 0))
linkage = b.build()

count = mk.mobility(linkage)
print(f"the formula of Grübler gives {count.gruebler} dofs; there are {count.dof}")

pin = linkage.closures["pin"]
print(f"closed: the closure error is {pin.gap().distance:.1e} m")
linkage.joint("crank").set_values(1.2)
print(f"with only the crank rotated: the closure error is {pin.gap().distance:.3f} m")
