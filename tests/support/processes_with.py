"""The processes whose environment shows a text: python processes_with.py < TEXT"""

import sys
from pathlib import Path

if __name__ == "__main__":
    wanted = sys.stdin.read().encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes():
                sys.stdout.write(f"{process.name}\n")
        except OSError:
            continue
