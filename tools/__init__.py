"""Instruments for developing the package; none of them is part of the wheel."""
