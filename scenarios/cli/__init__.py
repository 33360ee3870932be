"""The command line: entry point, arguments, console output."""
