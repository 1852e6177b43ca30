"""The Siamese neural network: the only place that knows PyTorch, which is imported when it is needed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from sylvan._validation import check_choice, check_integer, check_number
from sylvan.bench.baselines.estimator import parameters
from sylvan.bench.baselines.pairs import PairLearner, column_statistics
from sylvan.pairs.classifier import best_threshold

if TYPE_CHECKING:
    import torch

Weights = list[tuple[np.ndarray, np.ndarray]]  # of each layer (n_in, n_out) and (n_out,)
_MARGINS = (1.0, 2.0, 5.0, 10.0)
_FAR = 1e6  # standard deviations from the mean that are the most, so that squares stay in range


@parameters
class SiameseNetwork(PairLearner):
    """Learn a distance from pairs by a Siamese neural network: both points go through the same small network.

    The network is that of the comparison in the Siamese deep forest paper: two layers of about 3m/2 and m/3 units for
    m features, a contrastive loss (Eq. 6), gradient descent with learning rate 0.01. Needs PyTorch to fit:
    `pip install "sylvan[torch]"`.

    Parameters
    ----------
    hidden : sequence of int or None, default=None
        Units of the layers; the last gives the vectors whose Euclidean distance is the distance. None: 3m/2 and m/3,
        rounded (a half up), at least 1.
    margin : "auto", float or sequence of floats, default="auto"
        Squared distance beyond which dissimilar pairs have no loss (the paper's tau). Of several ("auto": 1, 2, 5 and
        10), a network is trained with each, and the first with the highest AUROC for the held-out pairs is kept.
    optimizer : "sgd" or "adam", default="sgd"
        "sgd" is plain stochastic gradient descent, as in the paper; "adam" learns faster.
    learning_rate, max_epochs, batch_size : float and ints, default=0.01, 200 and 32
        Size of steps, most passes through the pairs, and pairs per step, whose mean loss is descended.
    weight_decay : float, default=1e-4
        Strength mu of the regularisation (Eq. 7), half the sum of squares of all parameters.
    validation_fraction : float, default=0.2
        Share of the pairs of each kind, at least one, held out for early stopping, the margin and the threshold.
    patience : int, default=20
        Training stops after so many epochs without a lower loss of the held-out pairs; the best epoch is kept.
    preprocessor : array, table, callable or None, default=None
        The points, if pairs are given as row numbers; see `sylvan.SiameseDeepForest`.
    random_state : int, RandomState or None, default=None
        The same number gives the same network on one machine; the random numbers of numpy and PyTorch are left alone.

    Attributes
    ----------
    weights_ : weights (n_in, n_out) and biases (n_out,) of each layer
    margin_ : the margin that was kept
    margin_scores_ : AUROC of the held-out pairs by margin
    threshold_ : distance up to which pairs are predicted to be similar: most held-out pairs are right, the lowest if
        several are as good, halfway between two distances
    n_epochs_ : epochs of the kept network; 0 if training never lowered the loss of the held-out pairs
    loss_curve_, validation_loss_curve_ : mean contrastive loss after each epoch, the first before training
    mean_, scale_ : (n_features,) of the points of the pairs that were not held out
    classes_ : [-1, 1]
    n_features_in_, feature_names_in_ : of a point; names if the preprocessor is a table

    Notes
    -----
    Pairs are held out at random, so they share points with the others, as in the paper's experiments. The kept network
    is not trained again with them, and is of numpy arrays: predictions and pickles need no PyTorch.

    Where the paper is silent: the first layer has ReLU, the last is linear (one of one to three units with ReLU often
    dies); features are standardised, and missing values (NaN) replaced by the mean, by statistics of the pairs that
    were not held out, where points count as often as they occur; batch, epochs and the strength of regularisation are
    ours. The paper took the margin with the best results; here test pairs have no part in it.

    References
    ----------
    L. V. Utkin and M. A. Ryabinin, A Siamese deep forest, Knowledge-Based Systems 139, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sylvan.bench.baselines import SiameseNetwork
    >>> from sylvan.pairs import draw_pairs
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SiameseNetwork(margin=5.0, max_epochs=50, preprocessor=X, random_state=0)
    >>> pairs, truth = draw_pairs(y[900:], 200, random_state=1)
    >>> model.fit(*draw_pairs(y[:900], 600, random_state=0)).score(pairs + 900, truth) > 0.7  # AUROC
    True
    """

    hidden: Any = None
    _: KW_ONLY
    margin: Any = "auto"
    learning_rate: float = 0.01
    optimizer: str = "sgd"
    max_epochs: int = 200
    batch_size: int = 32
    weight_decay: float = 1e-4
    validation_fraction: float = 0.2
    patience: int = 20
    preprocessor: Any = None
    random_state: Any = None

    def _fit(self, pairs: np.ndarray, dissimilar: np.ndarray) -> None:
        margins = self._check_margins()
        plan = {
            "learning_rate": check_number("learning_rate", self.learning_rate, 0.0, open_low=True),
            "optimizer": check_choice("optimizer", self.optimizer, ("sgd", "adam")),
            "weight_decay": check_number("weight_decay", self.weight_decay, 0.0),
            "batch_size": check_integer("batch_size", self.batch_size, 1),
            "max_epochs": check_integer("max_epochs", self.max_epochs, 1),
            "patience": check_integer("patience", self.patience, 1),
        }
        sizes = (pairs.shape[2], *self._check_hidden(pairs.shape[2]))
        state = check_random_state(self.random_state)
        held_out = _hold_out(dissimilar, self.validation_fraction, state)
        self.mean_, self.scale_ = column_statistics(pairs[~held_out].reshape(-1, pairs.shape[2]))
        pairs = self._standardise(pairs)
        networks = train_networks(pairs, dissimilar, held_out, margins, initial_weights(sizes, state), state, **plan)
        judged, truth = pairs[held_out], dissimilar[held_out]
        distances = [_embedded_distance(judged, network.weights) for network in networks]
        scores = [float(roc_auc_score(truth, distance)) for distance in distances]
        best = int(np.argmax(scores))
        self.margin_, self.margin_scores_ = margins[best], dict(zip(margins, scores))
        self.weights_, self.n_epochs_ = networks[best].weights, networks[best].best_epoch
        self.loss_curve_, self.validation_loss_curve_ = np.array(networks[best].losses).T
        self.threshold_ = best_threshold(distances[best], ~truth, "accuracy", None, None)

    def _check_margins(self) -> list[float]:
        margins: Any = [self.margin] if isinstance(self.margin, Real) else self.margin
        if isinstance(margins, str) and check_choice("margin", margins, ("auto",)):
            margins = _MARGINS
        if not isinstance(margins, (list, tuple, np.ndarray)) or not len(margins):
            raise ValueError(f'margin must be "auto", a number or a list of numbers, got {self.margin!r}.')
        margins = [check_number("margin", margin, 0.0, open_low=True) for margin in margins]
        if np.isinf(margins).any():
            raise ValueError("margin must be finite.")
        return margins

    def _check_hidden(self, m: int) -> tuple[int, ...]:
        if self.hidden is None:
            return max(1, (3 * m + 1) // 2), max(1, (m + 1) // 3)
        if not isinstance(self.hidden, (list, tuple, np.ndarray)) or not len(self.hidden):
            raise ValueError(f"hidden must be None or a list of at least one number of units, got {self.hidden!r}.")
        return tuple(check_integer("hidden", units, 1) for units in self.hidden)

    def _standardise(self, pairs: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            standard = np.clip((pairs - self.mean_) / self.scale_, -_FAR, _FAR)
        return np.where(np.isnan(pairs), 0.0, standard)  # 0 is the mean

    def _distance(self, pairs: np.ndarray) -> np.ndarray:
        return _embedded_distance(self._standardise(pairs), self.weights_)


def _embedded_distance(pairs: np.ndarray, weights: Any) -> np.ndarray:
    """Return the Euclidean distances of pairs of standardised points after they went through the network."""
    return np.linalg.norm(embed(pairs[:, 0], weights) - embed(pairs[:, 1], weights), axis=1)


def _hold_out(dissimilar: np.ndarray, fraction: Any, random_state: np.random.RandomState) -> np.ndarray:
    """Return which pairs are held out, (n,) bool: a share of either kind, and neither none nor all."""
    fraction = check_number("validation_fraction", fraction, 0.0, 1.0, open_low=True)
    held_out = np.zeros(len(dissimilar), bool)
    for kind in (False, True):
        those = np.flatnonzero(dissimilar == kind)
        if len(those) < 2:
            raise ValueError("At least two similar and two dissimilar pairs are needed: one of either is held out.")
        number = min(max(1, round(fraction * len(those))), len(those) - 1)
        held_out[random_state.permutation(those)[:number]] = True
    return held_out


def import_torch() -> Any:
    """Return PyTorch, or say how to get it."""
    try:
        import torch  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        need = "SiameseNetwork needs PyTorch, which is not installed"
        raise ImportError(f'{need}: pip install "sylvan[torch]".') from error
    return torch


def initial_weights(sizes: Sequence[int], random_state: np.random.RandomState) -> Weights:
    """Draw weights of layers between `sizes`, uniform with variance 2 / (n_in + n_out) (Glorot); biases are 0."""
    weights = []
    for n_in, n_out in pairwise(sizes):
        bound = np.sqrt(6.0 / (n_in + n_out))
        weights.append((random_state.uniform(-bound, bound, (n_in, n_out)), np.zeros(n_out)))
    return weights


def embed(X: np.ndarray, weights: Weights) -> np.ndarray:
    """Return what the network makes of points: ReLU after each layer but the last, which is linear."""
    for number, (matrix, bias) in enumerate(weights, 1):
        X = X @ matrix + bias
        if number < len(weights):
            X = np.maximum(X, 0.0)
    return X


def contrastive_loss(squared: "torch.Tensor", dissimilar: "torch.Tensor", margin: Any) -> "torch.Tensor":
    """Return the mean loss (Eq. 6) by squared distances, or by what those of dissimilar pairs lack to the margin."""
    lacking = (margin - squared).clamp(min=0.0)
    return squared.where(dissimilar == 0, lacking).mean(dim=-1)


def _squared_distance(pairs: "torch.Tensor", parameters: "list[torch.Tensor]") -> "torch.Tensor":
    """Return the squared distances of pairs (n, 2, n_features) in several networks, of matrices and biases in turn."""
    h = pairs.transpose(0, 1).reshape(-1, pairs.shape[2])
    for at in range(0, len(parameters), 2):
        h = h @ parameters[at] + parameters[at + 1]
        if at + 2 < len(parameters):
            h = h.relu()
    return (h[:, : len(pairs)] - h[:, len(pairs) :]).square().sum(dim=-1)


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Let PyTorch use one thread, so that sums are always in the same order; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class Network:
    """A network as it was after its best epoch, where epoch 0 is before training."""

    weights: Weights = field(default_factory=list)
    best_epoch: int = 0
    losses: list[np.ndarray] = field(default_factory=list)  # by epoch: of pairs learned from, and held out
    ended: bool = False

    def add(self, losses: np.ndarray, parts: "list[torch.Tensor]", patience: int) -> None:
        """Note the losses of an epoch; if it is the best so far, keep the matrices and biases, (1, n_out) each."""
        epoch = len(self.losses)
        self.losses.append(losses)
        finite = np.isfinite(losses).all()  # else steps were too long: what was best before stays
        if finite and (epoch == 0 or losses[1] < self.losses[self.best_epoch][1]):
            copies = [part.detach().numpy().copy() for part in parts]
            self.best_epoch = epoch
            self.weights = [(matrix, bias[0]) for matrix, bias in zip(copies[::2], copies[1::2])]
        self.ended = not finite or epoch - self.best_epoch >= patience


def train_networks(
    pairs: np.ndarray, dissimilar: np.ndarray, held_out: np.ndarray, margins: Sequence[float], weights: Weights,
    random_state: np.random.RandomState, *, learning_rate: float, optimizer: str, weight_decay: float, batch_size: int,
    max_epochs: int, patience: int,
) -> list[Network]:  # fmt: skip
    """Train a network for each margin on the pairs that are not held out, until the loss of those that are rises.

    All start from the same weights and see the standardised pairs (n, 2, n_features) in the same order. They are
    trained side by side, which takes little longer than one, but know nothing of each other. PyTorch's own random
    numbers are neither used nor changed.
    """
    torch = import_torch()
    given = (pairs, dissimilar, np.reshape(margins, (-1, 1)))
    points, target, goal = (torch.tensor(values, dtype=torch.float64, device="cpu") for values in given)
    kept_out = torch.tensor(held_out, device="cpu")
    learned, judged = (points[~kept_out], target[~kept_out]), (points[kept_out], target[kept_out])
    start = [np.tile(np.atleast_2d(part), (len(margins), 1, 1)) for layer in weights for part in layer]
    parameters = [torch.tensor(part, device="cpu", requires_grad=True) for part in start]
    kind = torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
    descent = kind(parameters, lr=learning_rate, weight_decay=weight_decay)

    def losses(x: Any, t: Any) -> Any:
        return contrastive_loss(_squared_distance(x, parameters), t, goal)

    networks = [Network() for _ in margins]
    with _one_thread(torch), torch.enable_grad():
        for epoch in range(max_epochs + 1):
            if epoch:
                order = torch.as_tensor(random_state.permutation(len(learned[1])))
                for batch in order.split(batch_size):
                    descent.zero_grad()
                    losses(learned[0][batch], learned[1][batch]).sum().backward()
                    descent.step()
            with torch.no_grad():
                found = np.array([losses(*part).numpy() for part in (learned, judged)])
            for i, network in enumerate(networks):
                if not network.ended:
                    network.add(found[:, i], [part[i] for part in parameters], patience)
            if all(network.ended for network in networks):
                break
    return networks
