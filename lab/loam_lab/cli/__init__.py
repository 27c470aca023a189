"""The command line: thin modules that parse options and call the package that does the work."""
