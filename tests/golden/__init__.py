"""Frozen results of public calls: a change that moves one shows which.

`make golden` compares, `make golden-update REASON="..."` freezes anew and lists the reason in the changelog.
"""
