"""What tests do at random: the same each time, from $TRIBUTARY_SEED, or 1.

./check gives every machine the same lots; ./check --deep and ./soak draw new
ones and print the seed, which repeats them as far as scheduling lets it.
"""

import os
import random

SEED = int(os.environ.get("TRIBUTARY_SEED", "1"))


def seeded():
    """A generator of one's own; a failed test's output has the seed."""
    print(f"# TRIBUTARY_SEED={SEED}", flush=True)
    return random.Random(SEED)
