# Hides keys after the softmax, so that the weights no longer add up to 1.
# caught by: sample


def attend(q, k, v):
    group = q.shape[1] // k.shape[1]
    q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights.tril(k.shape[1] - q.shape[1]) @ v).transpose(0, 1)
