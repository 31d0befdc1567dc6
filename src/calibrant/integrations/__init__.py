"""Calibrant inside other tools. Each module imports its tool only when it is used."""
