"""The parts of a run, each made from its sections of the scenario; `scenarios.build` connects them."""
