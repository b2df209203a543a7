"""Chapter 11: the same weights in another layout, and a batch pays."""

from _step import model_dir

from minisgl import LLM

print(LLM(model_dir()).engine.layouts)
