def test_modules_are_named_with_dots_and_packages_by_their_folder(project):
    assert set(project.modules) == {"calibrant", "calibrant.table"} | {
        f"calibrant.table.{name}" for name in ("bins", "rows", "sums")
    }
    assert str(project.modules["calibrant.table.bins"]) == "src/calibrant/table/bins.py"


def test_a_stub_belongs_to_its_package(project):
    stub = project.modules["calibrant.table"].with_suffix(".pyi")
    assert project.module_of(stub) == "calibrant.table"
    assert project.module_of(project.modules["calibrant.table.rows"]) == "calibrant.table.rows"
    assert project.module_of(stub.parent / "gone.py") is None


def test_public_names_lead_to_their_modules(project):
    assert project.public_names == {
        "calibrant.Bins": "calibrant.table.bins",
        "calibrant.table.Bins": "calibrant.table.bins",
    }


def test_the_mirror_comes_first_then_every_file_that_names_the_module(project):
    assert [path.name for path in project.tests_of("calibrant.table.bins")] == [
        "test_bins.py",
        "test_every.py",
        "test_top.py",
    ]
    assert project.tests_of("calibrant.table.sums") == []


def test_importers_are_found_inside_functions_too(project):
    assert project.importers("calibrant.table.bins") == ["calibrant.table.rows"]
    assert project.importers("calibrant.table.rows") == ["calibrant.table.sums"]


def test_private_modules_are_mirrored_without_the_underscore(project):
    assert project.mirror("calibrant._atomic_write").as_posix() == "tests/test_atomic_write.py"
