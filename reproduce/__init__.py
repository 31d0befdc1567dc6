"""One script per paper: its tables and figures, beside ours."""
