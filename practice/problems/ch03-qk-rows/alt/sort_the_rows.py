# Sorts the row numbers by head and place; a stable sort keeps the pairs in order.
def to_hub_rows(weight, num_heads):
    head_dim = len(weight) // num_heads
    order = sorted(range(len(weight)), key=lambda row: (row // head_dim, row % 2))
    return weight[order]
