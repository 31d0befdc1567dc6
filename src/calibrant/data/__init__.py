"""The one door in: what a user hands over, checked once, as one class per task.

Here belong checks, columns and choices of rows. Bins and estimates do not.
"""
