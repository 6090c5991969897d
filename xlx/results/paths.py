"""Every path of the compendium, found from the root of the repository.

Nothing is created here: who writes a file makes its folder. ``XLX_CACHE`` moves the cache
(embeddings, tables, downloads) to another disk; everything else lies in the repository.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
MODELS = DATA / "models-long"
PUBLISHED = DATA / "published"
RESULTS = DATA / "results"
NOTEBOOKS = ROOT / "notebooks"
PROFILES = NOTEBOOKS / "profiles"
CACHE = Path(os.environ.get("XLX_CACHE") or ROOT / "cache").expanduser().absolute()
BUILD = ROOT / "build"
FIGURES = ROOT / "figures"
