"""Makes experiments up and writes what statsmodels says of them to statsmodels.json.

    pip install statsmodels==0.15.0 && python statsmodels_judge.py
"""

import json
import pathlib

import numpy as np
import pandas as pd
import statsmodels
import statsmodels.formula.api as smf
from scipy import stats

RUNS, BLOCKS, PLOTS = 0.02, 0.05, 0.04  # standard deviations of logarithms


def grid(sizes):
    return [tuple(int(i) for i in index) for index in np.ndindex(*sizes)]


def interval(log, error, degrees):
    t = stats.t.ppf(0.975, degrees) * error
    return {"ratio": np.exp(log), "low": np.exp(log - t), "high": np.exp(log + t)}


def data(seed, sizes, blocks, effects, by_hand=None, missing=()):
    """Runs of all cells in all blocks; `effects` is the logarithm of a cell."""
    random = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        shift = random.normal(0, BLOCKS)
        plots = [random.normal(0, PLOTS) for _ in range(sizes[by_hand])] if by_hand is not None else []
        for cell, levels in enumerate(grid(sizes)):
            plot = plots[levels[by_hand]] if plots else 0.0
            value = float(f"{20_000 * np.exp(effects(levels) + shift + plot + random.normal(0, RUNS)):.6g}")
            if (cell, block) not in missing:
                rows.append({"cell": cell, "block": block, "value": value, "log": np.log(value)}
                            | {f"f{at}": level for at, level in enumerate(levels)})
    return pd.DataFrame(rows)


def weights(sizes, cells, factor, to, at):
    """Of the present cells: those at a level less those at the first."""
    held = [c for c in cells if all(grid(sizes)[c][f] == level for f, level in at)]
    def other(cell, level):
        return grid(sizes).index(tuple(level if f == factor else l for f, l in enumerate(grid(sizes)[cell])))
    firsts = [c for c in held if grid(sizes)[c][factor] == 0 and other(c, to) in cells]
    found = dict.fromkeys(cells, 0.0)
    for cell in firsts:
        found[cell] -= 1 / len(firsts)
        found[other(cell, to)] += 1 / len(firsts)
    return np.array([found[cell] for cell in cells]), len(firsts)


def comparisons(sizes, is_found):
    """Main effects, and where there is an interaction those at each level of the others."""
    for factor, size in enumerate(sizes):
        for to in range(1, size):
            yield factor, to, []
    for factor, size in enumerate(sizes if is_found else []):
        rest = [f for f in range(len(sizes)) if f != factor]
        for levels in grid([sizes[f] for f in rest]):
            for to in range(1, size):
                yield factor, to, list(zip(rest, levels))


def of_blocks(frame, sizes):
    """Cells and blocks, by ordinary least squares."""
    full = smf.ols("log ~ C(cell) - 1 + C(block, Sum)", frame).fit()
    cells = sorted(frame.cell.unique())
    names = [f"C(cell)[{cell}]" for cell in cells]
    found = {"means": {}, "effects": [], "residual": [np.sqrt(full.mse_resid), full.df_resid]}
    for cell, name in zip(cells, names):
        found["means"][str(cell)] = interval(full.params[name], full.bse[name], full.df_resid)
    is_found = False
    if len(sizes) > 1:
        terms = " + ".join(f"C(f{at})" for at in range(len(sizes)))
        additive = smf.ols(f"log ~ {terms} + C(block)", frame).fit()
        f, p, above = full.compare_f_test(additive)
        found["interaction"] = {"f": f, "degrees": [above, full.df_resid], "p": p}
        is_found = p < 0.05
    for factor, to, at in comparisons(sizes, is_found):
        of_cells, pairs = weights(sizes, cells, factor, to, at)
        if pairs:
            whole = np.zeros(len(full.params))
            for name, weight in zip(names, of_cells):
                whole[list(full.params.index).index(name)] = weight
            test = full.t_test(whole)
            known = interval(test.effect[0], test.sd[0][0], full.df_resid)
            found["effects"].append({"factor": factor, "to": to, "at": at} | known)
    return found


