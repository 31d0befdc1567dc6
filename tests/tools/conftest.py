"""A small project."""

import pytest
from tools.project import Project

FILES = {
    "src/calibrant/__init__.py": "",
    "src/calibrant/__init__.pyi": "from . import table as table\nfrom .table.bins import Bins as Bins\n",
    "src/calibrant/table/__init__.py": "",
    "src/calibrant/table/__init__.pyi": "from .bins import Bins as Bins\n",
    "src/calibrant/table/bins.py": '"""Bins.\n\n>>> 1 + 1\n2\n"""\nclass Bins: ...\n',
    "src/calibrant/table/rows.py": "def rows():\n    from calibrant.table.bins import Bins\n    return Bins\n",
    "src/calibrant/table/sums.py": "from calibrant.table import rows\n",
    "tests/table/test_bins.py": "from calibrant.table.bins import Bins\n",
    "tests/table/test_every.py": "import calibrant as cal\nprint(cal.table.Bins)\n",
    "tests/table/test_rows.py": "",
    "tests/table/test_top.py": "import calibrant\ncalibrant.Bins()\n",
    "tests/table/test_other.py": "import math\nmath.inf\nBins = 1\n",
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Project(tmp_path)
