"""Clusters of Dask: a worker in this process, and two in processes of their own."""

import pytest

# A port of the system's choice for the status page: tests may run beside one another.
ANY_PORT = ":0"


@pytest.fixture(scope="session")
def threads():
    """A client of a worker that has two threads of this process."""
    from distributed import Client

    options = dict(processes=False, n_workers=1, threads_per_worker=2)
    with Client(**options, dashboard_address=ANY_PORT, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="session")
def processes():
    """A client of two workers in processes of their own, of two threads each."""
    from distributed import Client, LocalCluster

    options = dict(processes=True, n_workers=2, threads_per_worker=2)
    with (
        LocalCluster(**options, dashboard_address=ANY_PORT) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "processes"])
def client(request):
    """Each of them, as the one that Dask uses."""
    client = request.getfixturevalue(request.param)
    with client.as_current():
        yield client


@pytest.fixture(scope="module")
def cluster():
    """A client of two workers of one thread each, in this process."""
    from distributed import Client

    options = dict(processes=False, n_workers=2, threads_per_worker=1)
    with Client(**options, dashboard_address=ANY_PORT) as client:
        yield client
