"""Aims, limits and the floor; which ratios are shown is tested in test_results."""

from benchmarks import aims, workloads


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
