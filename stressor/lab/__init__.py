"""A real Kubernetes cluster on one machine, with faults, for proving stressor on real parts.

Flow: `requirements` refuses early, `build` fills a cache (binaries, root filesystem,
images), `up` lays hosts out of it and starts them, `faults` breaks and heals them, `down`
removes every trace.  `ledger` is the write-ahead record that ties them together.
"""
