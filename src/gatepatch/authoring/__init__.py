"""Make patch sets: from edits that someone made, from a diff, from gates that were chosen."""
