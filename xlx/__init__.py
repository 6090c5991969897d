"""What do multilingual Transformers share across languages, and how do we know?"""

from xlx.results.settings import settings

__all__ = ["settings"]
__version__ = "0.1.0"
