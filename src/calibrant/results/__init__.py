"""What comes out: estimates, intervals, outcomes of tests.

Here belong values that say what they are and how they were made. Computing them does not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
