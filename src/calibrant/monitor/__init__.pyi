from .bets import improvement as improvement
from .monitoring import Monitor as Monitor
from .status import Status as Status
