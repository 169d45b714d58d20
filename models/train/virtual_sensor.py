#!/usr/bin/env python3
# Trains the virtual-sensor model `air-neighbours` on the rows that neighbourhoods.ts wrote, and writes its folder.
# virtual_sensor.py ROWS_DIR MODEL_DIR [--seed N]; the same rows and seed give the same file on one machine.
# With --evaluate each station in turn is left out of the training, and the errors at it are printed.
import argparse
import os

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper

from folder import write_folder

arguments = argparse.ArgumentParser()
arguments.add_argument("rows")
arguments.add_argument("folder")
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--epochs", type=int, default=3)
arguments.add_argument("--evaluate", action="store_true")
options = arguments.parse_args()
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

SOURCES = 8
WIDTH = 45
KRIGING = WIDTH - 1
HIDDEN = 32
BATCH = 512
# Distances are changed at random, so that the model does not learn the stations by heart.
JITTER = 0.25
# Half of the estimate is kriging.
KRIGING_SHARE = 0.5
SPREAD_SHARE = 0.3
POLLUTANTS = ["PM2.5", "NO2", "O3"]
TRUTH, _, POLLUTANT, STATION, _, BY_KRIGING = range(6)


def read(part):
    rows = np.fromfile(os.path.join(options.rows, f"virtual-{part}.f32"), dtype=np.float32).reshape(-1, WIDTH)
    truths = np.fromfile(os.path.join(options.rows, f"virtual-{part}-truths.f32"), dtype=np.float32)
    return rows, truths.reshape(-1, 6)


def inverse_distance(rows):
    values = rows[:, :SOURCES]
    weights = np.where(np.isnan(values), 0, np.exp(-2 * rows[:, SOURCES : 2 * SOURCES]))
    return (weights * np.nan_to_num(values)).sum(1) / weights.sum(1)


