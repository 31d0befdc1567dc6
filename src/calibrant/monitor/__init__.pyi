from .monitoring import Monitor as Monitor
from .sequences import improvement as improvement
from .status import Status as Status
