"""Ask the devices what they are, and what they can do."""
