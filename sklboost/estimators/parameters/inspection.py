"""How a finished model is looked at."""

from dataclasses import dataclass, field

from sklboost.estimators.parameters.about import about
from sklboost.estimators.parameters.rules import one_of
from sklboost.inspection.importances import IMPORTANCE_TYPES


@dataclass(kw_only=True, eq=False, repr=False)
class InspectionParameters:
    """How a finished model is looked at."""

    importance_type: str = field(
        default="gain",
        metadata=about(
            one_of(*IMPORTANCE_TYPES),
            """
            What `feature_importances_` counts. "weight": the splits on a feature. "gain" and
            "cover": means of their gains and of the covers of the nodes that they split.
            "total_gain" and "total_cover": sums of these.
            """,
        ),
    )
