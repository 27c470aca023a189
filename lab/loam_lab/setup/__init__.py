"""Set-up: Debian packages, and builds of what a command needs. The virtual environment is made by ./loam itself."""
