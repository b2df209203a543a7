"""The one error type of the steps tool."""


class StepError(Exception):
    """What a person can put right: a wrong number, path or manifest.

    The command prints the message as one line on stderr and exits with code 2.
    """
