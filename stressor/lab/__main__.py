"""`python -m stressor.lab`: the lab's verbs without the rest of the command line."""

from stressor.lab.command import lab

if __name__ == "__main__":
    lab(prog_name="stressor lab")