class Net(torch.nn.Module):
    """Weights of the sources, beginning with inverse distances, and a correction, beginning with none."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH + SOURCES, HIDDEN)
        self.second = torch.nn.Linear(HIDDEN, HIDDEN)
        self.last = torch.nn.Linear(HIDDEN, SOURCES + 2)
        self.power = torch.nn.Parameter(torch.tensor(2.0))
        self.gate = torch.nn.Parameter(torch.tensor(0.0))
        self.dropout = torch.nn.Dropout(0.1)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, rows):
        missing = torch.isnan(rows[:, :SOURCES])
        rows = torch.where(torch.isnan(rows), torch.zeros_like(rows), rows)
        values = rows[:, :SOURCES]
        kriging = rows[:, KRIGING]
        hidden = torch.relu(self.first(torch.cat([rows, missing.float()], 1)))
        given = self.last(torch.relu(self.second(self.dropout(hidden))))
        scores = given[:, :SOURCES] - self.power * rows[:, SOURCES : 2 * SOURCES]
        weights = torch.softmax(torch.where(missing, torch.full_like(scores, -1e4), scores), 1)
        share = torch.sigmoid(self.gate)
        middle = share * (weights * values).sum(1) + (1 - share) * kriging
        spread = torch.sqrt((weights * (values - middle[:, None]) ** 2).sum(1) + 1e-4)
        estimate = middle + SPREAD_SHARE * given[:, SOURCES] * spread
        return estimate, given[:, SOURCES + 1] + torch.log(spread.detach() + 0.1)


def trained(rows, truths):
    torch.manual_seed(options.seed)
    net = Net()
    baseline = [np.mean((inverse_distance(rows[own]) - truths[own, TRUTH]) ** 2) for own in by_pollutant(truths)]
    x, t = torch.tensor(rows), torch.tensor(truths)
    weight = torch.sqrt(1 / torch.tensor(np.array(baseline, dtype=np.float32))[t[:, POLLUTANT].long()])
    steps = len(x) // BATCH
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=options.epochs * steps)
    for epoch in range(options.epochs):
        order = torch.randperm(len(x))
        for step in range(steps):
            own = order[step * BATCH : (step + 1) * BATCH]
            batch = x[own].clone()
            batch[:, SOURCES : 3 * SOURCES] += JITTER * torch.randn(BATCH, 2 * SOURCES)
            batch[:, 3 * SOURCES : 4 * SOURCES] += 0.5 * JITTER * torch.randn(BATCH, SOURCES)
            batch[:, 5 * SOURCES] += JITTER * torch.randn(BATCH)
            # The last place is empty, since there are eight stations. Another one is, in every second batch.
            empty = int(torch.randint(2 * SOURCES, ()))
            places = [*range(SOURCES - 1)]
            places.insert(min(empty, SOURCES - 1), SOURCES - 1)
            per_source = batch[:, : KRIGING - 4].reshape(BATCH, -1, SOURCES)[:, :, places]
            batch[:, : KRIGING - 4] = per_source.reshape(BATCH, -1)
            estimate, error = net(batch)
            off = torch.abs(estimate - t[own, TRUTH])
            relative = off * weight[own]
            # Squares up to three deviations, then straight: a few extreme hours must not decide.
            loss = torch.where(relative < 3, relative**2, 6 * relative - 9).mean()
            loss = loss + 0.1 * (error + off.detach() / torch.exp(error)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    return net.eval()


def by_pollutant(truths):
    return [truths[:, POLLUTANT] == index for index in range(len(POLLUTANTS))]


def estimates(net, rows):
    with torch.no_grad():
        estimate, error = net(torch.tensor(rows))
    both = KRIGING_SHARE * rows[:, KRIGING] + (1 - KRIGING_SHARE) * estimate.numpy()
    return both, np.exp(error.numpy())


def evaluate(rows, truths):
    test_rows, test_truths = read("test")
    ratios = {name: [] for name in POLLUTANTS}
    for station in np.unique(truths[:, STATION]):
        keeps = truths[:, STATION] != station
        net = trained(rows[keeps], truths[keeps])
        for name, own in zip(POLLUTANTS, by_pollutant(test_truths)):
            own = own & (test_truths[:, STATION] == station)
            truth = test_truths[own, TRUTH]
            root = lambda given: np.sqrt(np.mean((given - truth) ** 2))
            bar = root(inverse_distance(test_rows[own]))
            ratios[name].append([root(estimates(net, test_rows[own])[0]) / bar, root(test_truths[own, BY_KRIGING]) / bar])
    print("RMSE relative to inverse distance squared, mean of stations that the model has not seen")
    for name, pairs in ratios.items():
        model, kriging = np.mean(pairs, 0)
        better = sum(a < b for a, b in pairs)
        print(f"{name:6} model {model:.3f}  kriging {kriging:.3f}  model better at {better} of {len(pairs)}", flush=True)


def graph_of(net):
    tensors, nodes = [], []

    def tensor(name, values):
        tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(operator, inputs, output, **attributes):
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def dense(value, layer, output):
        weight = tensor(f"{output}-weight", layer.weight.detach().numpy())
        bias = tensor(f"{output}-bias", layer.bias.detach().numpy())
        return node("Gemm", [value, weight, bias], output, transB=1)

    def part(value, begin, end, output):
        bounds = [tensor(f"{output}-{word}", np.array([at], dtype=np.int64)) for word, at in (("begin", begin), ("end", end))]
        return node("Slice", [value, *bounds, columns], output)

    single = lambda name, value: tensor(name, np.array(value, dtype=np.float32))
    columns = tensor("columns", np.array([1], dtype=np.int64))
    share = float(torch.sigmoid(net.gate))
    own = 1 - KRIGING_SHARE
    nan = node("IsNaN", ["neighbourhood"], "nan")
    rows = node("Where", [nan, single("zero", 0), "neighbourhood"], "rows")
    missing = part(nan, 0, SOURCES, "missing")
    flags = node("Cast", [missing], "flags", to=TensorProto.FLOAT)
    hidden = node("Relu", [dense(node("Concat", [rows, flags], "seen", axis=1), net.first, "first")], "hidden")
    given = dense(node("Relu", [dense(hidden, net.second, "second")], "deep"), net.last, "last")
    values = part(rows, 0, SOURCES, "values")
    distances = part(rows, SOURCES, 2 * SOURCES, "distances")
    kriging = part(rows, KRIGING, WIDTH, "kriging")
    raised = node("Mul", [distances, single("power", float(net.power))], "raised")
    scores = node("Sub", [part(given, 0, SOURCES, "learned"), raised], "scores")
    weights = node("Softmax", [node("Where", [missing, single("never", -1e4), scores], "masked")], "weights", axis=1)
    weighted = node("ReduceSum", [node("Mul", [weights, values], "products"), columns], "weighted", keepdims=1)
    middle = node(
        "Add",
        [
            node("Mul", [weighted, single("share", share)], "by-weights"),
            node("Mul", [kriging, single("rest", 1 - share)], "by-kriging"),
        ],
        "middle",
    )
    off = node("Sub", [values, middle], "off")
    squares = node("Mul", [node("Mul", [off, off], "square"), weights], "squares")
    sum_of_squares = node("ReduceSum", [squares, columns], "sum-of-squares", keepdims=1)
    spread = node("Sqrt", [node("Add", [sum_of_squares, single("least", 1e-4)], "variance")], "spread")
    lift = node("Mul", [part(given, SOURCES, SOURCES + 1, "lift"), spread], "lifted")
    change = node("Mul", [lift, single("change-share", own * SPREAD_SHARE)], "change")
    half = node("Mul", [middle, single("own", own)], "half")
    other = node("Mul", [kriging, single("other", KRIGING_SHARE)], "other-half")
    node("Sum", [half, other, change], "estimate")
    wide = node("Add", [spread, single("margin", 0.1)], "wide")
    node("Mul", [node("Exp", [part(given, SOURCES + 1, SOURCES + 2, "log-error")], "factor"), wide], "error")
    info = helper.make_tensor_value_info
    return helper.make_graph(
        nodes,
        "air-neighbours",
        [info("neighbourhood", TensorProto.FLOAT, ["rows", WIDTH])],
        [info(name, TensorProto.FLOAT, ["rows", 1]) for name in ("estimate", "error")],
        tensors,
    )


def trained_range(rows):
    """Least and greatest number of each input; places of sources share theirs."""
    per_source = rows[:, : KRIGING - 4].reshape(len(rows), -1, SOURCES)
    low = np.concatenate([np.repeat(np.nanmin(per_source, (0, 2)), SOURCES), rows[:, KRIGING - 4 :].min(0)])
    high = np.concatenate([np.repeat(np.nanmax(per_source, (0, 2)), SOURCES), rows[:, KRIGING - 4 :].max(0)])
    return [[float(f"{a:.6g}"), float(f"{b:.6g}")] for a, b in zip(low, high)]


rows, truths = read("training")
if options.evaluate:
    evaluate(rows, truths)
net = trained(rows, truths)
examples = np.arange(0, 12 * 997, 997)
estimate, error = estimates(net, rows[examples])
write_folder(
    options.folder,
    graph=graph_of(net),
    document={
        "version": "1.0.0",
        "kind": "virtual-sensor",
        "inputs": [{"name": "neighbourhood", "shape": [None, WIDTH]}],
        "outputs": [{"name": "estimate", "shape": [None, 1]}, {"name": "error", "shape": [None, 1]}],
        "trainedRange": trained_range(rows),
    },
    examples=(rows[examples], np.stack([estimate, error], 1)),
)
