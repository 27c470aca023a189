"""What was found, in plain words: the first sentence says what a reader should know."""

from __future__ import annotations

from loam_lab.commands.explain import story
from loam_lab.commands.explain.grouping import BlockPair
from loam_lab.commands.explain.sharing import kinds, names
from loam_lab.commands.explain.sharing.estimate import Share
from loam_lab.commands.explain.sharing.findings import Finding, Findings

UNIT = "cache line"
# Below this, the threads hardly ever ran at the same time.
_SELDOM_BESIDE = 0.5
_FEW_SAMPLES = 100
# Where more of the time may be spent on shared lines, it is not said that nothing is shared.
EXCLUDED_ABOVE = 0.1


def words(findings: Findings, window_us: float) -> list[str]:
    """The sentences; the first one is the answer."""
    named = [one for one in findings.blocks if one.named]
    sentences = [_first(named[0])] if named else [_nothing(findings)]
    if named:
        sentences += _advice(named[0])
        sentences.append(
            f"That is the share of the threads' time in which a thread used a cache line that another thread used within "
            f"{window_us / 1000:g} ms: waiting for the line is part of it, and so is the work on it."
        )
    return [*sentences, *_without_lines(named[:1]), *_cautions(findings)]


def _without_lines(named: list[Finding]) -> list[str]:
    """How to get lines, where a block is named by the function that made it."""
    frames = [kind.made.frame for one in named if isinstance(one.key, BlockPair) for kind in one.key.kinds if kind]
    without = [frame for frame in frames if frame is not None and not frame.line]
    if not without:
        return []
    if any(frame.function.startswith(names.ADDRESS) for frame in without):
        return ["The program is stripped, so places are addresses in its file: compile with -g1, and do not strip it."]
    return ["The program has no line tables there, so functions are named: compile with -g1 to get source lines."]


def _first(one: Finding) -> str:
    assert isinstance(one.key, BlockPair)
    pair = one.key
    time = f"about {story.percent(one.share.share)} of the time is spent there ({interval(one.share)})"
    what = story.both(pair)
    if pair.cause == "other_block":
        same = pair.kinds[0] == pair.kinds[1]
        return (
            f"{'Two ' if same else ''}{what} share a cache line; {time}."[:1].upper()
            + (f"{'Two ' if same else ''}{what} share a cache line; {time}."[1:])
        )
    if pair.cause == "same_word":
        return f"The threads share one word, {_in(pair)}; {time}."
    if pair.cause == "same_block":
        return f"The threads use different words of {what} in one cache line; {time}."
    if pair.cause == "static":
        return f"The threads use {what} in one cache line; {time}."
    return f"The threads share a cache line of {what}; {time}."


def _in(pair: BlockPair) -> str:
    whole = story.blocks_in_words(pair, UNIT)
    return whole.removeprefix("one word, ")


def _advice(one: Finding) -> list[str]:
    assert isinstance(one.key, BlockPair)
    kind = one.key.cause
    if kind == "other_block":
        return [
            "Nothing in the program asks for that: another allocator may place the blocks apart, and so does padding."
        ]
    if kind in kinds.FALSE_KINDS:
        return ["The words have only the line in common: with 64 bytes between them, the threads would not meet."]
    if kind == "same_word":
        return ["No allocator changes that: the program itself shares the word."]
    return []


def _nothing(findings: Findings) -> str:
    if findings.samples == 0:
        return "No sample was taken: the program ended too soon, or its threads did not run; give it work for some seconds."
    most = story.percent(findings.any.high)
    if findings.any.caught:
        seen = (
            f"{findings.any.caught} of {findings.watched} watches caught another thread, too few of one kind to name it"
        )
        answer = "No cache line is shared for long"
    else:
        seen = f"in {findings.watched} watches no thread used a cache line that another thread used at that moment"
        answer = "Nothing is shared"
    if findings.any.high > EXCLUDED_ABOVE:
        return f"Too little was seen to tell: {seen}; up to {most} of the time may be spent on shared lines."
    return f"{answer}: {seen}; at most {most} of the time can be spent on shared lines."


def _cautions(findings: Findings) -> list[str]:
    sentences = []
    if 0 < findings.samples < _FEW_SAMPLES:
        sentences.append(
            f"Only {findings.samples} samples were taken, so shares are rough: let the program run longer."
        )
    if findings.watched and findings.beside < _SELDOM_BESIDE:
        sentences.append(
            f"In {story.percent(findings.beside)} of the watches only another thread ran at the same time: the processors were "
            "busy with other work, or the threads take turns."
        )
    return sentences


def interval(share: Share) -> str:
    """The ends of a share's interval: "48 to 66 %"."""
    return story.interval(share.low, share.high)
