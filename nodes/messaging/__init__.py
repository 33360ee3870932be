"""How nodes exchange messages: endpoints, round sessions, control messages."""
