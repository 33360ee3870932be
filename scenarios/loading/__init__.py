"""From scenario file to `Scenario`: parsing, keys, checks, problems, the catalog, plug-ins."""
