"""DBPNN: a deep back-propagation network that starts from restricted Boltzmann machines."""

import warnings
from contextlib import suppress
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import check_random_state

from sylvan._docs import documented
from sylvan._validation import check_choice, check_integer, check_number
from sylvan.bench.baselines.estimator import EXAMPLE, LabelLearner, dense, parameters


@documented({}, example=EXAMPLE)
@parameters
class DBPNN(LabelLearner):
    """Deep back-propagation neural network, after MEKA's method of that name.

    Features are scaled to [0, 1] by their least and greatest training value, and what lies outside is cut off. With
    `pretrain`, a restricted Boltzmann machine learns the features without labels, the next one its hidden units, and
    so on; then a network with these layers and one sigmoid output for each label starts from their weights and learns
    by back-propagation (log-loss). A single label is learnt by two outputs, of which one says that it is absent.

    The defaults are those of the LCForest paper. The iMLDF paper's network is
    `DBPNN((100, 50), pretrain=False, activation="relu", learning_rate=0.001)`. On sparse text the small pre-trained
    network learns little more than how frequent labels are, in the LCForest paper as well.

    Parameters
    ----------
    hidden : tuple of int, default=(20, 20)
        Units of each hidden layer.
    pretrain : bool, default=True
        Whether hidden layers start from Boltzmann machines; else they start at random. It needs logistic units.
    activation, solver : default="logistic" ("tanh", "relu") and "adam" ("sgd", "lbfgs")
        Hidden units, and what minimises the log-loss.
    alpha, learning_rate : float, default=0.0001 and 0.01
        Weight of the squared weights that is added to the loss, and first step size of "adam" and "sgd".
    max_iter : int, default=200
        Passes over the rows; "lbfgs" may need fewer. Learning does not stop where the loss stays the same for a while,
        since a pre-trained network often starts on such a plateau.
    rbm_learning_rate, rbm_iter : float and int, default=0.1 and 10
        Step size of the Boltzmann machines, and passes over the rows for each.
    random_state : int, RandomState or None, default=None
        Draws the weights and the order of rows.

    Attributes
    ----------
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as in `LabelLearner`
    rbms_ : list of fitted `BernoulliRBM`, empty without `pretrain`
    network_ : the fitted `MLPClassifier`
    n_iter_ : passes that were made

    References
    ----------
    G. E. Hinton and R. R. Salakhutdinov, Reducing the dimensionality of data with neural networks, Science 313, 2006;
    J. Read, P. Reutemann, B. Pfahringer and G. Holmes, MEKA: a multi-label/multi-target extension to WEKA, JMLR 17,
    2016.
    """

    hidden: Any = (20, 20)
    pretrain: bool = True
    activation: str = "logistic"
    _: KW_ONLY
    solver: str = "adam"
    alpha: float = 0.0001
    learning_rate: float = 0.01
    max_iter: int = 200
    rbm_learning_rate: float = 0.1
    rbm_iter: int = 10
    random_state: Any = None

    def _learn(self, X: Any, Y: np.ndarray) -> None:
        hidden = self._check_parameters()
        rng = check_random_state(self.random_state)
        self._scaler = MinMaxScaler(clip=True)
        X = self._scaler.fit_transform(dense(X))
        outputs = (np.column_stack([~Y, Y]) if Y.shape[1] == 1 else Y).astype(np.int64)
        network = MLPClassifier(
            hidden, activation=self.activation, solver=self.solver, alpha=self.alpha, max_iter=self.max_iter,
            learning_rate_init=self.learning_rate, n_iter_no_change=self.max_iter + 1,
            random_state=int(rng.randint(2**31)),
        )  # fmt: skip
        self.rbms_: list[BernoulliRBM] = []
        rows, options = X, {"learning_rate": self.rbm_learning_rate, "n_iter": self.rbm_iter}
        for units in hidden if self.pretrain else ():  # each machine learns the hidden units of the one before
            machine = BernoulliRBM(units, **options, random_state=int(rng.randint(2**31)))
            rows = machine.fit_transform(rows)
            self.rbms_.append(machine)
        if self.rbms_:
            _start_from(network, self.rbms_, X, outputs, rng)
        with warnings.catch_warnings():
            if self.solver != "lbfgs":  # the number of passes is a choice, not a limit
                warnings.simplefilter("ignore", ConvergenceWarning)
            self.network_ = network.fit(X, outputs)
        self.n_iter_ = network.n_iter_

    def _check_parameters(self) -> tuple[int, ...]:
        hidden: tuple[int, ...] = ()
        with suppress(TypeError, ValueError):
            hidden = tuple(check_integer("hidden", units, 1) for units in self.hidden)
        if not hidden:
            raise ValueError(f"hidden must be one or more integers of at least 1, got {self.hidden!r}.")
        check_choice("pretrain", self.pretrain, (True, False))
        check_choice("activation", self.activation, ("logistic", "tanh", "relu"))
        check_choice("solver", self.solver, ("adam", "sgd", "lbfgs"))
        check_number("alpha", self.alpha, 0.0)
        check_number("learning_rate", self.learning_rate, 0.0, open_low=True)
        check_integer("max_iter", self.max_iter, 1)
        check_number("rbm_learning_rate", self.rbm_learning_rate, 0.0, open_low=True)
        check_integer("rbm_iter", self.rbm_iter, 1)
        if self.pretrain and self.activation != "logistic":
            need = "activation='logistic', which Boltzmann machines have"
            raise ValueError(f"pretrain=True needs {need}, got {self.activation!r}.")
        return hidden

    def _label_proba(self, X: Any) -> np.ndarray:
        proba = self.network_.predict_proba(self._scaler.transform(dense(X)))
        # Two outputs that say the same, one the other way round.
        return 0.5 * (proba[:, 1:] + 1.0 - proba[:, :1]) if self.n_labels_ == 1 else proba


def _start_from(
    network: MLPClassifier, machines: list[Any], X: np.ndarray, Y: np.ndarray, rng: np.random.RandomState
) -> None:
    """Give a network the weights of Boltzmann machines to start from; its output gets random ones (Glorot's range).

    scikit-learn's network cannot be given its first weights: one pass gives it some, and a `warm_start` keeps ours.
    """
    n_iter = network.max_iter
    network.set_params(warm_start=True, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, Y)
    for layer, machine in enumerate(machines):
        network.coefs_[layer] = machine.components_.T.copy()
        network.intercepts_[layer] = machine.intercept_hidden_.copy()
    n_inputs, n_outputs = network.coefs_[-1].shape
    reach = np.sqrt(2.0 / (n_inputs + n_outputs))  # scikit-learn's own for logistic units
    network.coefs_[-1] = rng.uniform(-reach, reach, (n_inputs, n_outputs))
    network.intercepts_[-1] = rng.uniform(-reach, reach, n_outputs)
    network.best_loss_, network.n_iter_, network.loss_curve_ = np.inf, 0, []
    network.set_params(max_iter=n_iter)
