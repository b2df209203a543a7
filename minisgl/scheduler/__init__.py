"""Who runs, with which rows and pages."""
