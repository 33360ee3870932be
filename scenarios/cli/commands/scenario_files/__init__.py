"""Commands about scenario files: check, list, new, plan, schema."""
