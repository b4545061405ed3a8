"""The Kubernetes API: `base` is the seam, `client.connect` the way in, `readyz` the 1 Hz probe."""
