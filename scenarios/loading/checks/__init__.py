"""Rules across the sections of a scenario, and settings that are surely not meant."""
