"""What the model says: words that depend on the prompt and do not repeat themselves."""

WORDS = (
    "river stone lantern orchard winter copper harbour meadow signal garden thunder paper bridge candle forest anchor "
    "market window silver valley engine morning letter mountain shadow compass kitchen island velvet railway summer "
    "ladder mirror cotton station pepper whistle hollow basket ribbon feather planet tunnel saddle button violin "
    "marble cabin ginger helmet").split()

CORRUPT = "the"

# Each word is a token of its own: ids that several words share would repeat
# themselves by chance, which is what wrong answers are known by.
TOKENS = dict((word, i) for i, word in enumerate(WORDS + [CORRUPT]))


class Speaker:
    """A sequence of words. The same prompt gives the same words, whatever else happens."""

    def __init__(self, prompt):
        self.state = 2166136261
        for byte in prompt.encode("utf-8", "replace"):
            self.state = (self.state ^ byte) * 16777619 & 0xFFFFFFFF

    def word(self, corrupt=False):
        if corrupt:
            return CORRUPT
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return WORDS[(self.state >> 16) % len(WORDS)]
