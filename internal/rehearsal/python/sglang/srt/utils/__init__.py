"""Small things that every process of the server uses."""
