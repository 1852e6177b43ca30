"""Training of a Siamese neural network: the only place that knows PyTorch, which is imported when it is needed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Weights = list[tuple[np.ndarray, np.ndarray]]  # of each layer (n_in, n_out) and (n_out,)


@dataclass(frozen=True)
class TrainingPlan:
    """How a network is trained."""

    learning_rate: float
    optimizer: str
    weight_decay: float
    batch_size: int
    max_epochs: int
    patience: int


@dataclass(frozen=True)
class TrainedNetwork:
    """A network as it was after its best epoch; epoch 0 is before training."""

    weights: Weights
    best_epoch: int
    train_loss: np.ndarray
    validation_loss: np.ndarray


def import_torch() -> Any:
    """Return PyTorch, or say how to get it."""
    try:
        import torch  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(
            'SiameseNetwork needs PyTorch, which is not installed: pip install "sylvan[torch]".'
        ) from error
    return torch


def layer_sizes(n_features: int) -> tuple[int, int]:
    """Return the paper's numbers of units, 3m/2 and m/3 of m features, rounded (a half up), at least 1."""
    return max(1, (3 * n_features + 1) // 2), max(1, (n_features + 1) // 3)


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
    """Return the mean loss of pairs, along the last axis, by their squared distances (Eq. 6).

    It is the squared distance of similar pairs, and what dissimilar pairs lack to the margin in squared distance.
    """
    lacking = (margin - squared).clamp(min=0.0)
    return squared.where(dissimilar == 0, lacking).mean(dim=-1)


def _squared_distance(pairs: "torch.Tensor", parameters: "list[torch.Tensor]") -> "torch.Tensor":
    """Return the squared distances of embedded pairs (n, 2, n_features) in each of several networks.

    `parameters` has a matrix (n_networks, n_in, n_out) and a bias (n_networks, 1, n_out) for each layer in turn.
    """
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


def train_networks(
    pairs: np.ndarray,
    dissimilar: np.ndarray,
    held_out: np.ndarray,
    margins: Sequence[float],
    weights: Weights,
    plan: TrainingPlan,
    random_state: np.random.RandomState,
) -> list[TrainedNetwork]:
    """Train a network for each margin on the pairs that are not held out, until the loss of those that are rises.

    All start from the same weights and see the pairs in the same order. They are trained side by side, which takes
    little longer than one, but know nothing of each other. Only `random_state` is drawn from: PyTorch's own random
    numbers are neither used nor changed.

    `pairs` are (n, 2, n_features) standardised points, `dissimilar` and `held_out` (n,) bools, `weights` those to start
    from; `random_state` is for the order of the pairs.
    """
    torch = import_torch()
    points, target, goal = (
        torch.tensor(values, dtype=torch.float64, device="cpu")
        for values in (pairs, dissimilar, np.reshape(margins, (-1, 1)))
    )
    kept_out = torch.tensor(held_out, device="cpu")
    learned, judged = (points[~kept_out], target[~kept_out]), (points[kept_out], target[kept_out])
    parameters = [
        torch.tensor(np.tile(np.atleast_2d(part), (len(margins), 1, 1)), device="cpu", requires_grad=True)
        for layer in weights
        for part in layer
    ]
    kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
    optimizer = kind(parameters, lr=plan.learning_rate, weight_decay=plan.weight_decay)

    def losses() -> np.ndarray:
        with torch.no_grad():
            return np.array(
                [contrastive_loss(_squared_distance(x, parameters), t, goal).numpy() for x, t in (learned, judged)]
            )

    records = [_Record(network, plan.patience) for network in range(len(margins))]
    with _one_thread(torch), torch.enable_grad():
        for epoch in range(plan.max_epochs + 1):
            if epoch:
                order = torch.as_tensor(random_state.permutation(len(learned[1])))
                for batch in order.split(plan.batch_size):
                    optimizer.zero_grad()
                    squared = _squared_distance(learned[0][batch], parameters)
                    contrastive_loss(squared, learned[1][batch], goal).sum().backward()
                    optimizer.step()
            found = losses()
            for record in records:
                record.add(found, parameters)
            if all(record.ended for record in records):
                break
    return [record.result() for record in records]


class _Record:
    """What becomes of one of the networks, until it ends."""

    def __init__(self, network: int, patience: int) -> None:
        self.network = network
        self.patience = patience
        self.ended = False
        self.best = 0
        self.weights: Weights = []
        self.history: list[np.ndarray] = []

    def add(self, losses: np.ndarray, parameters: "list[torch.Tensor]") -> None:
        """Note the losses (2, n_networks) of an epoch, for pairs learned from and held out, unless it has ended."""
        if self.ended:
            return
        epoch = len(self.history)
        self.history.append(losses[:, self.network])
        if not np.isfinite(self.history[-1]).all():  # steps were too long: what was best before stays
            self.ended = True
        elif epoch == 0 or self.history[-1][1] < self.history[self.best][1]:
            parts = [part[self.network].detach().numpy().copy() for part in parameters]
            self.best, self.weights = epoch, [(matrix, bias[0]) for matrix, bias in zip(parts[::2], parts[1::2])]
        self.ended = self.ended or epoch - self.best >= self.patience

    def result(self) -> TrainedNetwork:
        train_loss, validation_loss = np.array(self.history).T
        return TrainedNetwork(self.weights, self.best, train_loss, validation_loss)
