"""What a caller of the figures has to know when something is wrong."""


class FigureError(Exception):
    """A figure that cannot be drawn: one line that says why and what to do."""
