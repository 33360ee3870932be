"""The quantile function of the normal distribution, without SciPy, whose import takes longer than many a run.

M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37, 1988
(PPND16, about 16 digits): one ratio of polynomials for the middle, one for each part of the tails.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ratio = tuple[Sequence[float], Sequence[float]]
"""The coefficients of numerator and denominator, the highest power first."""

_MIDDLE: Ratio = (
    (
        *(2.50908092873012267270e3, 3.34305755835881281050e4, 6.72657709270087008530e4, 4.59219539315498714570e4),
        *(1.37316937655094611250e4, 1.97159095030655144270e3, 1.33141667891784377450e2, 3.38713287279636660800e0),
    ),
    (
        *(5.22649527885285456100e3, 2.87290857357219426740e4, 3.93078958000927106100e4, 2.12137943015865958670e4),
        *(5.39419602142475110770e3, 6.87187007492057908300e2, 4.23133307016009112520e1, 1.0),
    ),
)
_TAIL: Ratio = (
    (
        *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0),
        *(3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    ),
    (
        *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1),
        *(6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
    ),
)
_FAR_TAIL: Ratio = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2),
        *(2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    ),
    (
        *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4),
        *(1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
    ),
)


def normal_quantiles(u: Floats) -> Floats:
    """Returns the standard normal quantiles at probabilities in the open interval (0, 1)."""
    some = np.atleast_1d(u)
    from_middle = some - 0.5
    # The polynomial is in 0.425^2 - q^2, so that it is symmetric about the middle.
    # Computed for all and overwritten in the tails, where the ratio is finite but wrong.
    found = from_middle * _ratio(_MIDDLE, 0.180625 - from_middle * from_middle)
    tails = np.abs(from_middle) > 0.425
    found[tails] = _tail_quantiles(some[tails])
    return found.reshape(np.shape(u))


def _tail_quantiles(u: Floats) -> Floats:
    # The smaller tail: 1 - u keeps its digits only there.
    distance = np.sqrt(-np.log(np.minimum(u, 1.0 - u)))
    # Both ratios are computed for all; clipped, so that neither overflows where the other is taken.
    near = np.minimum(distance, 5.0) - 1.6
    found = np.where(distance <= 5.0, _ratio(_TAIL, near), _ratio(_FAR_TAIL, distance - 5.0))
    # The tails are symmetric: the ratio gives the size, the half of the interval the sign.
    return np.copysign(found, u - 0.5)


def _ratio(ratio: Ratio, x: Floats) -> Floats:
    over, under = (_polynomial(coefficients, x) for coefficients in ratio)
    return over / under


def _polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    """Horner's scheme."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value
