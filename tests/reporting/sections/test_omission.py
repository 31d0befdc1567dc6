"""A section that cannot be made says why."""

from calibrant.reporting.sections.omission import CannotBuild


def test_the_message_is_the_reason():
    assert str(CannotBuild("One score only.")) == "One score only."
