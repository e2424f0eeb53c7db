"""One module a command, each importing what it needs when it runs."""
