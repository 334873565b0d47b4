"""Compares what Plimsoll says of an experiment with what statsmodels says of the same runs.

    pip install statsmodels==0.15.0 && python check.py experiment.json

Of factors set by hand it knows grids of two factors, one of them set by hand.
"""

import json
import sys

import numpy as np
import pandas as pd

from statsmodels_judge import of_blocks, split

SAME_RATIO = 5e-4  # three digits


def read(path):
    document = json.load(open(path))
    it = document["experiment"]
    response = it["response"]
    row = next(row for row in document["figures"]
               if (row["figure"], row["load"]) == (response["figure"], response["load"]))
    rows = []
    sizes = [len(factor["levels"]) for factor in it["factors"]]
    cells = [tuple(index) for index in np.ndindex(*sizes)]
    for cell in it["cells"]:
        missing = {missing["block"] for missing in cell["missing"]}
        blocks = [block for block in range(it["blocks"]) if block not in missing]
        values = [value for value in row["groups"][cell["group"]]["values"] if value is not None]
        assert len(blocks) == len(values) and not cell["at_least"], cell
        number = cells.index(tuple(cell["levels"]))
        for block, value in zip(blocks, values):
            rows.append({"cell": number, "block": block, "value": value, "log": np.log(value)}
                        | {f"f{at}": level for at, level in enumerate(cell["levels"])})
    return it, sizes, cells, pd.DataFrame(rows)


def compared(it, said, cells):
    """Name, what Plimsoll says and what statsmodels says, of each figure."""
    for cell in it["cells"]:
        known = said["means"].get(str(cells.index(tuple(cell["levels"]))))
        if known and cell["interval"]:
            for name, ours in zip(["ratio", "low", "high"], [cell["mean"], *cell["interval"]]):
                yield f"cell {cell['levels']} {name}", ours, known[name]
    for known in said["effects"]:
        at = [{"factor": factor, "level": level} for factor, level in known["at"]]
        ours = next(e for e in it["effects"]
                    if (e["factor"], e["to"], e["at"]) == (known["factor"], known["to"], at))
        name = f"{it['factors'][known['factor']]['name']} level {known['to']} at {known['at']}"
        yield f"{name} ratio", ours["ratio"], known["ratio"]
        if ours["interval"]:
            yield f"{name} low", ours["interval"][0], known["low"]
            yield f"{name} high", ours["interval"][1], known["high"]
    if it["interaction"]:
        for figure in ["f", "p"]:
            yield f"interaction {figure}", it["interaction"][figure], said["interaction"][figure]
    for name in ["residual", "between_blocks"]:
        if it[name]:
            yield name, np.log1p(it[name]["spread_ratio"]), said[name][0]
            yield f"{name}, degrees", it[name]["degrees"], said[name][1]


def main(path):
    it, sizes, cells, frame = read(path)
    by_hand = [at for at, factor in enumerate(it["factors"]) if factor["set"] == "by_hand"]
    said = split(frame, sizes, by_hand[0]) if by_hand else of_blocks(frame, sizes)
    far = 0
    for name, ours, theirs in compared(it, said, cells):
        same = abs(ours - theirs) <= SAME_RATIO * abs(theirs)
        far += not same
        print(f"{'same' if same else 'DIFFERENT':9} {name:48} {ours:14.6g} {theirs:14.6g}")
    sys.exit(f"{far} figures differ" if far else 0)


if __name__ == "__main__":
    main(sys.argv[1])
