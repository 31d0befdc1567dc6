"""What comes out: estimates, intervals, outcomes of tests.

Here belong values that say what they are and how they were made. Computing them does not.
"""
