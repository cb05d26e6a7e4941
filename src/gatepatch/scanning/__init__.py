"""Find the architecture gates of installed distributions."""
