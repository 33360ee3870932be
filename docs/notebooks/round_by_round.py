import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import peerveil as pv

    mo.md("# Round by round\nA simulation that is looked into after every round, and stopped when it is good enough.")
    return mo, pv


@app.cell
def _(pv):
    seen = []
    for state in pv.simulate(
        "gossip-plain", rounds=6, clients=30, protocol={"train_per_round": 12, "exchange_with": 4}
    ):
        seen.append({"round": state.number, "seconds": state.time_s, "accuracy": state.accuracy})
        if state.accuracy is not None and state.accuracy > 0.9:
            break
    seen
    return seen, state


@app.cell
def _(mo, seen):
    mo.ui.table(seen)
    return


@app.cell
def _(state):
    import numpy as np

    models = np.stack([state.model(client) for client in range(30)])
    spread = float(np.linalg.norm(models - models.mean(axis=0), axis=1).mean())
    spread
    return (spread,)


if __name__ == "__main__":
    app.run()
