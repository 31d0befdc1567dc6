"""One function per estimator, one file per family; the public names live in `calibrant`."""
