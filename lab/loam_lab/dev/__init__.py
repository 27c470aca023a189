"""For those who maintain Loam: the test suites, and the instrument tested by itself."""
