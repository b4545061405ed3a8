"""`python -m stressor`."""

from stressor.main import main

main()
