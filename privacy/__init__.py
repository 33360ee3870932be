"""Mechanisms, calibration, accountants and ledger, pseudonyms, sealing, attacks."""
