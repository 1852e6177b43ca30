"""The algorithms, published ones and `auto`: a few declarative lines each that return a `DeepForestClassifier`.

=========== ===================== ============= =================== ========= ====================== ===============
name        forests               out of sample augmenter           crossover imputer                length
=========== ===================== ============= =================== ========= ====================== ===============
rf_et       RF + ET               out-of-bag    none                no        none                   1 layer
gcforest    2 RF + 2 random       3 folds       output space        no        none                   first drop
lcforest    RF + random           5 folds       output space        no        label complement, TIcE imputation ends
cafe        RF + ET               out-of-bag    embedding           yes       none                   best layer
cafe_os     RF + ET               out-of-bag    embedding + output  yes       none                   best layer
slcforest   RF + ET               out-of-bag    output space        yes       strict complement      best layer >= 2
flaforest   RF + ET               out-of-bag    output space        yes       fluid addition         best layer >= 2
cafe_slc    RF + ET               out-of-bag    embedding + output  yes       strict complement      best layer >= 2
cafe_fla    RF + ET               out-of-bag    embedding + output  yes       fluid addition         best layer >= 2
mldf        RF + ET, depth 3t     5 folds       output, with reuse  no        none                   3 without gain
imldf       2 RF + 2 ET           out-of-bag    label links         no        none                   1 layer
auto        RF + ET               out-of-bag    output space        no        none; calibrated       3, averaged
=========== ===================== ============= =================== ========= ====================== ===============

RF + ET: 150 trees each, leaves of 5 rows, every tree on n/2 draws; gcforest, lcforest, mldf, imldf and auto have
forests of their own. Shared arguments: `n_trees`, `max_layers`, `scoring` (`measure` of mldf), `n_jobs`,
`random_state`, `verbose`; any other parameter of `DeepForestClassifier` may be given by name and replaces the recipe's.

One deviation is common to all: one fit of a layer's forests serves its features, the imputer, the score and the
prediction, where the published code fits up to eight forests a layer (`separate_forests=True` comes close), and
training rows get out-of-sample features, where it uses in-sample ones (`OutputSpace(in_sample=True)`).

References
----------
.. [1] Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019 (gcForest).
.. [2] Q.-W. Wang, L. Yang and Y.-F. Li, Learning from weak-label data: a deep forest expedition, AAAI 2020 (LCForest).
.. [3] P. Ilídio, R. Cerri, C. Vens and F. K. Nakano, Deep forests with tree-embeddings and label imputation for
   weak-label learning, IJCNN 2024 (CaFE, CaFE-OS, SLCForest, FLAForest, CaFE-SLC, CaFE-FLA: "the CaFE paper").
.. [4] L. Yang, X.-Z. Wu, Y. Jiang and Z.-H. Zhou, Multi-label learning with deep forest, ECAI 2020 (MLDF).
.. [5] S.-H. Lyu, Y.-H. Chen and Y. Jiang, Interaction representation based deep forest method in multi-label learning,
   Journal of Software 35(4), 2024, in Chinese (iMLDF).
"""

from sylvan.algorithms.default import auto
from sylvan.algorithms.multi_label import cafe, cafe_os, gcforest, imldf, mldf, rf_et
from sylvan.algorithms.weak_labels import cafe_fla, cafe_slc, flaforest, lcforest, slcforest

__all__ = [
    "auto", "cafe", "cafe_fla", "cafe_os", "cafe_slc", "flaforest", "gcforest", "imldf", "lcforest", "mldf", "rf_et",
    "slcforest",
]  # fmt: skip
