"""The notebooks as a book: what `make book` puts together for Sphinx."""
