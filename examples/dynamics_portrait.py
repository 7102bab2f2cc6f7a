"""Why PhiNet does not collapse: the equilibria of the paper's linear dynamics, and a portrait of its state space.

python examples/dynamics_portrait.py [PICTURE]
"""

import sys

from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import PhiNet, SimSiam
from phinets.reports.phase_portrait import portrait

picture = sys.argv[1] if len(sys.argv) > 1 else "portrait.png"
RHO = 0.1  # weight decay
SIGMA2 = 1.5  # strength of the augmentation

for system in (SimSiam(sigma2=SIGMA2, rho=RHO), PhiNet(sigma2=SIGMA2, rho=RHO)):
    print(f"{type(system).__name__} at ρ = {RHO}:")
    for point in equilibria(system):
        state = ", ".join(f"{name} = {point[name]:+.3f}" for name in point.variables)
        print(f"    {point.kind}{' (collapsed)' if point.collapsed else ''}: {state}")

portrait(PhiNet(sigma2=SIGMA2, rho=RHO), starts=[(0.08, 0.5)]).savefig(picture)
print(picture)
