"""Code that runs inside the box. It holds no secret: whatever it knows, a submission can know."""
