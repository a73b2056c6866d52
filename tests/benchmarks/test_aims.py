"""Ratios and limits: who is compared with whom, and which way round."""

from benchmarks import aims, workloads

SECONDS = {"sklboost": 2.0, "xgboost": 7.0, "lightgbm": 6.0, "lightgbm_quantized": 3.0}


def test_ratio_is_the_fastest_of_the_others_over_ours():
    fastest, quantised = aims.fit_ratios(3.0)
    assert aims.ratio_of(SECONDS, fastest) == 3.0  # LightGBM; its quantised mode stays apart
    assert aims.ratio_of(SECONDS, quantised) == 1.5
    ratio = aims.Ratio("binned", ("xgboost",), None, ours="lightgbm_quantized")
    assert aims.ratio_of(SECONDS, ratio) == 7.0 / 3.0
    for missing in ({"sklboost"}, {"xgboost", "lightgbm"}):
        rest = {name: seconds for name, seconds in SECONDS.items() if name not in missing}
        assert aims.ratio_of(rest, fastest) is None
        assert aims.loss_ratio(rest) is None


def test_loss_is_compared_with_the_best_of_the_accurate_peers():
    losses = {"sklboost": 0.5, "xgboost": 0.4, "hist_gb": 0.6, "catboost": 0.1}
    assert aims.loss_ratio(losses) == 1.25


def test_a_ratio_meets_its_aim_from_above_and_a_limit_from_below():
    assert aims.judge_ratio(3.0, 3.0) == "3.00 ≥ 3.0"
    assert aims.judge_ratio(2.99, 3.0) == "**2.99 < 3.0**"
    assert aims.judge_ratio(2.99, None) == "2.99"
    assert aims.judge_ratio(None, 3.0) == ""
    assert aims.judge_limit(0.3, 0.3) == "0.3 ≤ 0.3"
    assert aims.judge_limit(0.31, 0.3) == "**0.31 > 0.3**"
    assert aims.judge_limit(1.00342, aims.MAX_LOSS_RATIO, form=".4f") == "**1.0034 > 1.003**"
    assert aims.judge_limit(None, 0.3) == ""


def test_floor_by_hand():
    # 10 rows x 2 features = 20 updates at the root and at most 10 on each of 4 levels: 60 a tree
    assert aims.floor_seconds(10, 2, 4, 3, 0.5, 1) == 3 * 60 * 0.5
    assert aims.floor_seconds(10, 2, 4, 3, 0.5, 2) == 3 * 60 * 0.5 / 2


def test_every_fit_of_the_table_has_an_aim_and_others_have_none():
    fits = workloads.FIT + workloads.REAL
    assert len({workload.name for workload in fits}) == len(fits)
    assert all(workloads.fit_aim(workload.name) == aims.FIT for workload in fits)
    assert workloads.fit_aim("binary-77x28") is None
