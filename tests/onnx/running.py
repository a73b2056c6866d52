"""Graphs of models, made by skl2onnx and run by onnxruntime."""

import numpy as np
from onnxruntime import InferenceSession
from skl2onnx import to_onnx
from sklearn.base import is_classifier

import sklboost.onnx


def start(model, example=None, **arguments):
    """Convert a model, and start a session of onnxruntime with its graph."""
    if example is None and "initial_types" not in arguments:
        arguments["initial_types"] = sklboost.onnx.input_types(model)
    graph = to_onnx(model, None if example is None else example[:1], **arguments)
    return InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def run(model, X, **options):
    """Return the results of a graph for the rows of an array, or of a frame, of features."""
    arguments = {"options": {id(model): options}} if options else {}
    session = start(model, X if isinstance(X, np.ndarray) else None, **arguments)
    return session.run(None, feeds(session, X))


def feeds(session, X):
    """Return rows as the inputs of a session: an array, or the columns of a frame one by one."""
    if isinstance(X, np.ndarray):
        return {session.get_inputs()[0].name: X}
    return {
        given.name: X[[column]].to_numpy(dtype=object if "string" in given.type else float)
        for given, column in zip(session.get_inputs(), X, strict=True)
    }


def check(model, X, rtol=1e-9, atol=1e-9):
    """Check that a graph predicts what the model predicts."""
    if is_classifier(model):
        labels, probabilities = run(model, X, zipmap=False)
        assert labels.tolist() == model.predict(X).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol, atol)
    else:
        (predictions,) = run(model, X)
        wanted = model.predict(X)
        assert predictions.shape == (len(X), wanted.size // len(X))
        np.testing.assert_allclose(predictions, wanted.reshape(predictions.shape), rtol, atol)
