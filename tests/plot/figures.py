"""What tests look up in a figure."""


def line(ax, label):
    """The first line whose label starts so."""
    return next(drawn for drawn in ax.lines if drawn.get_label().startswith(label))
