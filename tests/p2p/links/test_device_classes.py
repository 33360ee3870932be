"""Classes of devices and what they draw."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p.config.distributions import Constant, Uniform
from p2p.config.errors import UserError
from p2p.config.population_shares import place_of, share_problem
from p2p.links.device_classes import Device, device_classes, per_client, per_client_energy
from p2p.links.device_presets import PRESETS, PresetName
from p2p.links.link_table import Links
from p2p.links.settings import NetworkSettings

FALLBACK = Constant(value=77.0)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6), st.lists(st.floats(1e-9, 1 - 1e-9), max_size=20))
def test_draws_fall_into_shares(weights: list[float], us: list[float]) -> None:
    """A part takes exactly its stretch of (0, 1), and shares that sum to 1 but for rounding lose no client."""
    shares = [weight / sum(weights) for weight in weights]
    assert not share_problem("x", shares)
    places = place_of(np.array(us), shares)
    edges = [0.0, *np.cumsum(shares)[:-1].tolist(), 1.0]
    for u, place in zip(us, places.tolist(), strict=True):
        assert edges[place] - 1e-12 <= u <= edges[place + 1] + 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5).filter(lambda shares: abs(sum(shares) - 1) > 1e-3))
def test_shares_that_are_no_whole_are_refused(shares: list[float]) -> None:
    """Whatever they sum to, the problem says it."""
    devices = tuple(Device(name=f"d{i}", share=share) for i, share in enumerate(shares))
    with pytest.raises(UserError, match=r"devices = .*: the shares must sum to 1; they sum to"):
        NetworkSettings(devices=devices)


def test_a_part_without_a_share_gets_no_node() -> None:
    """Also at the very edge."""
    assert place_of(np.array([0.1, 0.9999999999]), [0.0, 1.0, 0.0]).tolist() == [1, 1]


def test_names_are_given_once() -> None:
    """Two classes of one name are a mistake."""
    with pytest.raises(UserError, match="devices = phone: two classes have this name"):
        NetworkSettings(devices=(Device(name="phone", share=0.5), Device(name="phone", share=0.5)))


def test_a_class_goes_before_its_preset_and_the_preset_before_the_network() -> None:
    """What a class gives, what its preset gives, and what the network gives, in this order."""
    device = Device(name="x", share=1.0, preset="server", uplink=Constant(value=5.0))
    assert device.distribution("uplink", FALLBACK) == Constant(value=5.0)
    assert device.distribution("downlink", FALLBACK) == Constant(value=125e6)
    assert device.distribution("compute", FALLBACK) == Constant(value=5000.0)
    assert Device(name="y", share=1.0).distribution("downlink", FALLBACK) is FALLBACK


def test_presets_are_those_a_scenario_may_name() -> None:
    """None sends faster than it receives, and each says where its figures come from."""
    assert set(PRESETS) == set(get_args(PresetName))
    for preset in PRESETS.values():
        assert preset.up_mbit <= preset.down_mbit
        assert "assumed" in preset.source or "20" in preset.source


def test_phones_differ_in_speed_as_measured() -> None:
    """Sigma of the logarithm 0.93 around the preset's median, on 20,000 drawn phones."""
    speeds = per_client((Device(name="p", share=1.0, preset="phone_4g"),), "compute", FALLBACK, 3, 20_000)
    assert np.std(np.log(speeds)) == pytest.approx(0.93, rel=0.02)
    assert np.median(speeds) == pytest.approx(200, rel=0.03)


def test_energy_of_a_client_is_that_of_its_preset() -> None:
    """438.39 mW per Mbit/s are 3.507 uJ per byte; a class without a preset has none."""
    devices = (Device(name="p", share=0.5, preset="phone_4g"), Device(name="q", share=0.5))
    rates = per_client_energy(devices, "per_byte_sent", 3, 100)
    classes = device_classes(devices, 3, 100)
    assert rates[classes == 0].tolist() == pytest.approx([438.39e-3 / 125e3] * int((classes == 0).sum()))
    assert set(rates[classes == 1]) == {0.0}
    assert not per_client_energy((), "per_sample", 3, 5).any()


def test_clients_have_the_links_of_their_class() -> None:
    """Shares are kept roughly, rates exactly; other nodes have no class and no limit."""
    slow = Device(name="slow", share=0.7, uplink=Constant(value=10.0), downlink=Uniform(low=100, high=200))
    settings = NetworkSettings(devices=(slow, Device(name="fast", share=0.3, uplink=Constant(value=1000.0))))
    links = Links(settings, 3, 500, 504)
    names = np.array(["slow", "fast"])[device_classes(settings.devices, 3, 500)]
    assert 0.6 < np.mean(names == "slow") < 0.8
    assert set(links.up[:500][names == "slow"]) == {10.0}
    assert set(links.up[:500][names == "fast"]) == {1000.0}
    assert set(links.down[:500][names == "fast"]) == {12.5e6}
    assert links.down[:500][names == "slow"].max() <= 200
    assert np.isinf(links.up[500:]).all()


def test_without_classes_nothing_changes() -> None:
    """A draw belongs to its id and name alone, with one class or none."""
    distribution = Uniform(low=1e6, high=2e6)
    alone = per_client((), "uplink", distribution, 5, 50)
    classed = per_client((Device(name="x", share=1.0, uplink=distribution),), "uplink", FALLBACK, 5, 50)
    np.testing.assert_array_equal(alone, classed)
    assert not device_classes((), 5, 50).any()
