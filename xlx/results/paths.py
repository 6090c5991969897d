"""Every path of the compendium, found from the root of the repository.

Nothing is created here: who writes a file makes its folder. ``XLX_CACHE`` moves the cache
(embeddings, tables, downloads) to another disk; everything else lies in the repository. Where the
package is installed without it, what is written goes into the folder where Python is started.
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
WRITTEN = ROOT if NOTEBOOKS.is_dir() else Path.cwd()
CACHE = Path(os.environ.get("XLX_CACHE") or WRITTEN / "cache").expanduser().absolute()
BUILD = WRITTEN / "build"
FIGURES = WRITTEN / "figures"
