"""Draws think times, popularities and arrivals, and writes what scipy says of them to scipy.json.

    pip install scipy==1.17.1 && python scipy_judge.py
"""

import json
import pathlib

import numpy as np
import scipy
from scipy import optimize, stats

random = np.random.default_rng(7)


def think(name, values):
    micros = np.maximum(1, values * 1e6).astype(int)
    exponential = stats.expon.fit(micros, floc=0)
    shape, _, scale = stats.lognorm.fit(micros, floc=0)
    distance = {
        "exponential": stats.kstest(micros, stats.expon(*exponential).cdf).statistic,
        # The mean is that of the sample.
        "lognormal": stats.kstest(
            micros, stats.lognorm(shape, scale=micros.mean() / np.exp(shape**2 / 2)).cdf
        ).statistic,
    }
    return {
        "name": name,
        "micros": micros.tolist(),
        "mean": exponential[1],
        "log_mean": np.log(scale),
        "log_deviation": shape,
        "distance": min(distance.values()),
        "closest": min(distance, key=distance.get),
    }


def popularity(exponent, paths, requests):
    weights = np.arange(1, paths + 1) ** -exponent
    counts = random.multinomial(requests, weights / weights.sum())
    counts = sorted((int(count) for count in counts if count >= 20), reverse=True)
    ranks = np.repeat(np.arange(1, len(counts) + 1), counts)

    def loss(s):
        return -stats.zipfian.logpmf(ranks, s, len(counts)).sum()

    fitted = optimize.minimize_scalar(loss, bounds=(0.01, 5), method="bounded", options={"xatol": 1e-8})
    return {"counts": counts, "exponent": fitted.x}


def arrivals(name, between):
    at = (np.cumsum(between) * 1e9).astype(int)
    gaps = np.diff(at) / 1e9
    result = stats.goodness_of_fit(
        stats.expon, gaps, known_params={"loc": 0}, statistic="ad", n_mc_samples=2_000, rng=random
    )
    return {"name": name, "at_ns": at.tolist(), "a2": result.statistic, "p": result.pvalue}


n = 400
cases = {
    "scipy": scipy.__version__,
    "thinks": [
        think("exponential", random.exponential(3.0, n)),
        think("lognormal", random.lognormal(0.5, 0.9, n)),
        think("weibull", random.weibull(0.6, n)),
    ],
    "popularities": [popularity(s, k, r) for s, k, r in [(0.7, 300, 20_000), (1.0, 500, 40_000), (1.3, 200, 9_000)]],
    "arrivals": [
        arrivals("poisson", random.exponential(0.05, 300)),
        arrivals("even", random.normal(0.05, 0.002, 300)),
        arrivals("bursts", random.choice([0.001, 0.4], 300, p=[0.88, 0.12]) * random.uniform(0.9, 1.1, 300)),
        arrivals("poisson again", random.exponential(2.0, 60)),
    ],
}
pathlib.Path(__file__).with_name("scipy.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
