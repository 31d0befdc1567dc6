"""`calibrant demo` takes a folder."""


def test_the_folder_is_passed_on(invoke, monkeypatch):
    asked = []
    monkeypatch.setattr("calibrant.cli.demo.run_demo", lambda folder, say: asked.append(str(folder)))
    assert invoke("demo --folder there")[0] == 0
    assert asked == ["there"]
