"""The learners as the paper's tables name them."""

from collections.abc import Mapping

LEARNERS: Mapping[str, str] = {
    "BYOL": "byol",
    "SimSiam": "simsiam",
    "SimSiam (Orig-In)": "simsiam/original-input",
    "Barlow Twins": "barlow-twins",
    "RM-SimSiam": "rm-simsiam",
    "MoCo": "moco-v2",
    "MoCo v2": "moco-v2",
    "PhiNet": "phinet",
    "PhiNet (MSE)": "phinet",
    "PhiNet (MSE, g=I)": "phinet/identity-g",
    "PhiNet (MSE, g=h)": "phinet/shared-g",
    "PhiNet (Cos)": "phinet/cosine",
    "PhiNet (g=I)": "phinet/identity-g",
    "PhiNet (g=h)": "phinet/shared-g",
    "PhiNet MSE, SG-2, g": "phinet",
    "PhiNet MSE, SG-2, g = I": "phinet/identity-g",
    "PhiNet MSE, no SG-2, g": "phinet/no-stop-gradient",
    "PhiNet MSE, SG-2, h": "phinet/shared-g",
    "PhiNet Cos, SG-2, g": "phinet/cosine",
    "PhiNet Cos, SG-2, g = I": "phinet/cosine-identity-g",
    "PhiNet Cos, no SG-2, g": "phinet/cosine-no-stop-gradient",
    "PhiNet Cos, SG-2, h": "phinet/cosine-shared-g",
    "PhiNet with Aug (MSE)": "phinet/augmented-anchor",
    "X-PhiNet": "x-phinet",
    "X-PhiNet (MSE)": "x-phinet",
    "X-PhiNet (Cos)": "x-phinet/cosine",
    "X-PhiNet (g=I, MSE)": "x-phinet/identity-g",
    "X-PhiNet (Cos, g=I)": "x-phinet/cosine-identity-g",
    "X-PhiNet with Aug (MSE)": "x-phinet/augmented-anchor",
    "X-PhiNet with Aug (Cos)": "x-phinet/cosine-augmented-anchor",
}
"""The tables have several names for some."""
X_PHINETS = ("X-PhiNet (MSE)", "X-PhiNet (Cos)")
"""Where the paper's text says X-PhiNet: both of its losses, on average."""
