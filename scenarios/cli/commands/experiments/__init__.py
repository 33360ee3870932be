"""Commands that run something: run, compare, sweep, reproduce, attack, audit."""
