"""mini-sglang, built one step at a time: a small engine that serves large language models."""