def split(frame, sizes, by_hand):
    """A split plot: a mixed model by REML, and its strata by ordinary least squares."""
    frame["plot"] = frame.block * sizes[by_hand] + frame[f"f{by_hand}"]
    runs = smf.ols("log ~ C(cell) + C(plot)", frame).fit()
    other = 1 - by_hand
    additive = smf.ols(f"log ~ C(f{other}) + C(plot)", frame).fit()
    f, p, above = runs.compare_f_test(additive)
    plots = frame.groupby(["block", f"f{by_hand}"]).log.mean().reset_index()
    between = smf.ols(f"log ~ C(f{by_hand}) + C(block)", plots).fit()
    mixed = smf.mixedlm("log ~ C(cell) - 1 + C(block, Sum)", frame, groups=frame["plot"]).fit(
        reml=True, method="powell", xtol=1e-10, ftol=1e-14)
    cells = sorted(frame.cell.unique())
    names = [f"C(cell)[{cell}]" for cell in cells]
    covariance = mixed.cov_params().loc[names, names].to_numpy()
    k = sizes[other]
    found = {"means": {}, "effects": [],
             "residual": [np.sqrt(mixed.scale), runs.df_resid],
             "between_blocks": [np.sqrt(mixed.cov_re.iloc[0, 0] + mixed.scale / k), between.df_resid],
             "interaction": {"f": f, "degrees": [above, runs.df_resid], "p": p}}
    for factor, to, at in comparisons(sizes, p < 0.05):
        of_cells, _ = weights(sizes, cells, factor, to, at)
        log = of_cells @ mixed.params[names].to_numpy()
        error = np.sqrt(of_cells @ covariance @ of_cells)
        if factor == other:
            degrees = runs.df_resid
        elif not at:
            degrees = between.df_resid
        else:  # Satterthwaite: a part of the plots' mean square and one of the runs'
            a, b = between.mse_resid, runs.mse_resid * (k - 1) / k
            degrees = (a + b) ** 2 / (a**2 / between.df_resid + b**2 / runs.df_resid)
        found["effects"].append({"factor": factor, "to": to, "at": at} | interval(log, error, degrees))
    return found


def case(name, frame, sizes, said, values=None, by_hand=None):
    return {"name": name, "sizes": sizes, "values": values, "by_hand": by_hand,
            "runs": frame[["cell", "block", "value"]].to_dict("records"), "said": said}


def cases():
    clear = lambda levels: 0.3 * levels[0] + 0.04 * levels[-1] + 0.09 * levels[0] * levels[-1]
    plain = lambda levels: 0.3 * levels[0] - 0.03 * levels[-1]
    frame = data(1, [2, 2], 3, plain)
    yield case("2 x 2, three repeats", frame, [2, 2], of_blocks(frame, [2, 2]))
    frame = data(2, [2, 3], 5, clear)
    yield case("2 x 3, five repeats, an interaction", frame, [2, 3], of_blocks(frame, [2, 3]))
    frame = data(3, [2, 3], 3, clear, missing=[(4, 1), (0, 2)])
    yield case("2 x 3, two runs missing", frame, [2, 3], of_blocks(frame, [2, 3]))
    frame = data(4, [2, 3], 4, clear, missing=[(5, block) for block in range(4)])
    yield case("2 x 3, a cell missing", frame, [2, 3], of_blocks(frame, [2, 3]))
    frame = data(5, [2, 3], 4, clear, by_hand=0)
    yield case("2 x 3, the first factor set by hand", frame, [2, 3], split(frame, [2, 3], 0), by_hand=0)
    frame = data(6, [2, 2], 5, plain, by_hand=0)
    yield case("2 x 2, the first factor set by hand", frame, [2, 2], split(frame, [2, 2], 0), by_hand=0)
    speed = lambda levels: np.log([1.0, 1.86, 3.2, 4.7][levels[0]])
    frame = data(7, [4], 3, speed)
    yield case("four sizes, three repeats", frame, [4], of_blocks(frame, [4]), values=[1, 2, 4, 8])
    frame = data(8, [2, 2, 2], 3, lambda levels: 0.1 * levels[0] + 0.08 * levels[1] * levels[2])
    yield case("2 x 2 x 2, three repeats", frame, [2, 2, 2], of_blocks(frame, [2, 2, 2]))


def rounded(value):
    match value:
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list() | tuple():
            return [rounded(item) for item in value]
        case float() | np.floating():
            return float(f"{value:.6g}")
        case np.integer():
            return int(value)
    return value


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(rounded(one)) for one in cases())
    text = f'{{"statsmodels": "{statsmodels.__version__}", "cases": [\n{lines}\n]}}\n'
    pathlib.Path(__file__).with_name("statsmodels.json").write_text(text)
