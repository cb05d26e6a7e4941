"""What ``doctor`` looks at: a module for each group of checks, and one that goes through them."""
