"""The substrate: clock, random streams, messages, links, transfers, network, mailboxes, records."""
