"""The example of docs/privacy.md: three clients, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from privacy.accounting.accountant import Accountant
from privacy.accounting.content_log import RoundContents, ShareNoise
from privacy.accounting.curves.gaussian import epsilon_of
from privacy.accounting.gaussian_view import joint_mu2, sums_mu2
from privacy.accounting.setting import Setting

LED = RoundContents(
    round_number=1,
    clients=np.arange(3),
    sensitivity=np.full(3, 2.0),
    variance=np.full(3, 4.0),
    sums=np.ones((1, 3)),
    receipts=np.array([[0, 1], [0, 2]]),
)
VOID = replace(LED, sums=np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
SHARED = replace(
    LED,
    shares=ShareNoise(
        variance=np.array([12.0]),
        factor=sparse.csr_matrix(np.array([[0.0], [1.0], [-1.0]])),
        repairs=np.zeros((1, 1)),
        spread=np.zeros(1),
        known=np.array([[1, 0], [2, 0]]),
    ),
)


def exact(found: object) -> list[Fraction]:
    """Numbers as the fractions they are."""
    return [Fraction(float(value)).limit_denominator(1000) for value in np.asarray(found)]


def test_rows_of_the_table() -> None:
    """Outsider, member, leader, a void aggregate, a share, and the share opened."""
    one, half, third = Fraction(1), Fraction(1, 2), Fraction(1, 3)
    assert exact(sums_mu2(LED, [()], 3)[0]) == [third] * 3
    assert exact(sums_mu2(LED, [(1,)], 3)[0]) == [half, 0, half]
    assert exact(joint_mu2(LED, [1, 2], {0}, 3, sums=True)) == [0, one, one]
    assert exact(sums_mu2(VOID, [()], 3)[0]) == [half, half, one]
    assert exact(joint_mu2(SHARED, [1, 2], {0}, 3, sums=True)) == [0, Fraction(4, 7), Fraction(4, 7)]
    shares = replace(SHARED.share_noise, known=np.array([[0, 0], [1, 0], [2, 0]]))
    assert exact(joint_mu2(replace(SHARED, shares=shares), [1, 2], {0}, 3, sums=True)) == [0, one, one]


def test_two_rounds_of_gossip() -> None:
    """What stands behind a received release counts in full."""
    told = Accountant(Setting(clients=3, spread="by_path", delta=1e-5, rounds=2))
    for number, (sender, receiver) in enumerate([(0, 1), (1, 2)], start=1):
        told.add(
            RoundContents(
                round_number=number,
                clients=np.array([sender]),
                sensitivity=np.array([2.0]),
                variance=np.array([4.0]),
                sums=np.zeros((0, 1)),
                receipts=np.array([[receiver, 0]]),
                used=np.array([[0, receiver]]),
            )
        )
    views = told.views()
    assert views.peer_worst.epsilon == pytest.approx(epsilon_of(1.0, 1e-5))
    assert views.peer_worst.how == "bound"


def test_their_epsilons() -> None:
    """As the text says."""
    found = [epsilon_of(float(np.sqrt(mu2)), 1e-5) for mu2 in (1 / 3, 1 / 2, 4 / 7, 1)]
    assert [round(value, 2) for value in found] == [2.34, 2.94, 3.18, 4.38]
