"""Gate engines: they find gates in source, work edits out, and prove them."""
