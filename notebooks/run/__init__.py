"""Notebooks run, checked and reproduced: the commands behind make."""
