"""The kernels that every fit runs: growing one tree from packed gradients."""
