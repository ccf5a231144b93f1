"""What the demo needs that is not about callsheet: a folder, a child process, a screen."""
