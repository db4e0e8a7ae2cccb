"""Starting values: what is run from where, and when a search stops."""
