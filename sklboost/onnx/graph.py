"""What the converters write a graph with: nodes and constants, known by the names of results."""

from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.helper import np_dtype_to_tensor_dtype
from onnx.numpy_helper import from_array

ML_DOMAIN = "ai.onnx.ml"  # the domain of trees and of the encoding of categories
# skl2onnx writes nothing later than version 3 of this domain, the first to have trees of float64.
ML_VERSION = 3
_ML_VERSIONS = {"LabelEncoder": 2, "TreeEnsembleRegressor": ML_VERSION}


class Graph:
    """A part of the graph that skl2onnx makes.

    Parameters
    ----------
    scope : skl2onnx.common._topology.Scope
    container : skl2onnx.common._container.ModelComponentContainer
    """

    def __init__(self, scope: Any, container: Any):
        self._scope, self._container = scope, container

    def add(
        self,
        op_type: str,
        *inputs: str,
        result: str | None = None,
        n_results: int = 1,
        **attributes: Any,
    ) -> str:
        """Add a node and return the name of its first result, a new one if none is given."""
        names = [self._scope.get_unique_variable_name(op_type) for _ in range(n_results)]
        if result is not None:
            names[0] = result
        version = _ML_VERSIONS.get(op_type)
        self._container.add_node(
            op_type,
            list(inputs),
            names,
            op_domain="" if version is None else ML_DOMAIN,
            op_version=version,
            name=self._scope.get_unique_operator_name(op_type),
            **attributes,
        )
        return names[0]

    def cast(self, values: str, dtype: Any, result: str | None = None) -> str:
        """Add a node that converts values to a NumPy dtype."""
        return self.add("Cast", values, result=result, to=np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def filled(self, like: str, value: float) -> str:
        """Add a table of one number in the shape of another table."""
        shape = self.add("Shape", like)
        return self.add("ConstantOfShape", shape, value=from_array(np.array([value])))

    def constant(self, values: Any) -> str:
        """Add a constant: numbers of their own dtype, or text."""
        array = np.asarray(values)
        name = self._scope.get_unique_variable_name("constant")
        is_text = array.dtype.kind in "UO"
        kind = TensorProto.STRING if is_text else np_dtype_to_tensor_dtype(array.dtype)
        content = [text.encode() for text in array.flat] if is_text else array.ravel().tolist()
        self._container.add_initializer(name, kind, list(array.shape), content)
        return name
