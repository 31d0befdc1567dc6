"""Odd inputs and random ones: every entry point gives the right answer or refuses with a sentence of ours."""
