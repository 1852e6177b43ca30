"""What the tests of scanning look at: images of digits, and forests that remember."""

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import KFold

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES, DIGITS = IMAGES[DIGITS < 3], DIGITS[DIGITS < 3]
X, Y = IMAGES[:45], DIGITS[:45]
X_NEW = IMAGES[45:55]
ONE_HOT = np.eye(3, dtype=int)[Y]
LABELS = np.column_stack([Y == 0, X[:, 20] > 8, X[:, 36] > 4, Y > 0]).astype(int)


class Recorder(BaseEstimator):
    """A forest that remembers what it was shown and asked; what it says depends on all of it, in whole numbers."""

    encoding = "as it is"
    fitted = ()  # all that were fitted since `record` was called

    def __init__(self, slot=0, out_of_sample=None, n_jobs=None, random_state=None):
        self.slot, self.out_of_sample = slot, out_of_sample
        self.n_jobs, self.random_state = n_jobs, random_state

    def encode(self, X, used=None):
        return X

    def fit(self, X, y, sample_weight=None, groups=None):
        self.shown_, self.learnt_, self.weight_ = np.array(X), np.array(y), sample_weight
        self.asked_ = []
        Recorder.fitted = [*Recorder.fitted, self]
        return self

    def predict_proba(self, X):
        self.asked_.append(np.array(X))
        seen = self.shown_.sum() + self.slot
        told = X @ np.arange(1, X.shape[1] + 1)
        return np.column_stack([(told + seen + 31 * j) % 97 / 97 for j in range(self.learnt_.shape[1])])

    @property
    def feature_importances_(self):
        numbers = 1 + (np.arange(self.shown_.shape[1]) * (self.slot + 2) + self.shown_.sum()) % 5
        return numbers / numbers.sum()


def recorders(n=1, k=3):
    return [Recorder(slot, KFold(k, stratify=False)) for slot in range(n)]


def record(rows, labels, shape, n_forests=1, k=3, fit_params=None, **settings):
    """Return the scanning, its features of the training samples and the models that it fitted."""
    Recorder.fitted = []
    scan = MultiGrainedScanning(shape, forests=recorders(n_forests, k), **{"random_state": 0} | settings)
    features = scan.fit_transform(rows, labels, **fit_params or {})
    return scan, features, Recorder.fitted


def numbered(n, d):
    """Samples whose pixels are all different: pixel j of sample i is i * d + j."""
    return np.arange(n * d, dtype=float).reshape(n, d)


def samples_in(windows, d):
    """The samples that windows of `numbered` come from, in order."""
    return list(dict.fromkeys((windows[:, 0] // d).astype(int).tolist()))


def asked_of(model):
    return np.vstack(model.asked_)


def small(shape=(8, 8), **settings):
    return MultiGrainedScanning(shape, **{"n_trees": 3, "random_state": 0} | settings)


class Speaker(Recorder):
    """Says 100 for its slot, 10 for the first pixel of the window and 1 for the label."""

    def predict_proba(self, X):
        return 100 * self.slot + 10 * X[:, :1] + np.arange(self.learnt_.shape[1])


def speak(rows, shape, **settings):
    forests = [Speaker(slot, KFold(2)) for slot in (1, 2)]
    scan = MultiGrainedScanning(shape, forests=forests, **settings)
    return scan, scan.fit_transform(rows, np.eye(4)[:, :3])


@st.composite
def shapes(draw, max_side=5):
    """Draw an image or a sequence, a window that fits in, and steps."""
    shape = draw(st.integers(1, max_side)), draw(st.integers(1, max_side)), draw(st.integers(1, 2))
    size = draw(st.integers(1, shape[0])), draw(st.integers(1, shape[1]))
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return shape, size, stride
