"""What do multilingual Transformers share across languages, and how do we know?"""

__version__ = "0.1.0"
