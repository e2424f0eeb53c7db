"""The former place of `drawdown.launch.submit`: jobs/launch.py of older projects starts it."""

import sys

from drawdown.launch.submit import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
