"""A YAML description of a matrix multiply's tilings -> a proven, readable, fast CuTe kernel and a PyTorch operator."""
