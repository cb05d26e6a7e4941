"""Say again, from the bytes on disk, whether a set is applied and has its effect."""
