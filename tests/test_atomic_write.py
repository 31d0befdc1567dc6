"""A file is replaced whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from calibrant import _atomic_write
from calibrant._atomic_write import creating, folder_locked, replacing


def test_a_write_that_is_interrupted_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("old")

    def interrupted():
        with replacing(path) as place:
            place.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.parquet"]


def write(path, text="new"):
    with replacing(path) as place:
        place.write_text(text)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_permissions_of_the_old_file_are_kept(tmp_path, mode):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(mode)
    write(path)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_the_mask_leaves(tmp_path):
    mask = os.umask(0o027)
    try:
        write(tmp_path / "map.json")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "map.json").stat().st_mode) == 0o640


def test_of_a_link_the_file_it_points_to_is_replaced(tmp_path):
    (tmp_path / "versions").mkdir()
    real, link = tmp_path / "versions" / "7.json", tmp_path / "current.json"
    real.write_text("old")
    link.symlink_to(real)
    write(link)
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "next.json"
    dangling.symlink_to(tmp_path / "versions" / "8.json")
    write(dangling)
    assert (tmp_path / "versions" / "8.json").read_text() == "new"


def test_a_pipe_gets_the_content_and_stays_a_pipe(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write(path, "through the pipe")
    reader.join(10)
    assert read == ["through the pipe"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path)


def test_what_a_killed_process_left_is_removed_by_the_next_and_no_other_file(tmp_path):
    path = tmp_path / "map.json"
    code = (
        "import sys, time\nfrom calibrant._atomic_write import replacing\n"
        "with replacing(sys.argv[1]) as place:\n    place.write_text('half')\n    print('.', flush=True)\n"
        "    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        write(path, "of another process")  # the first one is still at work: its file stays
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(signal.SIGKILL)
    foreign = [".map.json.part", ".other.json.abc.part", "map.json.abc.part"]
    for name in foreign:
        (tmp_path / name).touch()
    write(path)
    assert sorted(os.listdir(tmp_path)) == sorted([*foreign, "map.json"])


def test_a_lock_on_the_folder_makes_others_wait(tmp_path):
    order = []

    def second():
        with folder_locked(tmp_path / "a"):
            order.append("second")

    with folder_locked(tmp_path / "a"):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.1)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
    assert os.listdir(tmp_path) == []


def test_of_several_writers_of_a_new_file_one_succeeds(tmp_path):
    path, barrier, outcomes = tmp_path / "map.json", threading.Barrier(8), []

    def writer(text):
        try:
            with creating(), replacing(path) as place:
                place.write_text(text)
                barrier.wait(10)  # all of them saw that there was no file
            outcomes.append(text)
        except FileExistsError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=writer, args=(f"of writer {k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [text for text in outcomes if "exists already" not in text] == [path.read_text()]
    assert len(outcomes) == 8
    assert os.listdir(tmp_path) == ["map.json"]


def create(path, text="new"):
    with creating():
        write(path, text)


def test_an_old_file_is_kept_where_files_are_only_created(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    with pytest.raises(FileExistsError, match=r"map\.json' exists already and is kept as it is"):
        create(path)
    assert path.read_text() == "old"
    write(path)  # outside the block as before
    assert path.read_text() == "new"


@pytest.mark.parametrize("late", [False, True])
def test_new_files_are_created_where_there_are_no_links(tmp_path, monkeypatch, late):
    path = tmp_path / "map.json"

    def link(*_):
        if late:
            path.write_text("of another process")
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    if late:
        with pytest.raises(FileExistsError, match="exists already"):
            create(path)
    else:
        create(path)
    assert path.read_text() == ("of another process" if late else "new")
    assert os.listdir(tmp_path) == ["map.json"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="which files are open is read in /proc")
@pytest.mark.parametrize("step", [write, create])
def test_no_file_is_renamed_while_it_is_open_where_there_are_no_locks(tmp_path, monkeypatch, step):
    def refused_while_open(rename):
        def renamed(place, target):
            links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
            if any(os.path.exists(link) and os.path.samefile(link, place) for link in links):
                raise PermissionError(13, "The process cannot access the file because it is being used")
            rename(place, target)

        return renamed

    monkeypatch.setattr(_atomic_write, "fcntl", None)  # as on Windows
    for name in ("replace", "link"):
        monkeypatch.setattr(os, name, refused_while_open(getattr(os, name)))
    step(tmp_path / "map.json")
    assert (tmp_path / "map.json").read_text() == "new"
    assert os.listdir(tmp_path) == ["map.json"]


@pytest.mark.parametrize("name", ["m" * 250 + ".json", "ä" * 127, "m" * 201])
def test_names_of_any_length_are_written_and_what_was_left_of_them_is_removed(tmp_path, name):
    path = tmp_path / name
    with replacing(path) as place:
        stale = place.with_name(place.name[:-13] + "aaaaaaaa.part")
        stale.touch()
        place.write_text("first")
    write(path)
    assert os.listdir(tmp_path) == [name]
    assert path.read_text() == "new"
