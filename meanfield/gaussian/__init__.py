"""What is exactly true of the Gaussian reduction."""
