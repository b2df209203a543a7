"""Who is computed when."""
