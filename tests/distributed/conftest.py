"""Clusters of Dask: a worker in this process, and two in processes of their own."""

import pytest

# A port of the system's choice for the status page: tests may run beside one another.
ANY_PORT = ":0"


def workers_here(n_workers, n_threads=1, **settings):
    """Return a client of workers in this process.

    None looks after its memory, which is an eighth of the work for a task.
    """
    from distributed import Client

    settings |= dict(processes=False, memory_limit=0, dashboard_address=ANY_PORT)
    return Client(n_workers=n_workers, threads_per_worker=n_threads, **settings)


@pytest.fixture(scope="session")
def threads():
    """A client of a worker that has two threads of this process."""
    with workers_here(1, n_threads=2, set_as_default=False) as client:
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
    with workers_here(2) as client:
        yield client
