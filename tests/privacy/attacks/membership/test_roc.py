"""ROC curves against scikit-learn, and thresholds by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score, roc_curve

from privacy.attacks.membership.roc import best_threshold, roc_of, upper_half

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_area_and_points_are_scikit_learns(members: np.ndarray, others: np.ndarray) -> None:
    """Ties included: scores are few whole numbers."""
    truth = np.r_[np.ones(len(members)), np.zeros(len(others))]
    scores = np.r_[members, others]
    found = roc_of(members, others)
    assert found.area() == pytest.approx(roc_auc_score(truth, scores))
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    assert found.fpr == pytest.approx(fpr)
    assert found.tpr == pytest.approx(tpr)


@given(SCORES, SCORES)
def test_the_best_threshold_is_the_best(members: np.ndarray, others: np.ndarray) -> None:
    """Compared with every threshold there is."""
    truth = np.r_[np.ones(len(members)), np.zeros(len(others))].astype(bool)
    scores = np.r_[members, others]

    def accuracy(threshold: float) -> float:
        return float(balanced_accuracy_score(truth, scores > threshold))

    best = max(accuracy(cut) for cut in [-10.0, *(np.unique(scores) + 0.5), *np.unique(scores)])
    assert accuracy(best_threshold(members, others)) == pytest.approx(best)


def test_rates_at_small_false_positive_rates() -> None:
    """Two of four members outscore all of five hundred non-members but one."""
    members, others = np.array([9.0, 8.0, 6.0, -1.0]), np.r_[7.0, np.zeros(499)]
    curve = roc_of(members, others)
    assert curve.tpr_at(0.001) == 0.5  # below 1/500 no false positive is allowed
    assert curve.tpr_at(0.01) == 0.75


def test_scores_that_are_not_numbers_count_as_lowest() -> None:
    """A diverged model says nothing about a record."""
    assert roc_of(np.array([np.nan]), np.array([0.0])).area() == 0.0


def test_the_upper_half_is_half() -> None:
    """Ties go by place, which says nothing about membership."""
    assert upper_half(np.array([1.0, 5.0, 5.0, 0.0, np.nan])).tolist() == [False, True, True, False, False]
    assert upper_half(np.zeros(4)).tolist() == [True, True, False, False]
