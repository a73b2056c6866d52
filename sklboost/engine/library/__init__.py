"""The kernels of a wheel: machine code that was made when the wheel was built, called by ctypes."""
