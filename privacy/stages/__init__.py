"""What a client releases: an ordered list of stages between training and the network."""
