from .columns import EventColumns as EventColumns
from .columns import GaussianColumns as GaussianColumns
from .columns import OneVsRestColumns as OneVsRestColumns
from .columns import TopLabelColumns as TopLabelColumns
from .columns import UnlabeledColumns as UnlabeledColumns
from .streaming import StreamingTable as StreamingTable
from .tables import bin_table as bin_table
from .tables import bin_tables as bin_tables
