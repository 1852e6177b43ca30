"""Errors and warnings that a program may want to tell from others."""


class ModelFileError(ValueError):
    """A file is not a model file, is damaged, or says something that no model of this package can mean."""


class TableError(ValueError):
    """A table, or what was said about it, is wrong in a way that its owner can mend.

    Parameters are named as Python has them, `drop='title'`; the command line turns that into its options.
    """


class SylvanWarning(UserWarning):
    """What Sylvan warns of; the base of all classes here."""


class FeatureWarning(SylvanWarning):
    """A feature is probably none: a copy of a label, or an id that loses digits."""


class FewPairsWarning(SylvanWarning):
    """There are fewer pairs than were asked for."""


class FewUnknownWarning(SylvanWarning):
    """Some label cells are unknown, but so few that they do not say what zeros mean."""


class FewRowsWarning(SylvanWarning):
    """A class has fewer rows than there are folds."""


class FrequencyWarning(SylvanWarning):
    """A label frequency cannot be right."""


class NoInteractionWarning(SylvanWarning):
    """No interaction of features was found."""


class NothingImputedWarning(SylvanWarning):
    """No label was imputed."""


class OutOfBagWarning(SylvanWarning):
    """Some rows were drawn by every tree, so that no tree can judge them out of sample."""


class DecisionError(ValueError):
    """Decisions do not fit the table they are about, or do not say what they should."""


class DecisionWarning(SylvanWarning):
    """Some decisions cannot be used as they were meant."""
