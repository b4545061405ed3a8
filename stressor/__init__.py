"""stressor finds out what a Kubernetes cluster can carry, without killing it."""

__version__ = "0.1.0"
