#!/usr/bin/env python3
# Writes mixture.json: a Gaussian mixture of scikit-learn as JSON, and exported by skl2onnx. Two classes by the
# direction in which two streams vary, as the features `originals` describe it. scikit-learn 1.5, skl2onnx 1.17.
import base64
import json
import os

import numpy as np
from skl2onnx import to_onnx
from sklearn.mixture import GaussianMixture

random = np.random.default_rng(1)
together = random.normal([0.7, 0.7], 0.15, (200, 2))
alone = random.normal([0.0, 1.0], 0.15, (200, 2))
rows = np.concatenate([together, alone])
mixture = GaussianMixture(2, means_init=[[0.7, 0.7], [0, 1]], reg_covar=0.01, random_state=1).fit(rows)
options = {GaussianMixture: {"score_samples": False}}
exported = to_onnx(mixture, rows[:1].astype(np.float32), options=options, target_opset={"": 17, "ai.onnx.ml": 3})
document = {
    "json": {
        "kind": "gaussian-mixture",
        "weights": mixture.weights_.tolist(),
        "means": mixture.means_.tolist(),
        "covariances": mixture.covariances_.tolist(),
    },
    "onnx": base64.b64encode(exported.SerializeToString()).decode(),
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mixture.json"), "w") as file:
    json.dump(document, file)
    file.write("\n")
