"""The transport: batches of messages in, rows of the message table out, one compiled event loop in between."""
