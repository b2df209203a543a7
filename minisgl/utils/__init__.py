"""What several packages need and none of them owns."""
