"""The commands from a thousand nodes to a hundred million arcs: time, memory and rivals."""
