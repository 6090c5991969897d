"""What the notebooks of one lens share: their tables and figures, a module each."""
