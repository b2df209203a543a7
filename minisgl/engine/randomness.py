"""Random numbers without a state: each is a hash of a seed and an index."""

_MASK = (1 << 64) - 1


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that `seed` and `index` determine, with 40 random bits."""
    return (mix(seed, index) >> 24) / (1 << 40)


def mix(seed: int, index: int) -> int:
    """A 64-bit hash of two integers, whose bits look independent for neighbouring inputs.

    Two rounds of the finaliser of SplitMix64: Steele, Lea and Flood, "Fast Splittable
    Pseudorandom Number Generators" (2014).
    """
    return _finalise((_finalise(seed) + index) & _MASK)


def _finalise(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
