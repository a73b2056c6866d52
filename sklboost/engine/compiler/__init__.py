"""How kernels become machine code, and how machine code is kept and found."""
