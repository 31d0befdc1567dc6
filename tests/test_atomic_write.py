"""A file is replaced whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from calibrant._atomic_write import folder_locked, replacing


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
