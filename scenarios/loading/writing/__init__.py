"""What helps to write scenarios: starter files, templates, schema, documented keys, resolved scenarios as text."""
