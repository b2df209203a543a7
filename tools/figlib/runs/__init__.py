"""What the traces are recorded with: real runs of the steps, listened to from outside.

Each function that is named like a trace runs in a process whose `minisgl` is the tree of one step
(`StepProcess` in bench/_bench.py) and returns what goes into the trace.
"""
