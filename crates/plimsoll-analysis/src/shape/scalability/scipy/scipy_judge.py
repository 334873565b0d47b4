"""Makes curves up and writes how scipy fits the scalability law to them to scipy.json.

    pip install scipy==1.17.1 && python scipy_judge.py
"""

import json
import pathlib

import numpy as np
import scipy
from scipy.optimize import curve_fit

LADDERS = {
    "doubling": [1, 2, 4, 8, 16, 32],
    "few": [1, 2, 3, 4],
    "steps": list(range(10, 101, 10)),
    "fractions": [1, 1.5, 2, 3, 4, 6, 8],
    "three runs each": [1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8],
}
LAWS = {  # gamma, alpha, beta
    "straight": (1_000, 0.0, 0.0),
    "contention": (850, 0.06, 0.0),
    "coherency": (1_200, 0.0, 0.004),
    "both": (990.5, 0.03, 0.0008),
    "steep": (40, 0.5, 0.02),
}
SCATTER = 0.02


def law(n, gamma, alpha, beta):
    return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


def cases():
    random = np.random.default_rng(11)
    for ladder, loads in LADDERS.items():
        for name, parameters in LAWS.items():
            n = np.array(loads, dtype=float)
            x = law(n, *parameters) * np.exp(random.normal(0, SCATTER, len(n)))
            x = np.array([float(f"{value:.6g}") for value in x])
            # From several starts: the best is what is meant by the fit.
            starts = [(x[0] / n[0], a, b) for a in (0.0, 0.05, 0.5) for b in (0.0, 0.001, 0.02)]
            fits = []
            for start in starts:
                found, _ = curve_fit(law, n, x, start, bounds=(0, np.inf), x_scale=(start[0], 0.1, 0.01),
                                     ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=100_000)
                fits.append((float(np.sum((x - law(n, *found)) ** 2)), [float(value) for value in found]))
            squares, found = min(fits)
            yield {"name": f"{name}, {ladder}", "loads": loads, "throughputs": list(x),
                   "squares": float(f"{squares:.6g}"), "said": [float(f"{value:.6g}") for value in found]}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(one) for one in cases())
    text = f'{{"scipy": "{scipy.__version__}", "cases": [\n{lines}\n]}}\n'
    pathlib.Path(__file__).with_name("scipy.json").write_text(text)
