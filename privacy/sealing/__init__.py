"""Sealed messages: wire formats, keys, envelopes, and the sealers that use them."""
