"""Signals: what is read from hosts and servers, as pure parsers from text to samples.

A signal is one module here and one folder of recorded fixtures. Nothing in this package does I/O
or reads a clock.
"""

from stressor.model import SignalSpec
from stressor.probes import apiserver, etcd, psi

SIGNALS: tuple[SignalSpec, ...] = (*etcd.SIGNALS, *apiserver.SIGNALS, *psi.SIGNALS)


def signal(name: str) -> SignalSpec:
    """The signal called `name`. Raises KeyError when no probe reports it."""
    for spec in SIGNALS:
        if spec.name == name:
            return spec
    raise KeyError(name)
