#!/usr/bin/env python3
# Writes the folder of a shipped model: model.onnx, model.json and golden.json. card.md is written by hand.
import hashlib
import json
import os

import numpy as np
import onnx
from onnx import helper

TOLERANCE = 1e-4
LICENCE = "CC-BY-4.0"


def rounded(numbers, digits=6):
    """Numbers with a few digits, so that JSON holds them as they are used."""
    return np.array([float(f"{number:.{digits}g}") for number in numbers])


def numbers(row):
    return [None if np.isnan(one) else float(one) for one in row.astype(np.float64)]


def write_folder(folder, *, graph, document, examples):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="selvedge")
    model.ir_version = 8
    onnx.checker.check_model(model)
    content = model.SerializeToString()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(content)
    whole = {
        "name": os.path.basename(os.path.normpath(folder)),
        **document,
        "licence": LICENCE,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    inputs, outputs = examples
    golden = {
        "tolerance": TOLERANCE,
        "vectors": [{"input": numbers(a), "output": numbers(b)} for a, b in zip(inputs, outputs)],
    }
    for name, value in (("model.json", whole), ("golden.json", golden)):
        with open(os.path.join(folder, name), "w") as file:
            json.dump(value, file, indent=None if name == "golden.json" else 1)
            file.write("\n")
    print(f"{folder}: {len(content)} bytes, {whole['sha256']}")
