"""From a checkpoint folder to a model that computes logits."""
