"""The judge: problems as folders, submissions in a box, verdicts that nothing in the box decides.

The command is `practice/judge.py`; the web page and the audit use this library too.
"""
