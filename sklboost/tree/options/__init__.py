"""What only some fits run: categories, constraints, sampling, linear leaves."""
