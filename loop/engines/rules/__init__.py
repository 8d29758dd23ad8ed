"""The embedded engine: reads guides, needs no model and no network.

It is not a language model and does not pretend to be one. It finds the wordings that
the guides of a prompt version name, decides their assertion status with cues kept as
data, and answers in the same JSON as a model would, with evidence offsets. A
clinician's revision of a guide therefore really changes its answers.

References
----------
Chapman WW, et al. A simple algorithm for identifying negated findings and diseases in
discharge summaries. J Biomed Inform 2001;34:301-310.
Harkema H, et al. ConText: an algorithm for determining negation, experiencer, and
temporal status from clinical reports. J Biomed Inform 2009;42:839-851.
"""

from loop.engines.rules.engine import RulesEngine

__all__ = ["RulesEngine"]
