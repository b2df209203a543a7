# Thin: everything is in tools/dev.py, which also works without make.
PYTHON ?= python3

.PHONY: help demo test check-all book serve doctor clean

help:
	@$(PYTHON) tools/dev.py --help

demo test check-all book serve doctor clean:
	@$(PYTHON) tools/dev.py $@ $(if $(filter serve,$@),$(PORT:%=--port %))
