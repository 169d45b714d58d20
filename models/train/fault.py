#!/usr/bin/env python3
# Trains the fault model `stream-window` on the windows that fault-windows.ts wrote, and writes its folder.
# fault.py WINDOWS_DIR MODEL_DIR [--seed N] [--epochs N]; the same windows and seed give the same file on one machine.
import argparse
import json
import os

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper

from folder import rounded, write_folder

arguments = argparse.ArgumentParser()
arguments.add_argument("windows")
arguments.add_argument("folder")
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--epochs", type=int, default=12)
options = arguments.parse_args()

torch.manual_seed(options.seed)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

HIDDEN = (96, 32)
BATCH = 512


def path(name):
    return os.path.join(options.windows, name)


with open(path("fault-shape.json")) as file:
    shape = json.load(file)
classes = shape["classes"]
features = np.fromfile(path("fault-features.f32"), dtype=np.float32).reshape(-1, shape["features"])
labels = np.fromfile(path("fault-labels.u8"), dtype=np.uint8).astype(np.int64)
mean = features.mean(0, dtype=np.float64)
deviation = features.std(0, dtype=np.float64) + 1e-3
scaled = torch.tensor(((features - mean) / deviation).astype(np.float32))
truth = torch.tensor(labels)
# The last tenth is only looked at.
training = len(scaled) * 9 // 10

net = torch.nn.Sequential(
    torch.nn.Linear(shape["features"], HIDDEN[0]),
    torch.nn.ReLU(),
    torch.nn.Linear(HIDDEN[0], HIDDEN[1]),
    torch.nn.ReLU(),
    torch.nn.Linear(HIDDEN[1], len(classes)),
)
steps = training // BATCH
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-3)
rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=options.epochs * steps)
for epoch in range(options.epochs):
    order = torch.randperm(training)
    for step in range(steps):
        rows = order[step * BATCH : (step + 1) * BATCH]
        loss = torch.nn.functional.cross_entropy(net(scaled[rows]), truth[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
with torch.no_grad():
    left = net(scaled[training:])
    print(f"cross entropy {torch.nn.functional.cross_entropy(left, truth[training:]):.4f}")
    right = (left.argmax(1) == truth[training:]).numpy()
    for index, name in enumerate(classes):
        print(f"{name:13} {right[labels[training:] == index].mean():.3f} recognized")

linear = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
# The scaling becomes part of the first layer.
with torch.no_grad():
    first = linear[0]
    weight = first.weight.double() / torch.tensor(deviation)
    first.bias.copy_(first.bias.double() - weight @ torch.tensor(mean))
    first.weight.copy_(weight)
    outputs = torch.softmax(net(torch.tensor(features[:4096])), 1).numpy()
weights = []
nodes = []
value = "features"
for index, layer in enumerate(linear):
    names = (f"weight{index}", f"bias{index}")
    weights.append(numpy_helper.from_array(layer.weight.detach().numpy(), names[0]))
    weights.append(numpy_helper.from_array(layer.bias.detach().numpy(), names[1]))
    nodes.append(helper.make_node("Gemm", [value, *names], [f"sum{index}"], transB=1))
    value = f"sum{index}"
    if index < len(linear) - 1:
        nodes.append(helper.make_node("Relu", [value], [f"layer{index}"]))
        value = f"layer{index}"
nodes.append(helper.make_node("Softmax", [value], ["probabilities"], axis=1))
# One output per class, so that model.json names them.
weights.append(numpy_helper.from_array(np.ones(len(classes), dtype=np.int64), "sizes"))
nodes.append(helper.make_node("Split", ["probabilities", "sizes"], classes, axis=1))
graph = helper.make_graph(
    nodes,
    "stream-window",
    [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", shape["features"]])],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 1]) for name in classes],
    weights,
)
examples = np.concatenate([np.flatnonzero(labels[:4096] == index)[:2] for index in range(len(classes))])
write_folder(
    options.folder,
    graph=graph,
    document={
        "version": "1.0.0",
        "kind": "fault",
        "inputs": [{"name": "features", "shape": [None, shape["features"]]}],
        "outputs": [{"name": name, "shape": [None, 1]} for name in classes],
        "trainedRange": [
            [float(low), float(high)] for low, high in zip(rounded(features.min(0)), rounded(features.max(0)))
        ],
    },
    examples=(features[examples], outputs[examples]),
)
