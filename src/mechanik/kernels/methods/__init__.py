"""Steps of the methods whose loop is written in Python."""
